from __future__ import annotations

import pytest

from ballast.model import Executor, ExecutorUsage, Resources
from ballast.moves.loads import Loads, loads
from tests.builders import an_executor

SPEED = {"fast": 2.0, "slow": 1.0}


def using(name: str, cpu_cores: float | None, *, node: str = "slow", cores: float = 1.0) -> Executor:
    return an_executor(name, node=node, cores=cores, usage=ExecutorUsage(cpu_cores=cpu_cores))


def known(*executors: Executor, **lasting_ratio: float) -> Loads:
    return loads(executors, SPEED).with_lasting(lasting_ratio)


GREEDY, MODEST = using("a", 1.2), using("b", 0.4)


@pytest.mark.parametrize(
    ("lasted", "cores"),
    [(0.0, 0.8), (0.5, 1.0), (1.0, 1.2)],
    ids=["a burst counts as its application's mean", "half of it has lasted", "all of it has lasted"],
)
def test_what_an_executor_uses_beyond_the_mean_counts_as_far_as_it_has_lasted(lasted: float, cores: float) -> None:
    assert known(GREEDY, MODEST, slow=lasted).known(GREEDY) == pytest.approx(cores)


def test_where_strays_have_lasted_one_that_uses_less_than_the_mean_counts_by_that() -> None:
    assert known(GREEDY, MODEST, slow=1.0).known(MODEST) == pytest.approx(0.4)


def test_what_an_executor_claims_beyond_the_cores_of_those_measured_does_not_count() -> None:
    """Executors of one profile are alike. A user who creates pods could make any node look full by one."""
    claims = an_executor("c", node="slow", cores=10_000.0, usage=None)
    assert known(GREEDY, MODEST, claims).expected(claims) == pytest.approx(0.8)


def test_no_load_is_below_nothing() -> None:
    idle, busy = using("a", 0.0, cores=1.0), using("b", 2.0, cores=1.0)
    assert known(idle, busy, slow=1.0).known(idle) == 0.0


def test_means_are_of_work_and_the_same_work_takes_less_of_a_faster_node() -> None:
    here, there = using("a", 1.0, node="slow"), using("b", 0.5, node="fast")
    found = known(here, there)
    assert found.known(here) == pytest.approx(1.0)
    assert found.known(there) == pytest.approx(0.5)
    assert found.known(here, on="fast") == pytest.approx(0.5)
    assert found.astray([here, there]) == pytest.approx({"slow": 0.0, "fast": 0.0})


def test_what_lasts_moves_along_as_work() -> None:
    assert known(GREEDY, MODEST, slow=1.0).known(GREEDY, on="fast") == pytest.approx(0.6)


def test_of_an_application_without_metrics_nothing_is_known_and_what_it_requests_is_expected() -> None:
    silent = an_executor("a", node="slow", usage=None, requests=Resources(cpu_cores=3.0))
    assert known(silent).known(silent) is None
    assert known(silent).expected(silent) == 3.0


def test_executors_on_other_nodes_tell_the_mean_but_stray_on_no_node_of_the_pool() -> None:
    found = known(using("a", 1.0, node="slow"), using("b", 2.0, node="elsewhere"))
    assert found.known(using("c", None, node="slow")) == pytest.approx(1.5)
    assert set(found.strays) == {"uid-a"}
