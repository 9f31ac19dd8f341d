from ballast.model import Pin, Placement, Resources
from ballast.moves.score import loads
from ballast.planner.plan import reservations, with_placed
from tests.builders import GIB, a_node, a_policy, a_snapshot, gated

NODES = (a_node("a", cores=4.0), a_node("b", cores=0.0))
WAITING = (gated("e1"), gated("e2", requests=Resources(2.0, GIB, 1)), gated("e3"))
SNAPSHOT = a_snapshot(*NODES, executors=WAITING)


def _on(name: str, node: str | None) -> Placement:
    return Placement(f"team/{name}", f"uid-{name}", node, (), Pin.NONE)


def _ahead(*placements: Placement) -> dict[str, float]:
    return with_placed({"a": 10.0, "b": 20.0}, SNAPSHOT, a_policy(), loads(WAITING), placements)


def test_what_a_pass_places_is_spoken_for_node_by_node() -> None:
    booked = reservations({}, SNAPSHOT, [_on("e1", "a"), _on("e2", "a"), _on("e3", None), _on("gone", "b")])
    assert booked == {"a": Resources(3.0, 2 * GIB, 2)}


def test_it_comes_on_top_of_what_moves_under_way_need() -> None:
    reserved = {"a": Resources(1.0, GIB, 1), "b": Resources(1.0)}
    booked = reservations(reserved, SNAPSHOT, [_on("e2", "a")])
    assert booked == {"a": Resources(3.0, 2 * GIB, 2), "b": Resources(1.0)}
    assert reserved["a"] == Resources(1.0, GIB, 1)


def test_placed_executors_bring_their_load_to_the_nodes_own_capacity() -> None:
    assert _ahead(_on("e1", "a"), _on("e2", "a")) == {"a": 85.0, "b": 20.0}


def test_a_node_without_a_figure_or_without_cores_gets_no_figure_by_it() -> None:
    assert _ahead(_on("e1", "elsewhere")) == {"a": 10.0, "b": 20.0}
    assert _ahead(_on("e1", "b")) == {"a": 10.0, "b": 20.0}
