"""Whatever other tenants create, executors that there is room for are placed in one zone, and hot nodes are leveled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ballast.api.policy_placement import PlacementStrategy
from ballast.model import (
    Anchor,
    AvgShedderPolicy,
    Component,
    Constraints,
    Executor,
    ExecutorUsage,
    Memory,
    Move,
    MovePhase,
    MovesMode,
    MovesPolicy,
    Node,
    NodeUsage,
    Phase,
    Placement,
    PlacementMode,
    PlacementPolicy,
    Requirement,
    Resources,
    Separation,
    SheddingPolicy,
    Snapshot,
    Stream,
    Toleration,
    Topology,
)
from ballast.planner.plan import plan
from tests.builders import GIB, NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated

POLICY = a_policy(placement=PlacementPolicy(mode=PlacementMode.ENFORCE))
EAGER = replace(
    POLICY,
    moves=MovesPolicy(mode=MovesMode.ENFORCE, max_locality_loss=5.0),
    shedding=SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1)),
)
ZONES = ("z1", "z2", "z3")
NODES = tuple(
    a_node(f"n{number}", zone=ZONES[number % 3], rack=f"r{number // 6}", cores=8.0, cpu=0.1 + number / 100)
    for number in range(12)
)
NAMES = tuple(node.name for node in NODES)
SET = tuple(gated(f"e-{number}", since=NOW - 20) for number in range(6))
SPACES = ("ads", "bids", "logs")
UNBOUND = tuple(phase for phase in Phase if phase in (Phase.GATED, Phase.PENDING))
TIMES = st.sampled_from((NOW, NOW - 0.5, NOW - 9.0, NOW - 3600.0, NOW + 3600.0, 0.0))
AMOUNTS = st.builds(
    Resources,
    cpu_cores=st.sampled_from((0.0, 0.001, 1.0, 3.0, 8.0, 9.0, 1e9)),
    memory_bytes=st.sampled_from((0.0, 1.0, GIB, 16 * GIB, 1e18)),
    pods=st.just(1.0),
    extended=st.sampled_from(((), (("example.com/gpu", 1.0),), (("ephemeral-storage", 1e18),))),
)
REQUIREMENTS = st.builds(
    Requirement,
    key=st.sampled_from(("kubernetes.io/hostname", "made-up", "")),
    operator=st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt")),
    values=st.lists(st.sampled_from((*NAMES, "1", "")), max_size=3).map(tuple),
    on_field=st.booleans(),
)
CONSTRAINTS = st.builds(
    Constraints,
    node_selector=st.sampled_from(((), (("made-up", "x"),), (("kubernetes.io/hostname", "n0"),))),
    affinity_terms=st.lists(st.lists(REQUIREMENTS, max_size=2).map(tuple), max_size=2).map(tuple),
    tolerations=st.sampled_from(((), (Toleration(operator="Exists"),))),
)
UNFIT = AMOUNTS.filter(lambda asked: asked.cpu_cores > 8.0 or asked.memory_bytes > 16 * GIB or bool(asked.extended))
SMALL = st.just(Resources(0.1, GIB / 8, 1))
VICTIMS = tuple(an_executor(f"e-{number}", node="n0", cpu=2.0, task_seconds=3.0, task_bytes=1.0) for number in range(2))
RATES = st.sampled_from((None, 0.0, 1.0, 1e6, 1e300))


@st.composite
def executors(
    draw: st.DrawFn, number: int, amounts: st.SearchStrategy[Resources] = AMOUNTS, nodes: tuple[str, ...] = NAMES
) -> Executor:
    """Of other tenants, at their gates, without a node, or on one: as odd as their pods can make them."""
    space = draw(st.sampled_from(SPACES))
    phase = draw(st.sampled_from((*UNBOUND, Phase.RUNNING, Phase.LEAVING)))
    bound = phase not in UNBOUND
    application = draw(st.sampled_from(("spark-app", "spark-2")))
    return an_executor(
        f"other-{number}",
        namespace=space,
        application=application,
        resource_profile=draw(st.sampled_from(("0", "1"))),
        topology=f"{space}/{draw(st.sampled_from(('clicks', 'wide', application)))}",
        component=draw(st.sampled_from(("ingest", "c0", "c1", ""))),
        phase=phase,
        node=draw(st.sampled_from(nodes)) if bound else None,
        requests=Resources(0.1, GIB / 8, 1) if bound else draw(amounts),
        constraints=draw(CONSTRAINTS),
        created_at=draw(TIMES),
        running_since=draw(TIMES) if bound else None,
        last_gate_since=draw(TIMES) if phase is Phase.GATED else None,
        unschedulable_since=draw(st.none() | TIMES) if phase is Phase.PENDING else None,
        lacks_room=draw(st.booleans()),
        nominated=None if bound else draw(st.none() | st.sampled_from(NAMES)),
        pinned=draw(st.booleans()),
        pinned_at=draw(st.none() | TIMES),
        labeled=draw(st.booleans()),
        enforced=draw(st.booleans()),
        never_unschedulable=draw(st.booleans()),
        usage=ExecutorUsage(
            cpu_cores=draw(st.sampled_from((None, 0.0, 1.0, 8.0))),
            records_per_second=draw(RATES),
            state_bytes=draw(RATES),
        ),
    )


@st.composite
def topologies(draw: st.DrawFn, space: str) -> Topology:
    """Components that exchange anything with each other and with brokers, and that are kept apart or expected."""
    names = tuple(f"c{number}" for number in range(draw(st.integers(1, 4))))
    anchors = st.builds(
        Anchor, location=st.sampled_from(NODES).map(lambda node: node.location), share=st.sampled_from((0.0, 0.5, 1.0))
    )
    components = tuple(
        Component(
            name,
            expected=draw(st.sampled_from((None, 0, 1, 1_000_000))),
            exchange_bytes_per_second=draw(RATES),
            anchors=tuple(draw(st.lists(anchors, max_size=2))),
            external=draw(st.booleans()),
        )
        for name in names
    )
    pairs = st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=4, unique=True)
    streams = tuple(Stream(one, other, bytes_per_second=draw(RATES)) for one, other in draw(pairs) if one != other)
    apart = (Separation(names, draw(st.sampled_from(("Node", "Zone")))),) if draw(st.booleans()) else ()
    return Topology(f"{space}/wide", space, "wide", components, streams=streams, separate=apart)


@st.composite
def moves(draw: st.DrawFn, number: int, others: tuple[Executor, ...]) -> Move:
    space = draw(st.sampled_from(SPACES))
    uids = ["uid-gone", *(each.uid for each in others if each.namespace == space)]
    settled: dict[str, Any] = {"replacement_uid": draw(st.none() | st.sampled_from(uids))}
    return a_move(
        f"m{number}",
        namespace=space,
        topology=f"{space}/clicks",
        executor_uid=draw(st.sampled_from(uids)),
        source=draw(st.sampled_from((*NAMES, "gone"))),
        target=draw(st.sampled_from((*NAMES, "gone"))),
        phase=draw(st.sampled_from([phase for phase in MovePhase if not phase.ended])),
        started_at=draw(TIMES),
        ended_at=None,
        helped=None,
        application=draw(st.sampled_from(("spark-app", "spark-2"))),
        by_hand=draw(st.booleans()),
        load_cores=draw(st.sampled_from((0.0, 1.0, 8.0))),
        **settled,
    )


@st.composite
def pools(draw: st.DrawFn) -> Snapshot:
    others = tuple(draw(executors(number)) for number in range(draw(st.integers(0, 14))))
    shapes = tuple(draw(topologies(space)) for space in SPACES)
    # A pool's policy lets few be under way: what those need on their targets is kept free.
    under_way = tuple(draw(moves(number, others)) for number in range(draw(st.integers(0, 2))))
    known, everyone = (a_topology(), *shapes), (*SET, *others)
    return a_snapshot(*holding(NODES, everyone), executors=everyone, topologies=known, moves=under_way)


def holding(nodes: Sequence[Node], executors: Sequence[Executor]) -> list[Node]:
    """With what the executors request there."""
    taken = {node.name: Resources() for node in nodes}
    for each in executors:
        if each.node is not None:
            taken[each.node] = taken[each.node].plus(each.requests)
    return [replace(node, requested=taken[node.name]) for node in nodes]


@st.composite
def hot_pools(draw: st.DrawFn) -> Snapshot:
    """Executors of others are on other nodes than the hot one, and those without a node are small or fit nowhere."""
    others = tuple(draw(executors(number, UNFIT | SMALL, NAMES[1:])) for number in range(draw(st.integers(0, 14))))
    shapes = tuple(draw(topologies(space)) for space in SPACES)
    everyone = (*VICTIMS, *others)
    nodes = holding([replace(NODES[0], usage=NodeUsage(cpu_ratio=0.95)), *NODES[1:]], everyone)
    return a_snapshot(*nodes, executors=everyone, topologies=(a_topology(), *shapes))


def placed(snapshot: Snapshot, strategy: str = "Proximity") -> list[Placement]:
    policy = replace(POLICY, placement=replace(POLICY.placement, strategy=strategy))
    decided, _ = plan(snapshot, policy, Memory(), NOW)
    mine = {each.key for each in SET}
    return [each for each in decided.placements if each.executor in mine]


@given(pools())
def test_a_set_has_one_zone_whatever_other_tenants_create(snapshot: Snapshot) -> None:
    found = placed(snapshot)
    assert len(found) == len(SET)
    assert all(each.node is not None for each in found), found
    assert len({each.location[0] for each in found}) == 1


@given(pools(), st.sampled_from(list(map(str, PlacementStrategy))))
def test_each_strategy_places_a_set_whatever_other_tenants_create(snapshot: Snapshot, strategy: str) -> None:
    found = placed(snapshot, strategy)
    assert len(found) == len(SET)
    assert all(each.node is not None for each in found), found


@given(hot_pools())
def test_a_hot_node_is_leveled_whatever_other_tenants_create(snapshot: Snapshot) -> None:
    decided, _ = plan(snapshot, EAGER, Memory(), NOW)
    assert [move.source for move in decided.moves] == ["n0"], decided.refusals
