"""What holds for costs: of a topology as it is placed, of single moves, of changes and of refinement."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ballast.model import DEFAULT_LEVELS, Anchor, Component, Location, Stream, Topology
from ballast.placement.locality import locality, locality_delta_ratio, measure
from ballast.placement.problem import Layout, Problem, construct
from ballast.placement.refinement import Change, best_node_change, best_shift, best_swap, refine

NAMES = ("ingest", "sessions")
Homes = dict[str, dict[Location, int]]

locations = st.tuples(
    st.sampled_from(["za", "zb", None]), st.sampled_from(["r1", "r2", None]), st.sampled_from(["n1", "n2", "n3"])
)
homes = st.fixed_dictionaries({name: st.dictionaries(locations, st.integers(1, 3), max_size=4) for name in NAMES})
rates = st.one_of(st.none(), st.floats(0.5, 8.0))


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    components = [Component(name, exchange_bytes_per_second=draw(rates)) for name in NAMES]
    broker = Component(
        "kafka", external=True, anchors=(Anchor(("za", None, None), 0.6), Anchor(("zb", None, None), 0.4))
    )
    streams = (
        Stream("ingest", "sessions", bytes_per_second=draw(rates)),
        Stream("kafka", "ingest", bytes_per_second=draw(rates)),
    )
    return Topology("team/t", "team", "t", (broker, *components), streams=streams)


def slow_cost(topology: Topology, counts: Homes) -> tuple[float, float]:
    """Cost and total traffic, pair by pair as the definition has it."""
    declared = [c.exchange_bytes_per_second for c in topology.components] + [
        s.bytes_per_second for s in topology.streams
    ]
    known = [rate for rate in declared if rate]
    unit = sum(known) / len(known) if known else 1.0
    each = {name: [place for place, count in counts[name].items() for _ in range(count)] for name in NAMES}
    cost = total = 0.0
    for name in NAMES:
        component = topology.component(name)
        assert component is not None
        rate = unit if component.exchange_bytes_per_second is None else component.exchange_bytes_per_second
        here = each[name]
        total += rate if here else 0.0
        cost += sum(rate / len(here) ** 2 * DEFAULT_LEVELS.distance(a, b) for a in here for b in here)
    inner, outer = (s.bytes_per_second or unit for s in topology.streams)
    senders, receivers = each["ingest"], each["sessions"]
    if senders and receivers:
        share = inner / len(senders) / len(receivers)
        total += inner
        cost += sum(share * DEFAULT_LEVELS.distance(a, b) for a in senders for b in receivers)
    kafka = topology.component("kafka")
    assert kafka is not None
    if senders:
        total += outer
        for anchor in kafka.anchors:
            distances = [DEFAULT_LEVELS.distance(a, anchor.location) for a in senders]
            cost += outer * anchor.share * sum(distances) / len(senders)
    return cost, total


@given(topologies(), homes)
def test_the_cost_is_what_its_definition_says(topology: Topology, counts: Homes) -> None:
    cost, total = slow_cost(topology, counts)
    view = locality(topology, counts, DEFAULT_LEVELS)
    assert view.cost == pytest.approx(cost / total if total else 0.0)
    assert view.lower_bound <= view.cost + 1e-9


@given(topologies(), homes)
def test_shares_grow_the_nearer_the_level_and_stay_shares(topology: Topology, counts: Homes) -> None:
    view = locality(topology, counts, DEFAULT_LEVELS)
    if view.cross_zone_ratio is None or view.cross_rack_ratio is None or view.cross_node_ratio is None:
        assert not any(counts.values())
    else:
        assert 0.0 <= view.cross_zone_ratio <= view.cross_rack_ratio <= view.cross_node_ratio <= 1.0 + 1e-9


@given(topologies(), homes, locations, st.data())
def test_a_move_costs_the_difference_of_before_and_after(
    topology: Topology, counts: Homes, target: Location, data: st.DataObject
) -> None:
    movable = [(name, place) for name in NAMES for place in counts[name]]
    assume(movable)
    name, source = data.draw(st.sampled_from(movable))
    after = {key: dict(places) for key, places in counts.items()}
    after[name][source] -= 1
    after[name][target] = after[name].get(target, 0) + 1
    before = measure(topology, counts, DEFAULT_LEVELS)
    difference = slow_cost(topology, after)[0] - slow_cost(topology, counts)[0]
    expected = difference / before.base if before.base else 0.0
    ratio = locality_delta_ratio(before, name, source=source, target=target)
    assert ratio == pytest.approx(expected, abs=1e-9)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """A random problem, with a first layout of what fits."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    components, nodes = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    groups = components + draw(st.integers(0, 1))
    places = np.stack([random.integers(0, 2, nodes), np.zeros(nodes, dtype=np.int64), np.arange(nodes)])
    places[1] = places[0] * 2 + random.integers(0, 2, nodes)
    steps = np.array([7.0, 2.0, 1.0])
    distance = np.tensordot(steps, places[:, :, None] != places[:, None, :], axes=1)
    weights = random.integers(0, 4, (components, components)).astype(float)
    component = np.append(np.arange(components), np.zeros(groups - components)).astype(np.int64)
    apart = ((2, np.array([0, 1])),) if components > 1 and draw(st.booleans()) else ()
    problem = Problem(
        nodes=np.arange(nodes),
        places=places,
        near=10.0 - distance,
        weights=weights + weights.T,
        pull=random.integers(0, 5, (components, nodes)).astype(float),
        settled=random.integers(0, 2, (components, nodes)),
        component=component,
        counts=random.integers(1, 5, groups),
        demand=random.integers(1, 4, (groups, 2)).astype(float),
        allowed=random.random((groups, nodes)) < 0.9,
        room=random.integers(2, 9, (nodes, 2)).astype(float),
        slack=np.full(2, 1e-9),
        node_limit=random.integers(1, 5, (components, nodes)),
        zone_limit=random.integers(3, 12, (components, 2)),
        apart=apart,
        preference=np.zeros(nodes),
    )
    layout = Layout(problem)
    sequence = [group for group in range(groups) for _ in range(int(problem.counts[group]))]
    construct(layout, sequence)
    return layout


