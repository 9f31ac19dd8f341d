from ballast.model import Memory, Phase
from ballast.planner.plan import remembered
from tests.builders import a_snapshot, an_executor, gated

BEFORE = (("team/clicks", "ingest", (("a", 2),)),)


def test_running_executors_are_remembered_by_node() -> None:
    executors = (an_executor("e-1", node="a"), an_executor("e-2", node="b"), an_executor("e-3", node="a"))
    assert remembered(a_snapshot(executors=executors), Memory()) == (("team/clicks", "ingest", (("a", 2), ("b", 1))),)


def test_places_are_kept_while_executors_are_missing_or_on_their_way() -> None:
    memory = Memory(placements=BEFORE)
    assert remembered(a_snapshot(), memory) == BEFORE
    assert remembered(a_snapshot(executors=(an_executor("e-1", node="a"), gated("e-2"))), memory) == BEFORE


def test_one_that_has_ended_is_not_waited_for() -> None:
    executors = (an_executor("e-1", node="b"), an_executor("e-2", node="a", phase=Phase.ENDED))
    now_on_b = (("team/clicks", "ingest", (("b", 1),)),)
    assert remembered(a_snapshot(executors=executors), Memory(placements=BEFORE)) == now_on_b


def test_a_topology_that_exists_no_more_is_forgotten() -> None:
    assert remembered(a_snapshot(topologies=()), Memory(placements=BEFORE)) == ()
