from dataclasses import replace

import pytest

from ballast.model import Component, MovePhase, Phase, PlacementMode, PlacementPolicy, Reason
from ballast.planner.release import releases
from tests.builders import NOW, a_move, a_snapshot, a_topology, an_executor, gated

ENFORCE = PlacementPolicy(mode=PlacementMode.ENFORCE)


def _names(executors: object) -> list[str]:
    return [e.name for e in executors]  # type: ignore[attr-defined]


def test_a_complete_set_goes_at_once() -> None:
    topology = a_topology(Component("ingest", expected=2))
    snapshot = a_snapshot(executors=(gated("e-1", since=NOW), gated("e-2", since=NOW)), topologies=(topology,))
    assert _names(releases(snapshot, ENFORCE, NOW).place) == ["e-1", "e-2"]


@pytest.mark.parametrize(
    ("first", "last", "goes"),
    [
        pytest.param(1.0, 1.0, False, id="younger than the debounce"),
        pytest.param(2.0, 2.0, True, id="no newcomer for the debounce"),
        pytest.param(9.0, 0.5, False, id="still arriving"),
        pytest.param(10.0, 0.5, True, id="the gate timeout is up"),
    ],
)
def test_an_incomplete_set_waits_for_quiet_or_for_the_timeout(first: float, last: float, *, goes: bool) -> None:
    snapshot = a_snapshot(executors=(gated("e-1", since=NOW - first), gated("e-2", since=NOW - last)))
    found = releases(snapshot, ENFORCE, NOW)
    assert bool(found.place) is goes
    assert len(found.holds) == (0 if goes else 2)


def test_a_hold_says_until_when() -> None:
    found = releases(a_snapshot(executors=(gated("e-1", since=NOW - 1),)), ENFORCE, NOW)
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.WAITING_FOR_SET, NOW + 1)]


def test_latecomers_of_a_running_component_go_at_once() -> None:
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)))
    assert _names(releases(snapshot, ENFORCE, NOW).place) == ["e-9"]


def test_the_clock_has_not_started_while_a_foreign_gate_holds_the_pod() -> None:
    waiting = gated("e-1", last_gate_since=None, gates=("kueue.x-k8s.io/admission",))
    found = releases(a_snapshot(executors=(waiting,)), ENFORCE, NOW + 10_000)
    assert not found.place
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.FOREIGN_GATE, None)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"scheduler": "volcano"}, Reason.FOREIGN_SCHEDULER),
        ({"gates": ("kueue.x-k8s.io/topology",), "last_gate_since": None}, Reason.FOREIGN_GATE),
        ({"enforced": False}, Reason.NOT_ENFORCED),
    ],
)
def test_ballast_stands_aside_for_others(changes: dict[str, object], reason: Reason) -> None:
    executor = replace(gated("e-1"), **changes)  # type: ignore[arg-type]
    found = releases(a_snapshot(executors=(executor,)), ENFORCE, NOW)
    assert [(e.name, why) for e, why in found.unpinned] == [("e-1", reason)]


@pytest.mark.parametrize("mode", [PlacementMode.DISABLED, PlacementMode.RECOMMEND])
def test_a_gate_found_where_placement_is_not_enforced_is_removed_at_once(mode: PlacementMode) -> None:
    found = releases(a_snapshot(executors=(gated("e-1"),)), PlacementPolicy(mode=mode), NOW)
    assert [why for _, why in found.unpinned] == [Reason.NOT_ENFORCED]


def test_a_second_application_of_the_topology_is_a_set_of_its_own() -> None:
    other = an_executor("x-1", component="sessions", application="spark-other", phase=Phase.RUNNING, node="a")
    found = releases(a_snapshot(executors=(other, gated("e-1", since=NOW))), ENFORCE, NOW)
    assert not found.place


LEAVING = a_move(phase=MovePhase.LEAVING, ended_at=None, application="spark-app", resource_profile="0")


def test_what_a_move_may_be_waiting_for_is_not_given_away() -> None:
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)), moves=(LEAVING,))
    found = releases(snapshot, ENFORCE, NOW)
    assert not found.place
    assert [(h.reason, h.until) for h in found.holds] == [(Reason.IN_FLIGHT, NOW + 10)]


def test_a_replacement_that_its_move_has_recognised_is_the_moves_own_business() -> None:
    arriving = replace(LEAVING, phase=MovePhase.ARRIVING, replacement_uid="uid-e-9")
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW)), moves=(arriving,))
    found = releases(snapshot, ENFORCE, NOW)
    assert not found.place
    assert not found.holds


@pytest.mark.parametrize("replacement", [None, "uid-e-9"])
def test_even_so_nobody_waits_beyond_the_gate_timeout(replacement: str | None) -> None:
    move = replace(LEAVING, phase=MovePhase.ARRIVING, replacement_uid=replacement)
    snapshot = a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-9", since=NOW - 10)), moves=(move,))
    assert _names(releases(snapshot, ENFORCE, NOW).place) == ["e-9"]
