"""How far a component may spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import Executor, Memory, Node, Phase, PlacementPolicy, Policy, Resources, Scope
from ballast.placement.scope import by_topology, next_scopes, stepped
from tests.builders import GIB, a_node, a_snapshot, an_executor, gated

LOADS = {Scope.NODE: 3.0, Scope.RACK: 0.9, Scope.ZONE: 0.5, Scope.CLUSTER: 0.1}


@pytest.mark.parametrize(
    ("before", "loads", "after"),
    [
        (None, LOADS, Scope.RACK),
        (Scope.NODE, LOADS, Scope.RACK),
        (Scope.RACK, LOADS, Scope.ZONE),
        (Scope.ZONE, LOADS, Scope.ZONE),
        (Scope.CLUSTER, LOADS, Scope.CLUSTER),
        (Scope.CLUSTER, {**LOADS, Scope.ZONE: 0.19}, Scope.ZONE),
        (Scope.CLUSTER, {**LOADS, Scope.ZONE: 0.2}, Scope.CLUSTER),
        (Scope.ZONE, {**LOADS, Scope.ZONE: 0.8}, Scope.ZONE),
        (Scope.CLUSTER, {**LOADS, Scope.CLUSTER: 5.0}, Scope.CLUSTER),
        (Scope.RACK, {Scope.NODE: 1.0, Scope.ZONE: 0.5, Scope.CLUSTER: 0.1}, Scope.ZONE),
        (Scope.NODE, {Scope.NODE: 0.1, Scope.CLUSTER: 0.1}, Scope.NODE),
    ],
)
def test_one_step_at_a_time_by_the_bounds(before: Scope | None, loads: dict[Scope, float], after: Scope) -> None:
    assert stepped(before, loads, PlacementPolicy()) is after


UNLIMITED = Policy("p", placement=PlacementPolicy(max_executors_per_node_ratio=1.0))


def scopes(*executors: Executor, memory: Memory | None = None, policy: Policy | None = None) -> list[str]:
    nodes = [
        a_node(f"{zone}{rack}{n}", zone=zone, rack=rack, cores=2.0) for zone in "ab" for rack in "rs" for n in "12"
    ]
    snapshot = a_snapshot(*nodes, executors=executors)
    return [scope for _, _, scope in next_scopes(snapshot, policy or UNLIMITED, memory or Memory())]


def test_a_component_that_fills_its_node_may_use_the_rack() -> None:
    assert scopes(*(an_executor(f"e-{n}", node="ar1") for n in range(3))) == ["Node"]
    assert scopes(*(an_executor(f"e-{n}", node="ar1") for n in range(2)), *(gated(f"g-{n}") for n in range(2))) == [
        "Rack"
    ]


def test_it_goes_on_from_the_scope_that_it_had() -> None:
    memory = Memory(scopes=(("team/clicks", "ingest", "Rack"),))
    many = [an_executor(f"e-{n}", node=f"ar{n % 2 + 1}") for n in range(4)]
    assert scopes(*many, *(gated(f"g-{n}") for n in range(4)), memory=memory) == ["Zone"]


def test_a_word_that_is_no_scope_counts_as_none() -> None:
    """It is in status, where another version may have written it."""
    key = an_executor("a").topology, an_executor("a").component
    odd = Memory(scopes=((*key, "Region"),))
    assert scopes(an_executor("a", node="n1"), memory=odd) == scopes(an_executor("a", node="n1"))
    assert by_topology(odd.scopes) == {}
    assert by_topology(((*key, "Zone"),)) == {key[0]: {key[1]: Scope.ZONE}}


@pytest.mark.parametrize(
    ("homes", "scope"),
    [(("ar1",), "Node"), (("ar1", "ar2"), "Rack"), (("ar1", "as1"), "Zone"), (("ar1", "br1"), "Cluster")],
)
def test_it_begins_at_the_nearest_scope_that_holds_it(homes: tuple[str, ...], scope: str) -> None:
    assert scopes(*on(*homes)) == [scope]


def test_a_component_that_is_nowhere_has_no_scope() -> None:
    assert scopes(gated("g-1")) == []


def test_what_one_node_may_not_hold_does_not_count_as_its_room() -> None:
    few = PlacementPolicy(max_executors_per_node_ratio=0.5)
    running = [an_executor(f"e-{n}", node="ar1") for n in range(2)]
    assert scopes(*running) == ["Node"]
    assert scopes(*running, policy=Policy("p", placement=few)) == ["Rack"]


POOL = tuple(
    a_node(f"{zone}{rack}{n}", zone=zone, rack=rack, cores=2.0) for zone in "ab" for rack in "rs" for n in "12"
)


def stays_up_to(load: float, at: Scope, *executors: Executor, nodes: tuple[Node, ...] = POOL) -> bool:
    """Whether the component's load at the scope is just this: a higher bound of it keeps the scope, a lower one not."""
    memory = Memory(scopes=(("team/clicks", "ingest", at.value),))

    def after(bound: float) -> str:
        bounds = PlacementPolicy(
            max_executors_per_node_ratio=1.0, scope_higher_bound_ratio=bound, scope_lower_bound_ratio=0.0
        )
        snapshot = a_snapshot(*nodes, executors=executors)
        ((_, _, scope),) = next_scopes(snapshot, Policy("p", placement=bounds), memory)
        return scope

    return after(load) == at and after(load - 1e-6) != at


