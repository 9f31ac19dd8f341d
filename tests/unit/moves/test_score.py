from dataclasses import replace

import pytest

from ballast.model import Executor, ExecutorUsage, MovePhase, Node, NodeUsage, Phase, Resources, Weights
from ballast.moves.loads import loads
from ballast.moves.score import astray, projected, scores
from ballast.moves.speed import node_speeds
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, an_executor

CPU_AND_MEMORY = Weights(cpu=1.0, memory=0.5)


def test_the_score_is_the_largest_weighted_resource_in_percent() -> None:
    node = a_node("a", usage=NodeUsage(cpu_ratio=0.3, memory_ratio=0.8))
    assert scores([node], CPU_AND_MEMORY).by_node == {"a": 40.0}


def test_a_score_may_exceed_a_hundred() -> None:
    assert scores([a_node("a", cpu=1.3)], Weights()).by_node == {"a": 130.0}


def test_a_signal_that_no_node_has_drops_out_for_all() -> None:
    found = scores([a_node("a", cpu=0.5), a_node("b", cpu=0.2)], CPU_AND_MEMORY)
    assert found.by_node == {"a": 50.0, "b": 20.0}
    assert found.dropped == ("memory",)


def test_a_node_that_lacks_what_others_have_is_stale() -> None:
    full = a_node("a", usage=NodeUsage(cpu_ratio=0.5, memory_ratio=0.5))
    found = scores([full, a_node("b", cpu=0.2), a_node("c")], CPU_AND_MEMORY)
    assert found.by_node == {"a": 50.0}


def test_not_a_number_is_no_figure() -> None:
    found = scores([a_node("a", cpu=float("nan")), a_node("b", cpu=0.1)], Weights())
    assert found.by_node == {"b": 10.0}


POLICY = a_policy(window_seconds=100.0)
NODES = (a_node("hot", cores=2.0), a_node("cold", cores=1.0))
MEASURED = {"hot": 80.0, "cold": 20.0}


def _after(**changes: object) -> dict[str, float]:
    snapshot = a_snapshot(*NODES, **changes)
    return projected(snapshot, POLICY, loads(snapshot.executors, node_speeds(snapshot.nodes)), MEASURED)


@pytest.mark.parametrize("phase", [MovePhase.APPROVED, MovePhase.LEAVING, MovePhase.ARRIVING])
def test_a_move_under_way_counts_in_full_in_each_nodes_own_capacity(phase: MovePhase) -> None:
    move = a_move(phase=phase, ended_at=None, load_cores=0.5)
    assert _after(moves=(move,)) == {"hot": 55.0, "cold": 70.0}


@pytest.mark.parametrize(("ago", "cold"), [(0.0, 70.0), (50.0, 45.0), (100.0, 20.0), (500.0, 20.0)])
def test_it_fades_as_the_metric_window_catches_up(ago: float, cold: float) -> None:
    move = a_move(phase=MovePhase.SETTLING, ended_at=None, load_cores=0.5, arrived_at=NOW - ago)
    assert _after(moves=(move,))["cold"] == pytest.approx(cold)


@pytest.mark.parametrize("phase", [MovePhase.ARRIVING, MovePhase.SETTLING, MovePhase.FAILED])
def test_the_source_shows_its_loss_once_the_executor_has_gone_whenever_the_other_arrives(phase: MovePhase) -> None:
    move = a_move(phase=phase, ended_at=None, load_cores=0.5, left_at=NOW - 100.0)
    arrived = replace(move, arrived_at=None if phase is not MovePhase.SETTLING else NOW)
    found = _after(moves=(arrived,))
    assert found["hot"] == pytest.approx(80.0)
    assert found["cold"] == pytest.approx(20.0 if phase is MovePhase.FAILED else 70.0)


def test_a_refused_move_leaves_no_trace() -> None:
    assert _after(moves=(a_move(phase=MovePhase.REFUSED, load_cores=0.5),)) == MEASURED


def test_a_pod_that_has_just_been_bound_counts_with_what_it_asks_for() -> None:
    newcomer = an_executor("e-1", node="cold", running_since=NOW, requests=Resources(0.3), state_bytes=None)
    assert _after(executors=(newcomer,))["cold"] == pytest.approx(50.0)


@pytest.mark.parametrize("ahead", [1.0, 30.0, 7200.0])
def test_by_a_clock_that_is_ahead_nothing_counts_more_than_in_full(ahead: float) -> None:
    newcomer = an_executor("e-1", node="cold", running_since=NOW + ahead, requests=Resources(0.3), state_bytes=None)
    assert _after(executors=(newcomer,))["cold"] == pytest.approx(50.0)
    move = a_move(phase=MovePhase.SETTLING, ended_at=None, load_cores=0.5, left_at=NOW + ahead, arrived_at=NOW + ahead)
    assert _after(moves=(move,)) == pytest.approx({"hot": 55.0, "cold": 70.0})


