"""What holds whatever fails. Every fault test has a Witness, and asks it in the end.

It judges by the API server's own records: pods and moves as an administrator sees them meanwhile, and the audit log.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim

from ballast.api import BalancingPolicy
from ballast.api.profile import Budget, BudgetScope
from ballast.errors import InvalidResource
from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.errors import KubeError, NotFound
from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE, POD, Kind
from ballast.kube.names import GATE, SPARK_ROLE
from ballast.kube.objects import Query, read_list
from tests.cluster.chart.installation import NAMESPACE, RELEASE
from tests.cluster.controller.pool import PATIENCE_SECONDS, Pool, gates_of
from tests.testbed.audit import Request
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]
GATED_SECONDS = 15.0
"""As SECURITY.md says, while a replica lives that reaches the API server."""
RECOVERY_SECONDS = 30.0
"""After a fault ends, everything is as without it: `python -m benchmarks faults` measures how soon."""
_LOOK_SECONDS = 0.1
_LATE_SECONDS = 1.0
"""A look may be late by as much on a machine that is busy."""
_TRAVELING = ("Leaving", "Arriving")

WRITES = frozenset(
    {
        ("create", "events"),
        ("create", "executormoves"),
        ("create", "gateswitches"),
        ("create", "leases"),
        ("create", "pods/eviction"),
        ("delete", "executormoves"),
        ("delete", "pods"),
        ("patch", "balancingpolicies/status"),
        ("patch", "events"),
        ("patch", "executormoves/status"),
        ("patch", "gateswitches"),
        ("patch", "gateswitches/status"),
        ("patch", "pods"),
        ("patch", "pods/status"),
        ("patch", "sparktopologies/status"),
        ("update", "leases"),
    }
)
"""All that the operator may write; of a pod only what is in PATCHED."""
PATCHED = {
    "pods": ("/metadata/resourceVersion", "/metadata/uid", "/spec/affinity", "/spec/schedulingGates"),
    "pods/status": ("/metadata/resourceVersion", "/metadata/uid", "/status/nominatedNodeName"),
}
_READS = ("get", "list", "watch")
MOST_WRITES = 30
"""Of one object, in the minute or two that a fault test takes: a move is written six times, a status once a minute."""


@dataclass(slots=True)
class _Gated:
    name: str
    first: float
    last: float

    @property
    def seconds(self) -> float:
        return self.last - self.first


@dataclass(slots=True)
class Witness:
    """Looks at the namespaces from `watched` on. Times are monotonic seconds."""

    testbed: Testbed
    client: Client
    namespaces: Sequence[str]
    """Each of one policy's pool, as tests/cluster/controller/pool.py makes them."""
    since: int
    """Where the audit log ended when it began."""
    look_seconds: float = _LOOK_SECONDS
    gated: dict[str, _Gated] = field(default_factory=dict)
    """By uid."""
    moves: dict[str, JSON] = field(default_factory=dict)
    """Every move that was seen, by uid; the spec never changes."""
    budgets: dict[str, set[tuple[Budget, ...]]] = field(default_factory=dict)
    """Those of each namespace's policy; more than one where the policy was changed meanwhile."""
    executors: Counter[str] = field(default_factory=Counter)
    """The most that there were in each namespace: a budget may be a share of them."""
    outage_seconds: float = 0.0
    """For so long no replica reached the API server; pods that were created then may be gated for longer."""

    @contextmanager
    def outage(self) -> Iterator[None]:
        """No replica can reach the API server inside the block, or it does not serve."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.outage_seconds += time.monotonic() - began

    def look(self) -> None:
        now = time.monotonic()
        for policy in self._listed(BALANCING_POLICY):
            self._note_budgets(policy)
        for namespace in self.namespaces:
            pods = self._listed(POD, namespace)
            for pod in pods:
                if GATE in gates_of(pod):
                    metadata = pod["metadata"]
                    self.gated.setdefault(metadata["uid"], _Gated(metadata["name"], now, now)).last = now
            executors = sum((pod["metadata"].get("labels") or {}).get(SPARK_ROLE) == "executor" for pod in pods)
            self.executors[namespace] = max(self.executors[namespace], executors)
            for move in self._listed(EXECUTOR_MOVE, namespace):
                self.moves[move["metadata"]["uid"]] = move

    def _note_budgets(self, policy: JSON) -> None:
        chosen = (policy["spec"].get("namespaceSelector") or {}).get("matchLabels") or {}
        namespace = str(chosen.get("kubernetes.io/metadata.name"))
        if namespace in self.namespaces:
            with suppress(InvalidResource):
                budgets = BalancingPolicy.parse(policy).spec.moves.budgets
                self.budgets.setdefault(namespace, set()).add(tuple(budgets))

    def _listed(self, kind: Kind, namespace: str | None = None) -> list[JSON]:
        try:
            return read_list(self.client, Query(kind, namespace=namespace), lambda each: each).items
        except NotFound:
            return []  # its definition is deleted

    def check(
        self,
        *,
        most_under_way: int | None = None,
        gated_seconds: float = GATED_SECONDS,
        most_writes: int = MOST_WRITES,
    ) -> None:
        """Raises AssertionError with everything that was violated."""
        done = [each for each in self._asked() if each.status < 300]
        late_seconds = 2 * self.look_seconds + _LATE_SECONDS
        found = [
            *_gated_too_long(self.gated.values(), gated_seconds + self.outage_seconds + late_seconds),
            *_unordered_evictions(done, self.moves.values()),
            *_too_many_under_way(done, most_under_way),
            *_overspent(begun(done, self.moves.values()), self.budgets, self.executors),
            *_foreign_writes(done),
            *_endless_writes(done, most_writes),
        ]
        assert not found, "\n".join(found)

    def evicted(self) -> list[str]:
        """Names of the pods that the operator has evicted."""
        return [each.name for each in self._asked() if _is_eviction(each) and each.status < 300]

    def _asked(self) -> list[Request]:
        return self.testbed.requests_of(NAMESPACE, RELEASE, since=self.since)


@contextmanager
def watched(
    testbed: Testbed,
    *namespaces: str,
    most_under_way: int | None = None,
    gated_seconds: float | None = None,
    look_seconds: float = _LOOK_SECONDS,
    most_writes: int = MOST_WRITES,
) -> Iterator[Witness]:
    """A witness that looks until the end of the block, and is then asked.

    `gated_seconds`: as long may a gate last, GATED_SECONDS by default.
    """
    client = Client(Connection.from_kubeconfig(testbed.kubeconfig), Limits(connections=1, attempts=1))
    witness = Witness(testbed, client, namespaces, testbed.end_of_requests(), look_seconds)
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(look_seconds):
            try:
                witness.look()
            except KubeError:
                continue  # the API server may be what fails

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield witness
    finally:
        ended.set()
        thread.join()
        client.close()
    longest = GATED_SECONDS if gated_seconds is None else gated_seconds
    witness.check(most_under_way=most_under_way, gated_seconds=longest, most_writes=most_writes)


def await_said(mine: Pool, type_: str, status: str, reason: str) -> None:
    """The policy of this pool says so."""

    def said() -> bool:
        condition = mine.condition(BALANCING_POLICY, type_) or {}
        return (condition.get("status"), condition.get("reason")) == (status, reason)

    wait_until(
        said,
        what=f"{type_} is {status}: {reason}",
        timeout_seconds=PATIENCE_SECONDS,
        explain=lambda: f"{mine.condition(BALANCING_POLICY, type_)}",
    )


def _gated_too_long(pods: Iterable[_Gated], seconds: float) -> Iterator[str]:
    for pod in pods:
        if pod.seconds > seconds:
            yield f"{pod.name} was gated for {pod.seconds:.1f} s, more than {seconds:.1f} s"


def _unordered_evictions(done: Sequence[Request], moves: Iterable[JSON]) -> Iterator[str]:
    """Evictions without an open move that names exactly that pod: namespace, name and uid."""
    ordered = {_ordered(move): move["metadata"]["name"] for move in moves}
    phases: dict[tuple[str, str], str] = {}
    for each in sorted(done, key=lambda request: request.at):
        if each.resource == "executormoves/status":
            phases[each.namespace, each.name] = _phase(each)
            continue
        if not _is_eviction(each):
            continue
        uid = str(((each.body.get("deleteOptions") or {}).get("preconditions") or {}).get("uid"))
        name = ordered.get((each.namespace, each.name, uid))
        if name is None:
            yield f"{each.namespace}/{each.name} ({uid}) was evicted at {each.at}, and no move names it"
        elif (phase := phases.get((each.namespace, name))) != "Leaving":
            yield f"{each.namespace}/{each.name} was evicted at {each.at} while its move {name} was {phase}"


def _too_many_under_way(done: Sequence[Request], most: int | None) -> Iterator[str]:
    """More moves between eviction and arrival at a time than the policy's budget allows."""
    phases: dict[tuple[str, str], str] = {}
    for each in sorted(done, key=lambda request: request.at):
        if most is not None and each.resource == "executormoves/status":
            phases[each.namespace, each.name] = _phase(each)
            under_way = [name for (_, name), phase in phases.items() if phase in _TRAVELING]
            if len(under_way) > most:
                yield f"{len(under_way)} moves were under way at {each.at}, not {most}: {', '.join(under_way)}"