def on(*nodes: str, **changes: Any) -> list[Executor]:
    return [an_executor(f"e-{number}", node=node, **changes) for number, node in enumerate(nodes)]


@pytest.mark.parametrize(
    ("at", "load"), [(Scope.NODE, 3 / (2 + 2)), (Scope.RACK, 3 / (3 + 4)), (Scope.ZONE, 3 / (3 + 8))]
)
def test_the_load_is_the_component_over_what_its_homes_place_could_hold(at: Scope, load: float) -> None:
    """Two on one node and one next to it; every node has room for two more."""
    assert stays_up_to(load, at, *on("ar1", "ar1", "ar2"))


def test_those_elsewhere_count_for_the_load_but_not_for_what_is_held_here() -> None:
    assert stays_up_to(3 / (2 + 2), Scope.NODE, *on("ar1", "ar1", "bs2"))
    assert stays_up_to(3 / (2 + 4), Scope.RACK, *on("ar1", "ar1", "bs2"))
    assert stays_up_to(3 / (2 + 8), Scope.ZONE, *on("ar1", "ar1", "bs2"))


def test_those_that_wait_or_are_bound_count_and_those_that_go_do_not() -> None:
    waiting = (gated("g-1"), an_executor("p-1", node=None, phase=Phase.PENDING))
    going = (an_executor("l-1", node="ar1", phase=Phase.LEAVING), an_executor("x-1", node="ar1", phase=Phase.ENDED))
    assert stays_up_to(3 / (1 + 2), Scope.NODE, *on("ar1"), *waiting, *going)


def test_nodes_that_are_closed_hold_no_more_than_they_do() -> None:
    closed = tuple(a_node(n.name, zone="a", rack="r", cores=2.0, ready=n.name == "ar1") for n in POOL[:2])
    assert stays_up_to(2 / (2 + 2), Scope.RACK, *on("ar1", "ar2"), nodes=(*closed, *POOL[2:]))


def test_the_largest_template_counts() -> None:
    large = an_executor("e-9", node="ar1", requests=Resources(2.0, GIB, 1))
    assert stays_up_to(3 / (3 + 1), Scope.NODE, *on("ar1", "ar1"), large)
    more_memory = an_executor("e-9", node="ar1", requests=Resources(1.0, 16 * GIB, 1))
    assert stays_up_to(3 / (3 + 1), Scope.NODE, *on("ar1", "ar1"), more_memory)
    with_gpu = an_executor("e-9", node="ar1", requests=Resources(1.5, GIB, 1, (("nvidia.com/gpu", 1.0),)))
    assert stays_up_to(3 / (3 + 0), Scope.NODE, *on("ar1", "ar1"), with_gpu)


def test_of_templates_that_differ_in_extended_resources_alone_the_order_of_lists_decides_nothing() -> None:
    nodes = tuple(replace(n, allocatable=n.allocatable.plus(Resources(extended=(("gpu", 2.0),)))) for n in POOL)
    plain = on("ar1", requests=Resources(0.5, GIB, 1))
    with_gpus = [replace(e, name="g-1", uid="uid-g-1", requests=Resources(0.5, GIB, 1, (("gpu", 2.0),))) for e in plain]
    for workload in ((*plain, *with_gpus), (*with_gpus, *plain)):
        assert stays_up_to(2 / (2 + 1), Scope.NODE, *workload, nodes=nodes)


def test_of_equally_full_nodes_the_first_is_home() -> None:
    assert stays_up_to(2 / (1 + 4), Scope.RACK, *on("as1", "bs1"))
    small = tuple(
        a_node(n.name, zone=n.location[0], rack=n.location[1], cores=1.0 if n.name[0] == "a" else 2.0) for n in POOL
    )
    assert stays_up_to(2 / (1 + 2), Scope.RACK, *on("bs1", "as1"), nodes=small)


def test_a_home_without_a_rack_has_none_to_spread_over() -> None:
    nodes = (a_node("n1", zone="a", rack=None, cores=2.0), *POOL)
    assert scopes_after(Scope.RACK, *on("n1"), nodes=nodes) == ["Zone"]


def scopes_after(before: Scope, *executors: Executor, nodes: tuple[Node, ...]) -> list[str]:
    calm = PlacementPolicy(scope_higher_bound_ratio=9.0, scope_lower_bound_ratio=0.0)
    memory = Memory(scopes=(("team/clicks", "ingest", before.value),))
    snapshot = a_snapshot(*nodes, executors=executors)
    return [scope for _, _, scope in next_scopes(snapshot, Policy("p", placement=calm), memory)]


def test_every_component_has_a_scope_of_its_own_in_the_order_of_names() -> None:
    executors = (
        *on("ar1"),
        an_executor("r-1", node="bs1", component="report"),
        an_executor("a-1", node="ar1", topology="team/a"),
    )
    found = next_scopes(a_snapshot(*POOL, executors=executors), UNLIMITED, Memory())
    assert found == (("team/a", "ingest", "Node"), ("team/clicks", "ingest", "Node"), ("team/clicks", "report", "Node"))