@pytest.mark.parametrize(("waiting", "cold"), [(60.0, 50.0), (899.0, 50.0), (901.0, 20.0)])
def test_a_pod_that_never_starts_brings_no_load(waiting: float, cold: float) -> None:
    """Its image may never come; each node that a user puts one on would look full for ever."""
    stuck = an_executor(
        "e-1",
        node="cold",
        phase=Phase.PENDING,
        created_at=NOW - waiting,
        running_since=None,
        requests=Resources(0.3),
    )
    assert _after(executors=(stuck,))["cold"] == pytest.approx(cold)


@pytest.mark.parametrize(
    ("pods", "requests", "cold"),
    [
        pytest.param(1, 0.0, 60.0, id="one brings what a measured one uses"),
        pytest.param(50, 0.0, 60.0, id="all bring no more than the measured ones use"),
        pytest.param(4, 0.2, 100.0, id="or than they request"),
        pytest.param(2, 0.9, 100.0, id="each no more than a measured one uses"),
    ],
)
def test_executors_that_start_bring_together_what_they_request_or_what_measured_ones_use(
    pods: int, requests: float, cold: float
) -> None:
    """Pods that don't run yet cost their author nothing, and could be created again and again."""
    works = using("e-1", 0.4, node="hot")
    starting = [
        an_executor(f"s-{i}", node="cold", running_since=NOW, requests=Resources(requests), usage=None)
        for i in range(pods)
    ]
    assert _after(executors=(works, *starting))["cold"] == pytest.approx(cold)


def test_an_old_pod_is_in_the_metrics_already() -> None:
    assert _after(executors=(an_executor("e-1", node="cold"),)) == MEASURED


@pytest.mark.parametrize(
    ("phase", "arrived_at", "cold"),
    [
        (MovePhase.ARRIVING, None, 70.0),
        (MovePhase.SETTLING, NOW, 70.0),
        (MovePhase.FAILED, NOW, 70.0),
        (MovePhase.FAILED, None, 40.0),
    ],
)
def test_a_replacement_counts_once_with_its_move_or_when_that_failed_by_itself(
    phase: MovePhase, arrived_at: float | None, cold: float
) -> None:
    move = a_move(phase=phase, load_cores=0.5, left_at=NOW, arrived_at=arrived_at, replacement_uid="uid-new-1")
    newcomer = an_executor("new-1", node="cold", running_since=NOW, requests=Resources(0.2))
    assert _after(moves=(move,), executors=(newcomer,))["cold"] == pytest.approx(cold)


def test_a_replacement_of_a_move_by_hand_counts_as_any_newcomer() -> None:
    move = replace(
        a_move(phase=MovePhase.SETTLING, load_cores=0.0, left_at=NOW, arrived_at=NOW, replacement_uid="uid-new-1"),
        by_hand=True,
    )
    newcomer = an_executor("new-1", node="cold", running_since=NOW, requests=Resources(0.2))
    assert _after(moves=(move,), executors=(newcomer,))["cold"] == pytest.approx(_after(executors=(newcomer,))["cold"])
    assert _after(moves=(move,), executors=(newcomer,))["cold"] > _after()["cold"]


class TestAstray:
    """Points by which the executors of a node differ from the means of their applications."""

    def strayed(self, *executors: Executor, nodes: tuple[Node, ...] = NODES) -> dict[str, float]:
        snapshot = a_snapshot(*nodes, executors=executors)
        return astray(snapshot, POLICY, loads(snapshot.executors, node_speeds(snapshot.nodes)))

    def test_an_executor_counts_by_what_it_uses_beyond_its_applications_mean(self) -> None:
        found = self.strayed(using("a", 1.0, node="hot"), using("b", 0.4, node="cold"))
        assert found == pytest.approx({"hot": 15.0, "cold": -30.0})

    def test_a_single_executor_is_the_mean(self) -> None:
        assert self.strayed(using("a", 1.0, node="hot")) == {"hot": 0.0}

    def test_an_executor_with_more_cores_may_use_more(self) -> None:
        found = self.strayed(using("a", 1.0, node="hot", cores=2.0), using("b", 0.5, node="cold", cores=1.0))
        assert found == pytest.approx({"hot": 0.0, "cold": 0.0})

    def test_the_same_work_takes_more_of_a_core_on_a_slower_node(self) -> None:
        slow = replace(NODES[0], speed=0.5)
        found = self.strayed(using("a", 1.0, node="hot"), using("b", 0.5, node="cold"), nodes=(slow, NODES[1]))
        assert found == pytest.approx({"hot": 0.0, "cold": 0.0})

    def test_what_is_not_measured_does_not_count(self) -> None:
        assert self.strayed(an_executor("a", node="hot", usage=None)) == {}


def using(name: str, cpu_cores: float, *, node: str, cores: float = 1.0) -> Executor:
    return an_executor(name, node=node, cores=cores, usage=ExecutorUsage(cpu_cores=cpu_cores))