def within_limits(layout: Layout) -> bool:
    problem = layout.problem
    used = layout.placed.T @ problem.demand
    new = layout.present - problem.settled
    zones = np.stack([np.bincount(problem.places[0], weights=row, minlength=2) for row in new])
    rebuilt = Layout(problem)
    for group, node in zip(*np.nonzero(layout.placed), strict=True):
        rebuilt.add(int(group), int(node), count=int(layout.placed[group, node]))
    return bool(
        (used <= problem.room + 1e-6).all()
        and (layout.placed >= 0).all()
        and (layout.placed.sum(axis=1) <= problem.counts).all()
        and not layout.placed[~problem.allowed].any()
        and (new <= np.maximum(problem.node_limit, 0)).all()
        and (zones <= problem.zone_limit).all()
        and np.allclose(rebuilt.benefit, layout.benefit)
        and np.allclose(rebuilt.room, layout.room)
    )


@given(layouts())
def test_construction_and_refinement_stay_within_limits_and_never_get_worse(layout: Layout) -> None:
    assert within_limits(layout)
    cost, missing = layout.cost(), int(layout.missing.sum())
    refined = refine(layout, 60, Random(0))
    assert within_limits(refined)
    assert (int(refined.missing.sum()), refined.cost()) <= (missing, cost + 1e-9)


@given(layouts())
def test_a_change_saves_what_it_promises_and_breaks_no_limit(layout: Layout) -> None:
    distance = layout.problem.distance
    groups = range(len(layout.problem.counts))
    changes: list[Change] = [best_shift(layout, group, distance) for group in groups]
    changes += [
        best_swap(layout, (one, other), distance, counts)
        for one in groups
        for other in range(one)
        for counts in ((1, 1), (1, 2), (2, 1))
    ]
    changes += [best_node_change(layout, distance, exchange=exchange) for exchange in (False, True)]
    for change in changes:
        if change.saving > 1e-9:
            trial = layout.copy()
            change.apply(trial)
            assert layout.cost() - trial.cost() == pytest.approx(change.saving)
            assert within_limits(trial)


@given(layouts(), st.integers(0, 40), st.integers(0, 40))
def test_more_steps_never_end_dearer(layout: Layout, fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, fewer + more))
    short, long = refine(layout.copy(), fewer, Random(7)), refine(layout.copy(), more, Random(7))
    assert int(long.missing.sum()) <= int(short.missing.sum())
    if (long.missing == short.missing).all():
        assert long.cost() <= short.cost() + 1e-9
