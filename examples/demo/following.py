"""The move from its decision to its end, told as it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from examples.demo.findings import WARMUP_SECONDS, Move, Trail
from examples.demo.screen import Screen
from examples.demo.watch import Watch
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

_DECISION_SECONDS = 180.0
_MOVE_SECONDS = 300.0
_ENDED = ("Succeeded", "Failed", "Expired", "Refused")
_MARKS = {"Leaving": "executor leaves", "Settling": "replacement runs"}

Json = dict[str, Any]


class UnfinishedMoveError(TestbedError):
    """The move ended before its replacement ran."""


@dataclass(slots=True)
class Follower:
    """Follows the first move in a namespace."""

    testbed: Testbed
    screen: Screen
    watch: Watch
    trail: Trail
    namespace: str
    poll_seconds: float = 0.5

    def follow(self) -> Move:
        """Return the ended move; TestbedError when none is decided, or when it ends before its replacement runs."""
        self._tell_decision(self._awaited(bool, what="a move is decided", timeout_seconds=_DECISION_SECONDS))
        told = ""

        def has_ended(document: Json) -> bool:
            nonlocal told
            told = self._tell_phase(document, told=told)
            return told in _ENDED

        move = _finished(self._awaited(has_ended, what="the move has ended", timeout_seconds=_MOVE_SECONDS))
        self._tell_end(move)
        return move

    def _tell_decision(self, document: Json) -> None:
        spec = document["spec"]
        reason, predicted = spec["reason"], spec["predicted"]
        hits, scores = reason["hits"], reason["scores"]
        source, target = spec["sourceNodeName"], spec["targetNodeName"]
        self.watch.move = f"{spec['executor']['pod']}: {source} → {target}"
        self.screen.say(
            f"decided after {hits.get('low', 0)} low and {hits.get('high', 0)} high hits: {spec['executor']['pod']} "
            f"from {source} to {target}"
        )
        self.screen.say(
            f"predicted: {source} {float(scores['from']):.0f} → {float(predicted['hotAfter']):.0f}, "
            f"{target} {float(scores['to']):.0f} → {float(predicted['coldAfter']):.0f}; "
            f"cost of traffic {float(predicted.get('localityDelta', 0)):+.0%}"
        )

    def _tell_phase(self, document: Json, *, told: str) -> str:
        status = document.get("status", {})
        phase = str(status.get("phase", ""))
        if phase != told and phase not in ("", "Proposed", "Approved", *_ENDED):
            if phase in _MARKS:
                self.trail.mark_now(_MARKS[phase])
            replacement = status.get("replacement", {})
            landed = f": {replacement['pod']} runs on {replacement.get('node', '?')}" if phase == "Settling" else ""
            self.screen.say(f"{phase.lower()}{landed}")
        return phase or told

    def _tell_end(self, move: Move) -> None:
        self.trail.mark_now("judged")
        self.screen.say(f"{move.phase}, {move.reason}: {move.message}")
        self.screen.say(
            f"it left in {move.seconds_to_leave:.1f} s, its replacement ran {move.seconds_to_replace:.1f} s later "
            f"and counts after another {WARMUP_SECONDS:.0f} s"
        )

    def _awaited(self, holds: Callable[[Json], bool], *, what: str, timeout_seconds: float) -> Json:
        def current() -> Json | None:
            found = self._first_move()
            return found if found is not None and holds(found) else None

        def explain() -> str:
            return self.testbed.kubectl("get", "bpol,emove", "--all-namespaces", "--output=yaml")

        found = wait_until(
            current, what=what, timeout_seconds=timeout_seconds, poll_seconds=self.poll_seconds, explain=explain
        )
        assert found is not None  # noqa: S101 -- wait_until returns what is true
        return found

    def _first_move(self) -> Json | None:
        path = f"/apis/ballast.dev/v1alpha1/namespaces/{self.namespace}/executormoves"
        items = self.testbed.api.get(path)["items"]
        return min(items, key=lambda item: str(item["metadata"]["creationTimestamp"]), default=None)


def _finished(document: Json) -> Move:
    try:
        return Move.of(document)
    except KeyError as error:
        name, status = document["metadata"]["name"], document["status"]
        raise UnfinishedMoveError(
            f"the move {name} ended {status['phase']} before a replacement ran: {status.get('message', '')}"
        ) from error
