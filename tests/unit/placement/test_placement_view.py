"""What a set of executors finds in the pool before it is decided where to look closer."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from ballast.model import (
    DEFAULT_LEVELS,
    Anchor,
    AvgShedderPolicy,
    Component,
    Constraints,
    Executor,
    LoadUnit,
    Location,
    PlacementPolicy,
    Resources,
    Separation,
    SheddingPolicy,
    Stream,
)
from ballast.model.shedders import OverloadSettings, ThresholdSettings, TransferSettings, UniformSettings
from ballast.placement.locality import measure
from ballast.placement.placement_view import PlacementView, would_be_unloaded
from ballast.placement.problem import Layout
from ballast.placement.proximity import problem
from tests.builders import GIB, a_node, a_topology, an_executor, gated
from tests.unit.placement.situations import the_view

NODES = (
    a_node("a1", zone="a"),
    a_node("a2", zone="a"),
    a_node("a3", zone="a", rack="r2"),
    a_node("b1", zone="b"),
)
FREELY = PlacementPolicy(max_executors_per_node_ratio=1.0)

NONE = float("nan")


def a_view(*executors: Executor, **changes: Any) -> PlacementView:
    return the_view(*executors, **{"nodes": NODES, "policy": FREELY, **changes})


def some(count: int, component: str = "ingest", **changes: Any) -> list[Executor]:
    return [gated(f"{component}-{number}", component=component, **changes) for number in range(count)]


KAFKA = Component("kafka", external=True, anchors=(Anchor(("b", None, None), 0.5), Anchor(("a", "r2", "a3"), 0.5)))
TOPOLOGY = a_topology(
    KAFKA,
    Component("ingest", exchange_bytes_per_second=3.0),
    Component("report"),
    streams=(Stream("kafka", "ingest", bytes_per_second=8.0), Stream("ingest", "report", bytes_per_second=5.0)),
)


def placed(layout: Layout, *spots: tuple[int, int]) -> Layout:
    for group, node in spots:
        layout.add(group, node)
    return layout


def locality_cost(layout: Layout, running: dict[str, dict[Location, int]]) -> float:
    """As `locality` tells it for the same executors."""
    homes = {name: dict(places) for name, places in running.items()}
    for group, column in np.argwhere(layout.placed):
        place = NODES[int(layout.problem.nodes[column])].location
        name = ("ingest", "report")[int(layout.problem.component[group])]
        homes[name][place] = homes[name].get(place, 0) + int(layout.placed[group, column])
    return measure(TOPOLOGY, homes, DEFAULT_LEVELS).cost


@pytest.mark.parametrize("cut", [(0, 1, 2, 3), (0, 1), (2, 3), (1, 3)], ids=str)
def test_a_layout_is_dearer_by_what_its_locality_is_dearer(cut: tuple[int, ...]) -> None:
    """Whichever nodes are looked at, with equal nodes and no driver."""
    running = (an_executor("old-0", node="a1"), an_executor("old-1", node="b1", component="report"))
    view = a_view(*some(2), *some(2, "report"), *running, topologies=(TOPOLOGY,))
    small = problem(view, np.array(cut))
    there = {"ingest": {NODES[0].location: 1}, "report": {NODES[3].location: 1}}
    layouts = [
        placed(Layout(small), *((0, node) for node in ones), *((1, node) for node in others))
        for ones in combinations([*range(len(cut))] * 2, 2)
        for others in combinations([*range(len(cut))] * 2, 2)
    ]
    first = layouts[0]
    for layout in layouts[1:]:
        difference = locality_cost(layout, there) - locality_cost(first, there)
        assert layout.cost() - first.cost() == pytest.approx(difference)


def test_the_driver_pulls_everyone_by_an_equal_part_of_a_small_share() -> None:
    near_b1 = a_topology(driver=Anchor(("b", "r1", "b1"), 1.0))
    view = a_view(*some(4), topologies=(near_b1,))
    each = view.workload.traffic.driver_rate / 4
    pull = view.pull(np.arange(4))
    assert (pull - pull[:, 3:])[0].tolist() == pytest.approx([10 * each, 10 * each, 10 * each, 0.0])
    assert 0 < view.workload.traffic.driver_rate < 0.1


def test_the_driver_pulls_less_where_no_zone_holds_the_set() -> None:
    near_b1 = a_topology(driver=Anchor(("b", "r1", "b1"), 1.0))
    whole, divided = (a_view(*some(count), topologies=(near_b1,)) for count in (4, 40))
    assert (whole.divided, divided.divided) == (False, True)
    each = divided.workload.traffic.driver_rate / 40
    pull = divided.pull(np.arange(4))
    assert 0 < (pull - pull[:, 3:])[0].max() < 10 * each


def test_a_node_at_a_hundred_costs_half_of_leaving_the_node_next_to_one_at_zero() -> None:
    busy = {"a1": 0.0, "a2": 50.0, "a3": 100.0}
    view = a_view(*some(4, requests=Resources(0.0)), scores=busy, tier=2)
    partners = float(view.weights[0, 0]) * 4
    assert (view.pull(np.arange(4))[0] / partners).tolist() == pytest.approx([0.0, 0.25, 0.5, 0.25])


def test_a_favored_node_is_worth_a_rack_while_it_is_cool() -> None:
    policy = PlacementPolicy(favored_nodes=("a2", "a3", "gone"))
    view = a_view(*some(4, requests=Resources(0.0)), scores={"a2": 0.0, "a3": 75.0, "a1": 0.0}, policy=policy, tier=2)
    partners = float(view.weights[0, 0]) * 4
    assert (view.pull(np.arange(4))[0] / partners).tolist() == pytest.approx([0.0, -3.0, -0.75, 0.25])


def test_what_is_placed_heats_by_its_load() -> None:
    view = a_view(*some(1), scores={"a1": 20.0, "a2": 90.0}, tier=2)
    assert view.preference.tolist() == pytest.approx([0.55, 0.0, 0.25, 0.25])


TIERS = {
    "none at all": ({}, [True, True, True, True]),
    "unfavored": ({"policy": PlacementPolicy(unfavored_nodes=("a1",))}, [False, True, True, True]),
    "over the score limit": ({"scores": {"a2": 85.1, "a1": 85.0, "a3": 80.0}}, [True, False, True, True]),
    "about to be unloaded": ({"scores": {"a2": 80.0, "a1": 60.0}}, [True, False, True, True]),
}


@pytest.mark.parametrize(("changes", "first"), TIERS.values(), ids=TIERS)
def test_hot_and_unfavored_nodes_come_into_play_later(changes: dict[str, Any], first: list[bool]) -> None:
    unfavored = "policy" in changes
    assert a_view(*some(1), **changes).allowed[0].tolist() == first
    assert a_view(*some(1), tier=1, **changes).allowed[0].tolist() == ([True] * 4 if unfavored else first)
    assert a_view(*some(1), tier=2, **changes).allowed[0].tolist() == [True] * 4


def test_nodes_that_do_not_admit_it_and_those_it_must_keep_away_from_never_do() -> None:
    apart = a_topology(Component("ingest"), Component("standby"), separate=(Separation(("ingest", "standby"), "Rack"),))
    only_some = Constraints(node_selector=(("kubernetes.io/hostname", "a2"),))
    standby = an_executor("s-1", node="a1", component="standby")
    assert a_view(*some(1), standby, topologies=(apart,), tier=2).allowed[0].tolist() == [False, False, True, True]
    assert a_view(*some(1, constraints=only_some), tier=2).allowed[0].tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("score", "tier", "capacity"),
    [
        (float("nan"), 0, 4),
        # Four cores: a quarter of them on top of what is left until 85.
        (60.0, 0, 2),
        (59.9, 0, 2),
        (35.0, 0, 3),
        (84.0, 0, 1),
        (99.0, 0, 0),
        (99.0, 2, 4),
    ],
)
def test_a_node_takes_as_many_as_room_and_score_allow(score: float, tier: int, capacity: int) -> None:
    view = a_view(*some(9), nodes=(a_node("n1"),), scores={"n1": score}, tier=tier)
    assert view.capacity.tolist() == [[capacity]]


def test_no_more_than_the_limit_and_none_where_it_is_exceeded_already() -> None:
    running = [an_executor(f"old-{number}", node="a1") for number in range(3)]
    view = a_view(*some(5), *running, policy=PlacementPolicy(max_executors_per_node_ratio=0.25))
    assert view.capacity.tolist() == [[0, 2, 2, 2]]


def test_groups_are_rows_in_the_order_of_the_crew() -> None:
    big = Resources(2.0, 4 * GIB, 1)
    view = a_view(*some(2), *some(3, "report"), gated("ingest-x", requests=big), topologies=(TOPOLOGY,))
    assert (view.groups.tolist(), view.counts.tolist(), view.component.tolist()) == ([0, 1, 2], [2, 1, 3], [0, 0, 1])
    assert view.demand.tolist() == [[1.0, GIB, 1.0, 1.0], [2.0, 4 * GIB, 1.0, 2.0], [1.0, GIB, 1.0, 1.0]]
    assert view.component_counts.tolist() == [3, 3]


def hot(*scores: float, policy: SheddingPolicy | None = None) -> list[bool]:
    rules = AvgShedderPolicy(min_hot_score=70.0, low_threshold=15.0)
    found: list[bool] = would_be_unloaded(np.array(scores), policy or SheddingPolicy(avg_shedder=rules)).tolist()
    return found


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((20.0, 69.9, 70.0, 90.0), [False, False, True, True]),
        ((60.0, 74.9, 75.0), [False, False, True]),
        ((90.0, 95.0), [False, False]),
        ((NONE, 20.0, 80.0), [False, False, True]),
        ((NONE, NONE), [False, False]),
        ((), []),
    ],
)
def test_hot_is_who_is_hot_enough_and_far_enough_from_the_coldest(
    scores: tuple[float, ...], expected: list[bool]
) -> None:
    assert hot(*scores) == expected


def by(settings: OverloadSettings | ThresholdSettings | TransferSettings) -> SheddingPolicy:
    match settings:
        case OverloadSettings():
            return SheddingPolicy("OverloadShedder", overload_shedder=settings)
        case ThresholdSettings():
            return SheddingPolicy("ThresholdShedder", threshold_shedder=settings)
    return SheddingPolicy("TransferShedder", transfer_shedder=settings)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (
            by(OverloadSettings(threshold=60.0)),
            [False, True, True, False],
        ),
        (
            by(ThresholdSettings(threshold=20.0)),
            [False, False, True, False],
        ),
        (
            by(ThresholdSettings(threshold=40.0)),
            [False, False, False, False],
        ),
        (
            by(TransferSettings(overload_threshold=60.0, target_std_ratio=0.05)),
            [False, True, True, False],
        ),
        (
            by(TransferSettings(overload_threshold=85.0, target_std_ratio=0.05)),
            [False, True, True, False],
        ),
        (
            by(TransferSettings(overload_threshold=85.0, target_std_ratio=0.25)),
            [False, False, False, False],
        ),
        (
            by(ThresholdSettings(lower_boundary=True, threshold=30.0)),
            [False, False, True, False],
        ),
        (
            by(ThresholdSettings(lower_boundary=True, threshold=40.0)),
            [False, False, False, False],
        ),
        (
            by(TransferSettings(overload_threshold=60.0, target_std_ratio=0.25)),
            [False, False, True, False],
        ),
    ],
    ids=lambda value: value.strategy if isinstance(value, SheddingPolicy) else None,
)
def test_every_strategy_that_goes_by_scores_has_its_own_measure(policy: SheddingPolicy, expected: list[bool]) -> None:
    assert hot(20.0, 60.0, 80.0, NONE, policy=policy) == expected


@pytest.mark.parametrize(
    "policy",
    [
        SheddingPolicy("None"),
        SheddingPolicy("UniformLoadShedder", uniform_load_shedder=UniformSettings(max_unload_ratio=0.5)),
        SheddingPolicy(avg_shedder=AvgShedderPolicy(unit=LoadUnit.TRAFFIC)),
    ],
)
def test_a_strategy_that_goes_by_other_figures_calls_nobody_hot(policy: SheddingPolicy) -> None:
    assert hot(0.0, 100.0, policy=policy) == [False, False]


def test_without_parameters_the_strategys_defaults_say_who_is_hot() -> None:
    assert hot(20.0, 84.0, 90.0, policy=SheddingPolicy("OverloadShedder")) == [False, False, True]
    assert hot(40.0, 40.0, 70.0, policy=SheddingPolicy("ThresholdShedder")) == [False, False, True]
