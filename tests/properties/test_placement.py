"""What holds for every placement, whatever the strategy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from ballast.api.policy_placement import PlacementStrategy
from ballast.model import (
    Component,
    ComponentLimit,
    Constraints,
    Demand,
    Executor,
    Memory,
    MovePhase,
    Node,
    Phase,
    Placement,
    PlacementPolicy,
    Policy,
    Reason,
    Requirement,
    Resources,
    Separation,
    Snapshot,
    Stream,
    Taint,
    Topology,
)
from ballast.placement.admission import Admission, refusal
from ballast.placement.locality import counts_by_topology, locality
from ballast.placement.placing import place
from ballast.placement.strategies import ComponentRate, PlacementState, Rates, awaited_by_moves
from tests.builders import GIB, a_move, a_node, a_snapshot, an_executor, gated
from tests.examples import examples

STRATEGIES = tuple(map(str, PlacementStrategy))
ZONE_A = Constraints(affinity_terms=((Requirement("zone", "In", ("za",)),),))
VOLUME_B = Constraints(volume_terms=(((Requirement("zone", "In", ("zb",)),),),))
SELECTOR = Constraints(node_selector=(("disk", "fast"),))
WAITING = a_move(phase=MovePhase.ARRIVING, ended_at=None, application="spark-app", resource_profile="0")
TEMPLATES = (Constraints(), Constraints(), Constraints(), ZONE_A, VOLUME_B, SELECTOR)


@dataclass(frozen=True)
class World:
    snapshot: Snapshot
    policy: Policy
    memory: Memory
    scores: dict[str, float]

    @property
    def gated(self) -> list[Executor]:
        return [e for e in self.snapshot.executors if e.phase is Phase.GATED]

    def placed(self) -> list[Placement]:
        return place(self.snapshot, self.policy, self.memory, gated=self.gated, scores=self.scores).placements


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    count = draw(st.integers(0, 9))
    return tuple(
        a_node(
            f"n{number}",
            zone=(zone := draw(st.sampled_from(["za", "zb", None]))),
            rack=draw(st.sampled_from(["r1", "r2"])),
            cores=draw(st.sampled_from([1.0, 2.0, 4.0, 8.0])),
            requested=Resources(draw(st.sampled_from([0.0, 0.5, 1.0])), GIB, 1),
            labels={
                "kubernetes.io/hostname": f"n{number}",
                "disk": draw(st.sampled_from(["fast", "slow"])),
                **({"zone": zone} if zone else {}),
            },
            taints=draw(st.sampled_from([(), (), (Taint("dedicated", "x", "NoSchedule"),)])),
            ready=draw(st.sampled_from([True, True, True, False])),
        )
        for number in range(count)
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    pool = draw(nodes())
    components = ("ingest", "sessions", "sink")
    executors: list[Executor] = []
    for number in range(draw(st.integers(0, 14))):
        node = draw(st.sampled_from([*pool, None, None])) if pool else None
        common: dict[str, Any] = {
            "component": draw(st.sampled_from(components)),
            "requests": Resources(draw(st.sampled_from([0.5, 1.0])), GIB, 1),
            "constraints": draw(st.sampled_from(TEMPLATES)),
        }
        if node is None:
            executors.append(gated(f"e-{number}", **common))
        else:
            executors.append(an_executor(f"e-{number}", node=node.name, **common))
    topology = Topology(
        "team/clicks",
        "team",
        "clicks",
        tuple(Component(name, expected=draw(st.sampled_from([None, 4]))) for name in components),
        streams=(Stream("ingest", "sessions", bytes_per_second=draw(st.sampled_from([None, 3.0]))),),
        separate=draw(st.sampled_from([(), (Separation(("ingest", "sink"), "Node"),)])),
    )
    policy = Policy("p")
    placement = replace(
        policy.placement,
        max_executors_per_node_ratio=draw(st.sampled_from([0.25, 0.5, 1.0])),
        max_executors_per_zone_ratio=draw(st.sampled_from([0.5, 1.0])),
        strategy=draw(st.sampled_from(STRATEGIES)),
        unfavored_nodes=draw(st.sampled_from([(), ("n0",)])),
        favored_nodes=draw(st.sampled_from([(), ("n2",)])),
        limits=draw(st.sampled_from([(), (ComponentLimit("sessions", 1),)])),
    )
    scope = draw(st.sampled_from([(), (("team/clicks", "ingest", "Rack"),), (("team/clicks", "sessions", "Zone"),)]))
    memory = Memory(placements=(("team/clicks", "ingest", (("n1", 2), ("n2", 1))),), scopes=scope)
    pending = tuple(Demand(Resources(1.0, GIB, 1)) for _ in range(draw(st.integers(0, 2))))
    scores = {node.name: draw(st.sampled_from([5.0, 40.0, 95.0])) for node in pool if draw(st.booleans())}
    snapshot = a_snapshot(*pool, executors=tuple(executors), topologies=(topology,), pending=pending)
    return World(snapshot, replace(policy, placement=placement), memory, scores)


def taken(world: World, placements: Sequence[Placement]) -> dict[str, Resources]:
    requests = {executor.uid: executor.requests for executor in world.gated}
    amounts = {node.name: node.requested for node in world.snapshot.nodes}
    for placement in placements:
        if placement.node is not None:
            amounts[placement.node] = amounts[placement.node].plus(requests[placement.uid])
    return amounts


@given(worlds())
def test_no_node_gets_more_than_it_has(world: World) -> None:
    amounts = taken(world, world.placed())
    assert all(amounts[node.name].fits_in(node.allocatable) for node in world.snapshot.nodes)


@given(worlds())
def test_no_executor_goes_where_it_would_be_refused(world: World) -> None:
    by_uid = {executor.uid: executor for executor in world.gated}
    by_name = {node.name: node for node in world.snapshot.nodes}
    for placement in world.placed():
        if placement.node is not None:
            assert refusal(by_uid[placement.uid], by_name[placement.node]) is None


@given(worlds())
def test_every_executor_gets_one_placement_with_a_node_or_a_reason(world: World) -> None:
    placements = world.placed()
    assert sorted(p.uid for p in placements) == sorted(e.uid for e in world.gated)
    assert all(p.node is not None or p.reason is not None for p in placements)


@given(worlds())
def test_spread_limits_hold_for_all_that_is_placed(world: World) -> None:
    placements = world.placed()
    component = {executor.uid: executor.component for executor in world.snapshot.executors}
    running = [e for e in world.snapshot.executors if e.phase is Phase.RUNNING]
    expected = {c.name: c.expected or 0 for c in world.snapshot.topologies[0].components}
    totals = Counter(component.values())
    before = Counter((e.component, e.node) for e in running)
    after = before + Counter((component[p.uid], p.node) for p in placements if p.node is not None)
    for (name, node), count in after.items():
        total, ratio = max(totals[name], expected[name]), world.policy.placement.max_executors_per_node_ratio
        share = total if ratio == 1 else min(max(2, ceil(total * ratio - 1e-9)), total - 1)
        assert count <= max(1, share, before[name, node])
        own = [limit.max_per_node for limit in world.policy.placement.limits if limit.component == name]
        assert count <= max(before[name, node], *own, 0) or not own


@given(worlds())
def test_separated_components_never_come_to_share_a_node(world: World) -> None:
    component = {executor.uid: executor.component for executor in world.snapshot.executors}
    homes: dict[str, set[str]] = {}
    for executor in world.snapshot.executors:
        if executor.node is not None:
            homes.setdefault(executor.node, set()).add(executor.component)
    for separation in world.snapshot.topologies[0].separate:
        for placement in world.placed():
            if placement.node is not None and component[placement.uid] in separation.components:
                others = set(separation.components) - {component[placement.uid]}
                assert not others & homes.get(placement.node, set())


@examples(50)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_lists_means_nothing(world: World, random: object) -> None:
    shuffled: dict[str, Any] = {
        field: tuple(random.sample(values, len(values)))  # type: ignore[attr-defined]
        for field in ("nodes", "executors", "pending")
        for values in [list(getattr(world.snapshot, field))]
    }
    other = replace(world, snapshot=replace(world.snapshot, **shuffled))
    assert other.placed() == world.placed()


@given(worlds())
def test_the_second_look_at_the_same_facts_decides_the_same(world: World) -> None:
    assert world.placed() == world.placed()


@given(worlds())
def test_what_is_placed_by_an_unfitting_reason_does_not_exist(world: World) -> None:
    """A full pool is only named where no admitting node has room left."""
    placements = world.placed()
    amounts = taken(world, placements)
    by_uid = {executor.uid: executor for executor in world.gated}
    for placement in placements:
        if placement.node is None and placement.reason is Reason.POOL_FULL and not world.snapshot.pending:
            executor = by_uid[placement.uid]
            assert not any(
                refusal(executor, node) is None and amounts[node.name].plus(executor.requests).fits_in(node.allocatable)
                for node in world.snapshot.nodes
            )


@given(worlds())
def test_masks_say_what_refusals_say(world: World) -> None:
    admission = Admission(world.snapshot.nodes)
    for executor in world.snapshot.executors:
        verdicts = [refusal(executor, node) is None for node in world.snapshot.nodes]
        assert admission.mask(executor.constraints).tolist() == verdicts


def by_proximity(world: World) -> World:
    """The others draw among equals, and equal homes go by name."""
    placement = replace(world.policy.placement, strategy="Proximity")
    policy, memory = replace(world.policy, placement=placement), replace(world.memory, scopes=())
    return replace(world, policy=policy, memory=memory)


def renamed(world: World, names: dict[str, str]) -> World:
    """The same pool with its nodes called otherwise."""
    pool = tuple(
        replace(
            node,
            name=names[node.name],
            location=(*node.location[:-1], names[node.name]),
            labels={**node.labels, "kubernetes.io/hostname": names[node.name]},
        )
        for node in world.snapshot.nodes
    )
    executors = tuple(replace(e, node=None if e.node is None else names[e.node]) for e in world.snapshot.executors)
    memory = tuple(
        (topology, component, tuple((names.get(node, node), count) for node, count in counts))
        for topology, component, counts in world.memory.placements
    )
    placement = replace(
        world.policy.placement,
        unfavored_nodes=tuple(names.get(node, node) for node in world.policy.placement.unfavored_nodes),
        favored_nodes=tuple(names.get(node, node) for node in world.policy.placement.favored_nodes),
    )
    return World(
        replace(world.snapshot, nodes=pool, executors=executors, pending=()),
        replace(world.policy, placement=placement),
        Memory(placements=memory),
        {names[node]: score for node, score in world.scores.items()},
    )


def view_of(world: World) -> tuple[int, float]:
    """Executors placed, and the cost of the topology with them."""
    homes = {p.uid: p.node for p in world.placed() if p.node is not None}
    running = [
        replace(e, phase=Phase.RUNNING, node=homes.get(e.uid, e.node))
        for e in world.snapshot.executors
        if e.phase is Phase.RUNNING or e.uid in homes
    ]
    counts = counts_by_topology(running, world.snapshot.nodes)
    view = locality(world.snapshot.topologies[0], counts["team/clicks"], world.policy.levels)
    return len(homes), round(view.cost, 9)


@examples(50)
@given(worlds(), st.data())
def test_what_nodes_are_called_changes_neither_cost_nor_number_placed(world: World, data: st.DataObject) -> None:
    world = by_proximity(world)
    names = [node.name for node in world.snapshot.nodes]
    permutation = dict(zip(names, data.draw(st.permutations(names)), strict=True))
    same = renamed(world, {name: name for name in names})
    assert view_of(renamed(world, permutation)) == view_of(same)


@examples(50)
@given(worlds(), st.data())
def test_where_nodes_differ_their_names_permute_the_plan(world: World, data: st.DataObject) -> None:
    """Requests that no two nodes share leave nothing for names to decide."""
    unlike = tuple(
        replace(node, requested=Resources(0.01 * position, GIB, 1))
        for position, node in enumerate(world.snapshot.nodes)
    )
    world = by_proximity(replace(world, snapshot=replace(world.snapshot, nodes=unlike, pending=())))
    names = [node.name for node in unlike]
    permutation = dict(zip(names, data.draw(st.permutations(names)), strict=True))
    before = {p.uid: permutation.get(p.node or "") for p in world.placed()}
    after = {p.uid: p.node for p in renamed(world, permutation).placed()}
    assert after == before


@given(worlds(), st.data())
def test_what_is_arriving_keeps_its_room_and_what_a_move_decided_is_kept_or_explained(
    world: World, data: st.DataObject
) -> None:
    names = [node.name for node in world.snapshot.nodes]
    assume(names)
    reserved = {data.draw(st.sampled_from(names)): Resources(1.0, GIB, 1)}
    targets = data.draw(st.lists(st.sampled_from(names), max_size=2))
    moves = tuple(replace(WAITING, name=f"m{number}", target=target) for number, target in enumerate(targets))
    snapshot = replace(world.snapshot, moves=moves)
    placements = place(
        snapshot, world.policy, world.memory, gated=world.gated, scores=world.scores, reserved=reserved
    ).placements
    amounts = taken(world, placements)
    given_here = {p.node for p in placements if p.node is not None}
    for node in world.snapshot.nodes:
        if node.name in given_here:
            booked = amounts[node.name].plus(reserved.get(node.name, Resources()))
            assert booked.fits_in(node.allocatable)
    wanted = {uid: move.target for uid, move in awaited_by_moves(snapshot, world.gated).items()}
    for placement in placements:
        assert placement.node == wanted.get(placement.uid, placement.node) or placement.reason is not None


@given(st.integers(1, 6), st.permutations(range(5)))
def test_where_rates_differ_the_names_of_nodes_permute_the_plan(executors: int, order: list[int]) -> None:
    def homes(names: Sequence[str]) -> list[str | None]:
        pool = [a_node(name, requested=Resources(1.0, GIB, 1)) for name in names]
        running = [an_executor(f"r-{i}", node=name, component=f"c{i}") for i, name in enumerate(names)]
        waiting = [gated(f"e-{n}", component="new") for n in range(executors)]
        snapshot = a_snapshot(*pool, executors=(*running, *waiting))
        rates = tuple(ComponentRate("team/clicks", f"c{i}", 2.0**i, 1) for i in range(len(names)))
        state = PlacementState(rates=Rates("records", (*rates, ComponentRate("team/clicks", "new", 0.37, 1))))
        policy = Policy("p", placement=PlacementPolicy(strategy="LeastLongTermRate", max_executors_per_node_ratio=1.0))
        return [p.node for p in place(snapshot, policy, Memory(), gated=waiting, state=state).placements]

    names = [f"n{i}" for i in range(5)]
    renamed = [names[i] for i in order]
    translated = dict(zip(names, renamed, strict=True))
    assert homes(renamed) == [translated.get(node or "") for node in homes(names)]


@given(worlds())
def test_others_take_executors_only_when_the_favored_node_is_full(world: World) -> None:
    policy = replace(world.policy.placement, favored_nodes=("n2",), strategy="RoundRobin", limits=())
    roomy = replace(policy, max_executors_per_node_ratio=1.0, max_executors_per_zone_ratio=1.0, sticky=False)
    nodes = tuple(replace(node, ready=True, taints=(), location=("z", "r", node.name)) for node in world.snapshot.nodes)
    waiting = tuple(replace(e, constraints=Constraints()) for e in world.gated)
    snapshot = replace(world.snapshot, nodes=nodes, executors=waiting, pending=(), topologies=())
    favorite = next((node for node in nodes if node.name == "n2"), None)
    placements = place(snapshot, replace(world.policy, placement=roomy), Memory(), gated=waiting).placements
    if favorite is not None and any(p.node not in ("n2", None) for p in placements):
        left = favorite.allocatable.minus(taken(replace(world, snapshot=snapshot), placements)["n2"])
        assert not Resources(1.0, GIB, 1).fits_in(left)
