from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from ballast.model import Executor, ExecutorUsage, Node, Snapshot
from ballast.moves.speed import INSTANCE_TYPE, Speeds, node_speeds, observed
from tests.builders import NOW, a_node, a_snapshot, an_executor

WINDOW = 120.0


def machine(name: str, kind: str | None, *, speed: float = 1.0) -> Node:
    labels = {} if kind is None else {INSTANCE_TYPE: kind}
    return replace(a_node(name), labels=labels, speed=speed)


NODES = (machine("o1", "old"), machine("o2", "old"), machine("n1", "new"))


def working(name: str, node: str, *, records: float | None, cores: float = 1.0, app: str = "app") -> Executor:
    return an_executor(
        name, node=node, application=app, usage=ExecutorUsage(cpu_cores=cores, records_per_second=records)
    )


def fleet(ratio: float, *, app: str = "app", new: int = 2) -> list[Executor]:
    """Executors on both types; those on the new machines do `ratio` times the records per second of CPU."""
    old = [working(f"{app}-o{i}", f"o{i}", records=1000.0, app=app) for i in (1, 2)]
    return [*old, *(working(f"{app}-n{i}", "n1", records=500.0 * ratio, cores=0.5, app=app) for i in range(new))]


def after(
    executors: Sequence[Executor], *, passes: int = 10, before: Speeds | None = None, nodes: Sequence[Node] = NODES
) -> Speeds:
    learned = before or Speeds()
    snapshot = a_snapshot(*nodes, executors=tuple(executors))
    start = learned.last_at_seconds or NOW
    for turn in range(1, passes + 1):
        learned = observed(learned, snapshot, window_seconds=WINDOW, now=start + turn * WINDOW)
    return learned


def test_a_type_that_does_twice_the_records_per_second_of_cpu_is_twice_as_fast() -> None:
    assert node_speeds(NODES, after(fleet(2.0))) == {"o1": 1.0, "o2": 1.0, "n1": 2.0}


def test_what_is_learned_holds_for_nodes_of_the_type_on_which_nothing_runs_yet() -> None:
    assert node_speeds([*NODES, machine("n2", "new")], after(fleet(2.0)))["n2"] == 2.0


@pytest.mark.parametrize(
    "executors",
    [
        pytest.param(fleet(1.08), id="a difference that caches and neighbors make, too"),
        pytest.param(fleet(2.0, new=1), id="a single executor, which may have unlike data"),
        pytest.param([*fleet(2.0)[:2], *fleet(2.0, app="other")[2:]], id="no application on both types"),
        pytest.param([replace(e, usage=ExecutorUsage(cpu_cores=1.0)) for e in fleet(2.0)], id="no records measured"),
        pytest.param([replace(e, usage=None) for e in fleet(2.0)], id="nothing measured"),
        pytest.param(
            [working(e.name, e.node or "", records=0.0) for e in fleet(2.0)], id="executors that read nothing"
        ),
    ],
)
def test_types_count_as_equally_fast_unless_enough_shows_otherwise(executors: list[Executor]) -> None:
    assert set(node_speeds(NODES, after(executors)).values()) == {1.0}


def test_a_speed_is_used_once_it_has_been_seen_for_a_quarter_of_an_hour() -> None:
    few, enough = after(fleet(2.0), passes=7), after(fleet(2.0), passes=8)
    assert (node_speeds(NODES, few)["n1"], node_speeds(NODES, enough)["n1"]) == (1.0, 2.0)


def test_passes_within_one_metric_window_count_once() -> None:
    snapshot, learned = a_snapshot(*NODES, executors=tuple(fleet(2.0))), after(fleet(2.0), passes=1)
    assert observed(learned, snapshot, window_seconds=WINDOW, now=NOW + WINDOW + 30.0) == learned


def test_a_clock_that_was_set_back_does_not_stop_learning() -> None:
    snapshot, learned = a_snapshot(*NODES, executors=tuple(fleet(2.0))), after(fleet(2.0), passes=1)
    again = observed(learned, snapshot, window_seconds=WINDOW, now=NOW - 3600.0)
    assert again.types[0].seen_seconds > learned.types[0].seen_seconds


def test_a_pause_counts_no_longer_than_its_two_passes_tell() -> None:
    snapshot, learned = a_snapshot(*NODES, executors=tuple(fleet(2.0))), after(fleet(2.0), passes=1)
    again = observed(learned, snapshot, window_seconds=WINDOW, now=NOW + 86_400.0)
    assert node_speeds(NODES, again)["n1"] == 1.0


def test_applications_weigh_by_the_cpu_that_both_types_give_them() -> None:
    small = [replace(e, usage=ExecutorUsage(cpu_cores=0.01, records_per_second=10.0)) for e in fleet(1.0, app="small")]
    assert node_speeds(NODES, after([*fleet(2.0), *small]))["n1"] == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize(("ratio", "speed"), [(100.0, 4.0), (0.01, 0.25)])
def test_a_speed_stays_within_what_machines_of_one_pool_can_be(ratio: float, speed: float) -> None:
    assert node_speeds(NODES, after(fleet(ratio)))["n1"] == speed


def test_an_application_that_claims_absurd_records_moves_a_speed_by_no_more_than_the_cpu_that_it_uses() -> None:
    """Its executors may export any number; here they use a hundredth of the CPU of the others."""
    lying = [
        replace(
            executor, usage=ExecutorUsage(cpu_cores=0.005, records_per_second=1e-9 if "-o" in executor.name else 1e9)
        )
        for executor in fleet(1.0, app="lying")
    ]
    assert node_speeds(NODES, after([*fleet(2.0), *lying]))["n1"] == pytest.approx(2.0, rel=0.02)


def test_a_type_that_becomes_slower_is_learned_again() -> None:
    once = after(fleet(2.0), passes=60)
    assert node_speeds(NODES, after(fleet(1.0), passes=120, before=once))["n1"] == 1.0


def test_declared_speeds_count_and_nothing_is_learned_next_to_them() -> None:
    declared = (*NODES[:2], machine("n1", "new", speed=1.5))
    learned = after(fleet(2.0), nodes=declared)
    assert learned == Speeds()
    assert node_speeds(declared, after(fleet(2.0)))["n1"] == 1.5


def test_without_machine_types_nothing_is_learned() -> None:
    assert after(fleet(2.0), nodes=[replace(node, labels={}) for node in NODES]) == Speeds()


def test_when_another_type_has_the_most_nodes_learning_begins_again() -> None:
    grown = [*NODES, machine("n2", "new"), machine("n3", "new")]
    again = after(fleet(2.0), passes=1, before=after(fleet(2.0)), nodes=grown)
    assert again.reference == "new"
    assert node_speeds(grown, again) == dict.fromkeys(("o1", "o2", "n1", "n2", "n3"), 1.0)


def test_without_metrics_what_was_learned_stays() -> None:
    learned = after(fleet(2.0))
    snapshot: Snapshot = a_snapshot(*NODES, executors=tuple(fleet(2.0)))
    blind = replace(snapshot, metrics=replace(snapshot.metrics, available=False))
    assert observed(learned, blind, window_seconds=WINDOW, now=NOW + 86_400.0) == learned