@dataclass(frozen=True, slots=True)
class Begun:
    """A move whose executor was asked to leave."""

    namespace: str
    topology: str
    nodes: tuple[str, str]
    at: float
    """When it was approved: what a budget counts by (seconds since the epoch)."""


def begun(done: Sequence[Request], moves: Iterable[JSON]) -> list[Begun]:
    """Those of the moves that these requests began, in the order in which their executors were asked to leave."""
    known = {(move["metadata"]["namespace"], move["metadata"]["name"]): move["spec"] for move in moves}
    first: dict[tuple[str, str], float] = {}
    left: dict[tuple[str, str], float] = {}
    for each in sorted(done, key=lambda request: request.at):
        if each.resource == "executormoves/status" and (phase := _phase(each)) in ("Approved", "Leaving"):
            at = first.setdefault((each.namespace, each.name), datetime.fromisoformat(each.at).timestamp())
            if phase == "Leaving":
                left.setdefault((each.namespace, each.name), at)
    return [
        Begun(key[0], spec["topologyName"], (spec["sourceNodeName"], spec["targetNodeName"]), at)
        for key, at in left.items()
        if (spec := known.get(key)) is not None
    ]


def _overspent(
    moves: Sequence[Begun], budgets: Mapping[str, Iterable[tuple[Budget, ...]]], executors: Mapping[str, int]
) -> Iterator[str]:
    """More moves begun within a span or a window than a budget of the policy allows, however it was set meanwhile."""
    for namespace, versions in budgets.items():
        own = [move for move in moves if move.namespace == namespace]
        found = [
            [words for budget in version for words in _beyond(budget, own, executors.get(namespace, 0))]
            for version in versions
        ]
        yield from (f"{namespace}: {words}" for words in min(found, key=len, default=()))


