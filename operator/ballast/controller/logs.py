"""What the operator decides and does, one structured line each in the log. docs/observability.md lists them.

A line has the stable word of its kind as `event`, and the keys of that kind.
"""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pythonjsonlogger.core import RESERVED_ATTRS
from pythonjsonlogger.json import JsonFormatter

from ballast.kube import actions
from ballast.model import Displaced, Pin, Placement, Plan, PlannedMove, Reason
from ballast.moves import MoveState
from ballast.moves.state import narrowed

_LOG = logging.getLogger("ballast.journal")
_MOST_SUBJECTS = 10
"""Named in one line."""

_KOPFS = ("settings", "k8s_skip", "k8s_ref")
"""What kopf's entries carry for its own use."""
_OWN = {*vars(logging.makeLogRecord({})), "message", "asctime", *_KOPFS}
"""What is not shown behind the message."""
_QUIET = ("kopf", "aiohttp", "urllib3", "asyncio")


@dataclass(frozen=True, slots=True)
class _Kind:
    event: str
    keys: tuple[str, ...]
    level: int = logging.INFO


class Line(Enum):
    """Each kind of line."""

    PLACED = _Kind("Placed", ("policy", "topology", "executors", "places", "reason"))
    """Executors of one topology were released together. `places`: how many for which node, or for which zone."""
    DISPLACED = _Kind("Displaced", ("policy", "topology", "executors", "nodes"))
    """kube-scheduler bound executors to other nodes than those chosen. `nodes`: how many each chosen node lost."""
    UNPLACED = _Kind("ReleasedUnplaced", ("policy", "topology", "executors", "reason", "detail"), logging.WARNING)
    """Executors were released without a place."""
    NOT_RELEASED = _Kind("NotReleased", ("policy", "topology", "executors", "reason", "detail"), logging.WARNING)
    """The API server refused a release."""
    REFUSED = _Kind("Refused", ("policy", "reason", "count", "subjects", "detail"))
    """A pass refuses executors, nodes or the policy for a reason for which the pass before it did not."""
    NOT_REFUSED = _Kind("NoLongerRefused", ("policy", "reason", "count", "subjects"))
    RECOMMENDED = _Kind("MoveRecommended", ("policy", "topology", "executor", "source", "target", "gain"))
    """A policy that only recommends would move an executor; not repeated while it says the same."""
    DECIDED = _Kind("MoveDecided", ("policy", "topology", "executor", "source", "target", "gain", "move"))
    """An ExecutorMove was created."""
    PHASE = _Kind("MovePhase", ("policy", "move", "executor", "source", "target", "phase", "reason", "detail"))
    """A move entered a phase."""
    EVICTED = _Kind("Eviction", ("policy", "move", "executor", "outcome", "detail"))
    """The eviction of an executor was asked for."""
    DELETED = _Kind("Deletion", ("policy", "move", "executor", "outcome", "detail"))
    """An executor that can't be scheduled in its place was deleted, so that Spark creates another."""
    JUDGED = _Kind("MoveJudged", ("policy", "move", "executor", "verdict", "predicted", "measured"))
    """A move was measured: the points by which the gap was to narrow, and those by which it did."""
    LEADER = _Kind("LeadershipChanged", ("identity", "leading"), logging.WARNING)
    PASS_FAILED = _Kind("PassFailed", ("policy", "error"), logging.ERROR)


