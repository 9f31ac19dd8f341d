"""The table of faults names tests that exist, and the checker of invariants can find what it looks for."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from ballast.api.duration import Duration
from ballast.api.profile import Budget, BudgetScope
from tests.faults.invariants import (
    MOST_WRITES,
    Begun,
    _endless_writes,
    _foreign_writes,
    _Gated,
    _gated_too_long,
    _overspent,
    _too_many_under_way,
    _unordered_evictions,
    begun,
)
from tests.testbed.audit import Request

JSON = dict[str, Any]
ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "tests/faults/README.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)(?:\[([^\]]+)\])?`", TABLE)))


def test_every_row_of_the_table_names_a_test() -> None:
    rows = [line for line in TABLE.splitlines() if line.startswith("| ") and not line.startswith("| Fault ")]
    assert len(rows) > 40
    assert [row for row in rows if "`tests/" not in row] == []


@pytest.mark.parametrize(("path", "name"), sorted({(path, name) for path, name, _ in NAMED}))
def test_a_test_that_the_table_names_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert name in found


def test_every_test_of_faults_is_in_the_table() -> None:
    found = {
        f"{path.relative_to(ROOT)}::{name}"
        for path in (ROOT / "tests/faults").glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = {f"{path}::{name}" for path, name, _ in NAMED}
    assert {each for each in found - named if "undisturbed_the" not in each} == set()


def asked(verb: str, resource: str, *, at: int = 0, name: str = "e1", body: Any = None, answer: Any = None) -> Request:
    return Request("operator", verb, resource, "ns", name, 200, "/", f"2026-01-01T00:00:{at:02}Z", body, answer)


def evicted(uid: str, *, at: int) -> Request:
    return asked("create", "pods/eviction", at=at, body={"deleteOptions": {"preconditions": {"uid": uid}}})


def written(phase: str, *, at: int, name: str = "m1") -> Request:
    return asked("patch", "executormoves/status", at=at, name=name, answer={"status": {"phase": phase}})


MOVE: JSON = {"metadata": {"namespace": "ns", "name": "m1"}, "spec": {"executor": {"pod": "e1", "uid": "u1"}}}


def test_a_pod_that_was_gated_too_long_is_found() -> None:
    assert len(list(_gated_too_long([_Gated("p", 10.0, 26.0), _Gated("q", 10.0, 24.0)], 15.0))) == 1


@pytest.mark.parametrize(
    ("requests", "violations"),
    [
        ([written("Leaving", at=1), evicted("u1", at=2)], 0),
        ([written("Leaving", at=1), evicted("u2", at=2)], 1),
        ([written("Approved", at=1), evicted("u1", at=2)], 1),
        ([written("Leaving", at=1), written("Refused", at=2), evicted("u1", at=3)], 1),
        ([evicted("u1", at=2)], 1),
    ],
    ids=["ordered", "of another pod", "before it leaves", "after it ended", "without a phase"],
)
def test_an_eviction_that_no_open_move_ordered_is_found(requests: list[Request], violations: int) -> None:
    assert len(list(_unordered_evictions(requests, [MOVE]))) == violations


def test_more_moves_under_way_than_the_budget_allows_are_found() -> None:
    both = [written("Leaving", at=1), written("Arriving", at=2, name="m2"), written("Settling", at=3)]
    assert len(list(_too_many_under_way(both, 1))) == 1
    assert list(_too_many_under_way(both, 2)) == []


def ordered(name: str, *, topology: str = "clicks", source: str = "hot", target: str = "cold") -> JSON:
    spec = {"topologyName": topology, "sourceNodeName": source, "targetNodeName": target}
    return {"metadata": {"namespace": "ns", "name": name}, "spec": spec}


def test_a_move_begins_with_its_approval_once_its_executor_was_asked_to_leave() -> None:
    done = [
        written("Approved", at=1),
        written("Leaving", at=5),
        written("Leaving", at=7),
        written("Approved", at=2, name="refused"),
        written("Refused", at=3, name="refused"),
        written("Leaving", at=4, name="at once"),
    ]
    found = begun(done, [ordered("m1"), ordered("refused"), ordered("at once", topology="views")])
    assert [(each.topology, each.nodes, each.at % 60) for each in found] == [
        ("views", ("hot", "cold"), 4.0),
        ("clicks", ("hot", "cold"), 1.0),
    ]


def spending(moves: int, *, scope: BudgetScope = BudgetScope.POOL, percent: int | None = None) -> tuple[Budget, ...]:
    return (Budget(moves=moves, per=Duration.parse("10s"), scope=scope, percent=percent),)


def nightly(moves: int, *, duration: str = "2h") -> tuple[Budget, ...]:
    """Windows begin at half past midnight in Berlin, half an hour before the epoch began."""
    length = Duration.parse(duration)
    return (Budget(moves=moves, schedule="30 0 * * *", time_zone="Europe/Berlin", duration=length),)


PAIR = [Begun("ns", "clicks", ("hot", "cold"), 1.0), Begun("ns", "views", ("warm", "cold"), 10.0)]
NIGHTS = [PAIR[0], Begun("ns", "clicks", ("hot", "cold"), 86_410.0)]
LATE = [PAIR[0], Begun("ns", "clicks", ("hot", "cold"), 11.0)]


@pytest.mark.parametrize(
    ("moves", "versions", "violations"),
    [
        pytest.param(PAIR, {spending(2)}, 0, id="as many as allowed"),
        pytest.param(PAIR, {spending(1)}, 1, id="one too many"),
        pytest.param(LATE, {spending(1)}, 0, id="one after the other"),
        pytest.param(PAIR, {spending(0, percent=50)}, 0, id="half of four executors"),
        pytest.param(PAIR, {spending(0, percent=25)}, 1, id="a quarter of them"),
        pytest.param(PAIR, {spending(1, scope=BudgetScope.TOPOLOGY)}, 0, id="one of each topology"),
        pytest.param(PAIR, {spending(1, scope=BudgetScope.NODE)}, 1, id="two to one node"),
        pytest.param(PAIR, {spending(1), ()}, 0, id="there was no budget for a time"),
        pytest.param([], {spending(1)}, 0, id="none"),
        pytest.param(PAIR, {nightly(1)}, 1, id="two in one window"),
        pytest.param(PAIR, {nightly(2)}, 0, id="as many as a window allows"),
        pytest.param(NIGHTS, {nightly(1)}, 0, id="in the windows of two nights"),
        pytest.param(NIGHTS, {nightly(0)}, 1, id="in a window that allows none"),
        pytest.param(PAIR, {nightly(0, duration="10m")}, 0, id="after the window"),
    ],
)
def test_moves_beyond_a_budget_are_found(
    moves: list[Begun], versions: set[tuple[Budget, ...]], violations: int
) -> None:
    found = list(_overspent(moves, {"ns": versions, "other": {spending(0)}}, {"ns": 4}))
    assert len(found) == violations, found


@pytest.mark.parametrize(
    ("request_", "violations"),
    [
        (asked("patch", "pods", body=[{"op": "remove", "path": "/spec/schedulingGates/0"}]), 0),
        (asked("patch", "pods", body=[{"op": "add", "path": "/metadata/labels/x", "value": "y"}]), 1),
        (asked("patch", "balancingpolicies"), 1),
        (asked("patch", "sparktopologies/status"), 0),
        (asked("list", "secrets"), 0),
    ],
)
def test_a_write_to_what_is_a_users_is_found(request_: Request, violations: int) -> None:
    assert len(list(_foreign_writes([request_]))) == violations


def test_an_object_that_is_written_without_end_is_found() -> None:
    again = [written("Leaving", at=1)] * MOST_WRITES
    others = [asked("update", "leases"), asked("get", "pods")] * (MOST_WRITES + 1)
    assert list(_endless_writes([*again, written("Leaving", at=2, name="m2"), *others], MOST_WRITES)) == []
    assert list(_endless_writes([*again, written("Arriving", at=3)], MOST_WRITES)) == [
        f"{MOST_WRITES + 1} times patch executormoves/status ns/m1"
    ]
