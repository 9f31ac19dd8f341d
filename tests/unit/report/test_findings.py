"""Slow nodes and skewed executors are told apart."""

from __future__ import annotations

from ballast.model import Executor
from ballast.report.findings import Slowness, slowness
from tests.builders import a_node, a_policy, a_snapshot, an_executor


def found(*executors: Executor) -> Slowness:
    nodes = [a_node(f"n{i}", cpu=0.9 if i == 0 else 0.3, pressure=0.4 if i == 0 else 0.0) for i in range(4)]
    return slowness(a_snapshot(*nodes, executors=executors), a_policy())


def timed(seconds: float, bytes_per_task: float = 100.0, *, node: int) -> Executor:
    return an_executor(f"exec-{node}", node=f"n{node}", task_seconds=seconds, task_bytes=bytes_per_task)


def test_a_node_whose_executor_is_slow_at_equal_bytes_is_slow() -> None:
    seen = found(timed(2.0, node=0), timed(1.0, node=1), timed(1.0, node=2))
    assert [(each.node, each.slowness, each.pressure_ratio) for each in seen.nodes] == [("n0", 2.0, 0.4)]
    assert seen.skewed == ()


def test_an_executor_with_twice_the_bytes_is_skewed_and_its_node_is_not_slow() -> None:
    seen = found(timed(2.0, 200.0, node=0), timed(1.0, node=1), timed(1.0, node=2))
    assert seen.nodes == ()
    assert [(each.executor, each.bytes_ratio) for each in seen.skewed] == [("team/exec-0", 2.0)]


def test_without_task_metrics_nothing_is_known() -> None:
    seen = found(an_executor("exec-1", node="n0"), an_executor("exec-2", node="n1"))
    assert (seen.measured_executors, seen.nodes, seen.skewed) == (0, (), ())