def note(line: Line, message: str, values: Mapping[str, Any], *, trace: bool = False) -> None:
    """Write one line; `values` has exactly the keys of its kind. `trace`: with the exception that is being handled."""
    kind = line.value
    if values.keys() != set(kind.keys):
        raise ValueError(f"{kind.event} has the keys {', '.join(kind.keys)}, not {', '.join(values)}")
    _LOG.log(kind.level, "%s", message, extra={"event": kind.event, **values}, exc_info=trace)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of the release of one executor."""

    topology: str
    """Key; empty where it is not known."""
    order: actions.Release
    outcome: actions.ReleaseOutcome


def note_releases(policy: str, releases: Iterable[Outcome]) -> list[str]:
    """A line for each topology, and for each reason for which some of its executors have no place.

    Returns the reasons of executors that were released without a place, one for each topology and reason.
    """
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    others: Counter[tuple[Line, str, str, str]] = Counter()
    for each in releases:
        placement, outcome = each.order.placement, each.outcome
        match outcome:
            case actions.Released(already=True) | actions.Changed() | actions.Vanished() | actions.UnderWay():
                continue
            case actions.Refused():
                others[Line.NOT_RELEASED, each.topology, "ReleaseRefused", outcome.detail] += 1
            case actions.Released() if _has_place(placement, outcome):
                place = placement.node or "/".join(filter(None, placement.location))
                places[each.topology, str(placement.reason or "")].append(place)
            case actions.Released():
                why = outcome.reason or placement.reason
                others[Line.UNPLACED, each.topology, str(why or ""), placement.detail] += 1
    for (topology, reason), chosen in sorted(places.items()):
        words = f"placed {len(chosen)} executors of {topology or 'no topology'} in {len(set(chosen))} places"
        values = {"executors": len(chosen), "places": dict(sorted(Counter(chosen).items())), "reason": reason}
        note(Line.PLACED, words, {"policy": policy, "topology": topology, **values})
    for (line, topology, reason, detail), count in sorted(others.items(), key=lambda item: item[0][1:]):
        done = "released" if line is Line.UNPLACED else "could not release"
        words = f"{done} {count} executors of {topology or 'no topology'} without a place: {reason}: {detail}"
        values = {"topology": topology, "executors": count, "reason": reason, "detail": detail}
        note(line, words, {"policy": policy, **values})
    return [reason for line, _, reason, _ in others if line is Line.UNPLACED]


def _has_place(placement: Placement, outcome: actions.Released) -> bool:
    """By preference alone, too, where the policy or the pod wants no more than that."""
    preferred = placement.node is not None and outcome.reason in (None, placement.reason)
    return (preferred or outcome.pin is not Pin.NONE) and placement.reason is not Reason.POOL_FULL


def note_displaced(policy: str, topology: str, displaced: Sequence[Displaced]) -> None:
    lost = Counter(each.chosen for each in displaced)
    words = f"{len(displaced)} executors of {topology} are not on the nodes chosen for them, {len(lost)} nodes"
    values = {"executors": len(displaced), "nodes": dict(sorted(lost.items()))}
    note(Line.DISPLACED, words, {"policy": policy, "topology": topology, **values})


def note_decided(policy: str, move: PlannedMove, name: str) -> None:
    cause = f", since the node is about to go ({move.taint})" if move.taint else ""
    words = f"decided to move {move.executor} from {move.source} to {move.target}{cause}"
    note(Line.DECIDED, words, {**_way(policy, move), "move": name})


def note_phase(policy: str, move: MoveState) -> None:
    """A move that has just entered its phase; also its verdict, if it has one."""
    orders = move.orders
    executor = f"{orders.namespace}/{orders.executor_name}"
    common = {"policy": policy, "move": orders.key, "executor": executor}
    words = f"move {orders.key} of {executor} from {orders.source} to {move.destination} is {move.phase}: {move.reason}"
    way = {"source": orders.source, "target": move.destination}
    told = {"phase": move.phase.value, "reason": str(move.reason), "detail": move.message}
    note(Line.PHASE, words, {**common, **way, **told})
    if move.gain is not None and move.phase.ended:
        predicted = narrowed(orders.decided, orders.predicted) or 0.0
        words = f"move {orders.key} was to narrow the gap by {predicted:.1f} points and did by {move.gain:.1f}"
        judged = {"verdict": str(move.reason), "predicted": round(predicted, 2), "measured": round(move.gain, 2)}
        note(Line.JUDGED, words, {**common, **judged})


def note_done(line: Line, policy: str, *, move: str, executor: str, outcome: object) -> None:
    """An eviction or a deletion, and what the API server said to it."""
    word, detail = type(outcome).__name__, str(getattr(outcome, "detail", ""))
    words = f"{line.value.event.lower()} of {executor}: {word}{': ' if detail else ''}{detail}"
    note(line, words, {"policy": policy, "move": move, "executor": executor, "outcome": word, "detail": detail})


class Changes:
    """Writes what a policy's passes refuse and recommend when it differs from the pass before."""

    def __init__(self) -> None:
        self._refused: dict[str, dict[str, str]] = {}
        """Reasons, by policy and subject."""
        self._recommended: dict[str, frozenset[tuple[str, str, str]]] = {}

    def __len__(self) -> int:
        return len(self._refused) + len(self._recommended)

    def keep(self, policies: Collection[str]) -> None:
        """Forget the policies that are gone."""
        self._refused = {name: known for name, known in self._refused.items() if name in policies}
        self._recommended = {name: known for name, known in self._recommended.items() if name in policies}

    def refusals(self, policy: str, plan: Plan) -> None:
        """A line for each reason, since a pass may refuse thousands of executors."""
        before, now, details = self._refused.get(policy, {}), dict[str, str](), dict[str, str]()
        for refusal in plan.refusals:
            now.setdefault(refusal.subject, refusal.reason.value)  # the first reason is the one that is shown
            details.setdefault(refusal.reason.value, refusal.detail)
        for reason, subjects in _by_reason(now.items() - before.items()):
            words = f"{len(subjects)} refused: {reason}: {details[reason]}"
            values = {"count": len(subjects), "subjects": subjects[:_MOST_SUBJECTS], "detail": details[reason]}
            note(Line.REFUSED, words, {"policy": policy, "reason": reason, **values})
        for reason, subjects in _by_reason(item for item in before.items() if item[0] not in now):
            words = f"{len(subjects)} no longer refused: {reason}"
            values = {"count": len(subjects), "subjects": subjects[:_MOST_SUBJECTS]}
            note(Line.NOT_REFUSED, words, {"policy": policy, "reason": reason, **values})
        self._refused[policy] = now

    def recommended(self, policy: str, moves: Collection[PlannedMove]) -> None:
        before = self._recommended.get(policy, frozenset())
        for move in moves:
            if (move.executor, move.source, move.target) not in before:
                words = f"would move {move.executor} from {move.source} to {move.target}"
                note(Line.RECOMMENDED, words, _way(policy, move))
        self._recommended[policy] = frozenset((move.executor, move.source, move.target) for move in moves)


