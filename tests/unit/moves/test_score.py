from ballast.model import NodeUsage, Weights
from ballast.moves.score import scores
from tests.builders import a_node

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