def _beyond(budget: Budget, moves: Iterable[Begun], executors: int) -> Iterator[str]:
    most = max(budget.moves, executors * (budget.percent or 0) // 100)
    times: dict[str, list[float]] = defaultdict(list)
    for move in moves:
        of = {BudgetScope.POOL: ("the pool",), BudgetScope.TOPOLOGY: (move.topology,), BudgetScope.NODE: move.nodes}
        for subject in of[budget.scope]:
            times[subject].append(move.at)
    for subject, begins in times.items():
        within = _most_in_a_span(begins, budget) if budget.per else _most_in_a_window(begins, budget)
        if within > most:
            yield f"{within} moves of {subject} began within {budget.per or budget.schedule}, not {most}"


def _most_in_a_span(begins: Sequence[float], budget: Budget) -> int:
    assert budget.per is not None
    return max(sum(0 <= at - other < budget.per.seconds for other in begins) for at in begins)


def _most_in_a_window(begins: Sequence[float], budget: Budget) -> int:
    assert budget.schedule is not None
    assert budget.duration is not None
    zone = ZoneInfo(budget.time_zone or "UTC")
    opened = {at: next(CronSim(budget.schedule, datetime.fromtimestamp(at, zone), reverse=True)) for at in begins}
    inside = Counter(opened[at] for at in begins if at - opened[at].timestamp() < budget.duration.seconds)
    return max(inside.values(), default=0)


def _foreign_writes(done: Iterable[Request]) -> Iterator[str]:
    """Writes to what belongs to users: any spec but a gated pod's place."""
    for each in done:
        if each.verb in _READS:
            continue
        if (each.verb, each.resource) not in WRITES:
            yield f"{each.verb} {each.resource} {each.namespace}/{each.name} at {each.at}"
        elif each.resource in PATCHED and each.verb == "patch":
            for change in each.body or ():
                if not change["path"].startswith(PATCHED[each.resource]):
                    yield f"patch of {change['path']} in {each.namespace}/{each.name} at {each.at}"


def _endless_writes(done: Iterable[Request], most: int) -> Iterator[str]:
    """One object written again and again, as a loop does; a lease is renewed all the time."""
    written = Counter(
        (each.verb, each.resource, each.namespace, each.name)
        for each in done
        if each.verb not in _READS and each.resource != "leases"
    )
    for (verb, resource, namespace, name), count in written.items():
        if count > most:
            yield f"{count} times {verb} {resource} {namespace}/{name}"


def _ordered(move: Mapping[str, Any]) -> tuple[str, str, str]:
    executor = move["spec"]["executor"]
    return move["metadata"]["namespace"], executor["pod"], executor["uid"]


def _phase(written: Request) -> str:
    return str(((written.answer or {}).get("status") or {}).get("phase"))


def _is_eviction(request: Request) -> bool:
    return (request.verb, request.resource) == ("create", "pods/eviction")
