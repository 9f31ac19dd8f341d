import random
from dataclasses import replace

import pytest

from ballast.model import (
    Component,
    Constraints,
    Executor,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Phase,
    PlacementMode,
    PlacementPolicy,
    Taint,
    Toleration,
    Workload,
)
from ballast.planner.leveling import changing_nodes, destinations
from ballast.planner.plan import plan
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor

RESERVED, DEDICATED = Taint("reserved", "", "NoSchedule"), Taint("dedicated", "streams", "NoExecute")

POLICY = a_policy(
    placement=PlacementPolicy(mode=PlacementMode.ENFORCE, max_executors_per_node_ratio=1.0),
    moves=MovesPolicy(mode=MovesMode.ENFORCE),
)
"""A window of 120 s, and executors count as young for 300 s."""
BATCH = a_topology(Component("ingest", workload=Workload.BATCH))


def an_executor_that_tolerates(name: str, *keys: str) -> Executor:
    tolerations = tuple(Toleration(key, "Exists") for key in keys)
    return an_executor(name, constraints=Constraints(tolerations=tolerations))


@pytest.mark.parametrize(
    ("tolerated", "expected"),
    [
        ([], {"plain"}),
        ([()], {"plain"}),
        ([(), ("dedicated",)], {"plain", "dedicated"}),
        ([("dedicated",), ("reserved",)], {"plain", "dedicated"}),
        ([("dedicated", "reserved")], {"plain", "dedicated", "both"}),
    ],
)
def test_a_tainted_node_takes_where_somebody_tolerates_all_its_taints(
    tolerated: list[tuple[str, ...]], expected: set[str]
) -> None:
    nodes = (
        a_node("plain"),
        a_node("dedicated", taints=(DEDICATED,)),
        a_node("both", taints=(RESERVED, DEDICATED)),
        a_node("cordoned", schedulable=False),
    )
    executors = tuple(an_executor_that_tolerates(f"e-{i}", *keys) for i, keys in enumerate(tolerated))
    assert destinations(a_snapshot(*nodes, executors=executors)) == expected


@pytest.mark.parametrize(
    ("executor", "nodes"),
    [
        (an_executor("e-1", node="a", running_since=NOW - 299), {"a"}),
        (an_executor("e-1", node="a", running_since=NOW - 300), set()),
        (an_executor("e-1", node="a", phase=Phase.PENDING), {"a"}),
        (an_executor("e-1", node=None, phase=Phase.PENDING), set()),
        (an_executor("e-1", node="a", phase=Phase.LEAVING), set()),
        (an_executor("e-1", node="a", component="other", running_since=NOW), set()),
    ],
)
def test_a_node_is_changing_while_a_streaming_executor_begins_there(executor: Executor, nodes: set[str]) -> None:
    assert changing_nodes(a_snapshot(a_node("a"), executors=(executor,)), POLICY, NOW) == nodes


def test_executors_of_batch_jobs_come_and_go_all_the_time() -> None:
    young = an_executor("e-1", node="a", running_since=NOW)
    assert changing_nodes(a_snapshot(a_node("a"), executors=(young,), topologies=(BATCH,)), POLICY, NOW) == set()


@pytest.mark.parametrize(
    ("move", "nodes"),
    [
        (a_move(phase=MovePhase.LEAVING, ended_at=None), {"hot", "cold"}),
        (a_move(phase=MovePhase.SETTLING, ended_at=None), {"hot", "cold"}),
        (a_move(phase=MovePhase.SUCCEEDED, ended_at=NOW - 119), {"hot", "cold"}),
        (a_move(phase=MovePhase.SUCCEEDED, ended_at=NOW - 120), set()),
        (a_move(phase=MovePhase.PROPOSED, ended_at=None), set()),
        (a_move(phase=MovePhase.REFUSED, ended_at=NOW), set()),
    ],
)
def test_both_ends_of_a_move_are_changing_until_the_metrics_show_it(move: Move, nodes: set[str]) -> None:
    assert changing_nodes(a_snapshot(moves=(move,)), POLICY, NOW) == nodes


@pytest.mark.parametrize("seed", range(3))
def test_the_start_of_a_job_is_not_taken_for_noise(seed: int) -> None:
    """Six minutes of start, fourteen of quiet, then a lasting gap: eight hits take fifteen minutes, passes overlap."""
    chance = random.Random(seed)
    executors = tuple(
        an_executor(f"e-{number}", node=f"n{number % 6}", cpu=0.5, running_since=NOW) for number in range(12)
    )
    memory = Memory()
    for minute in range(45):
        scores = [chance.uniform(20, 100) if minute < 6 else chance.gauss(60, 1.5) for _ in range(6)]
        scores[0] += 22 if minute >= 20 else 0
        nodes = (a_node(f"n{number}", cpu=score / 100) for number, score in enumerate(scores))
        at = NOW + 60.0 * minute
        decided, memory = plan(replace(a_snapshot(*nodes, executors=executors), taken_at=at), POLICY, memory, at)
        if decided.moves:
            break
    assert [move.source for move in decided.moves] == ["n0"]
    assert minute >= 20