def _by_reason(refused: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Subjects, sorted, by their reason."""
    found: dict[str, list[str]] = defaultdict(list)
    for subject, reason in sorted(refused):
        found[reason].append(subject)
    return sorted(found.items())


def _way(policy: str, move: PlannedMove) -> dict[str, Any]:
    return {
        "policy": policy,
        "topology": move.topology,
        "executor": move.executor,
        "source": move.source,
        "target": move.target,
        "gain": round(move.gain, 2),
    }


def configure(*, as_json: bool, level: int) -> None:
    """Set up the root logger; call once, in `main`."""
    handler = logging.StreamHandler()
    handler.setFormatter(_json() if as_json else _Text("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))
    # It warns that it can't take over the signals, which is what we want.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


class _Text(logging.Formatter):
    """The message, and behind it what the entry carries, as `key=value`."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        carried = {key: value for key, value in vars(record).items() if key not in _OWN and not key.startswith("_")}
        return " ".join([super().formatMessage(record), *(f"{key}={_shown(value)}" for key, value in carried.items())])


def _shown(value: object) -> str:
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(' "='):
        return value
    return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))


def _json() -> logging.Formatter:
    return JsonFormatter(
        "%(levelname)s %(name)s %(message)s",
        timestamp="time",
        reserved_attrs=[*RESERVED_ATTRS, *_KOPFS],
        rename_fields={"levelname": "level", "name": "logger"},
    )
