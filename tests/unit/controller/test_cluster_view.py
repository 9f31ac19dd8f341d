from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ballast.api import BalancingPolicy, SparkTopology
from ballast.controller.cluster_objects import ClusterObjects, OpenMove, Read
from ballast.controller.cluster_view import Claims, ClusterView, Pools, pools_of
from ballast.controller.ends import Rates
from ballast.controller.gateclock import GateClock
from ballast.controller.membership import key_of
from ballast.controller.metrics_reader import MetricsReader
from ballast.controller.observe import Lists
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Constraints, Memory, Requirement, Toleration
from ballast.moves import MoveState
from ballast.moves.loads import Profile
from ballast.placement.admission import Admission
from ballast.prometheus import Reading
from tests.builders import gated
from tests.unit.controller.stage import NAMESPACES, NOW
from tests.unit.controller.stage import move as ordered
from tests.unit.kube.builders import GATE, executor, node, topology
from tests.unit.moves.builders import leaving, orders, proposed

POOLS = {"one": frozenset({"hot", "mild"}), "two": frozenset({"cold"})}
JSON = dict[str, Any]
SPARK = {"key": "for", "value": "spark", "effect": "NoSchedule"}
NODES = [
    NodeReader().read(node("s1", labels={"pool": "streaming"})),
    NodeReader().read(node("b1", labels={"pool": "batch"})),
    NodeReader().read(node("t1", labels={"pool": "tainted"}, taints=[SPARK])),
]
POD = PodReader().read(executor(1, gates=[GATE]))
TWO_NAMESPACES = {"analytics": {"team": "ads"}, "other": {}}
ANYWHERE = Constraints()
WEB = {"matchLabels": {"team": "web"}}


def ruler(move: MoveState, pools: dict[str, frozenset[str]] | None = None) -> str | None:
    cluster_view = ClusterView(ClusterObjects(Lists((), ()), (), (), ()), Pools(pools or POOLS, {}), GateClock(), 0.0)
    each = OpenMove({}, move)
    (found,) = [name for name in ("one", "two", None) if cluster_view.own_moves([each], name)]
    return found


@pytest.mark.parametrize(
    ("move", "policy"),
    [
        pytest.param(proposed(source="hot", target="mild"), "one", id="the pool it leaves"),
        pytest.param(proposed(source="hot", target="cold", policy="two"), "two", id="the policy that it names"),
        pytest.param(proposed(source="hot", target="cold", policy="gone"), "one", id="names one that is not there"),
        pytest.param(proposed(source="nowhere", target="cold"), "two", id="the pool it goes to"),
        pytest.param(proposed(source="nowhere", target="elsewhere"), None, id="none"),
        pytest.param(
            leaving(orders=orders(source="nowhere", target="gone"), target="cold"), "two", id="sent elsewhere"
        ),
    ],
)
def test_a_move_belongs_to_one_policy(move: MoveState, policy: str | None) -> None:
    assert ruler(move) == policy


def test_a_node_that_leaves_its_pool_does_not_take_the_move_along() -> None:
    under_way = leaving(orders=orders(source="hot", target="cold", policy="one"))
    assert ruler(under_way, {"one": frozenset({"mild"}), "two": frozenset({"cold"})}) == "one"


def enforcing(pool: str) -> Read[BalancingPolicy]:
    raw: dict[str, Any] = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": pool},
        "spec": {"nodeSelector": {"matchLabels": {"pool": pool}}, "placement": {"mode": "Enforce"}},
    }
    return Read(raw, BalancingPolicy.parse(raw))


REPLACEMENT = {"pod": "spark-1-exec-7", "uid": "uid-spark-1-exec-7", "node": "", "pinned": False}


@pytest.mark.parametrize(
    ("status", "holder"),
    [
        pytest.param({"phase": "Approved"}, "one", id="nothing has left yet"),
        pytest.param({"phase": "Leaving"}, "two", id="it may be the replacement"),
        pytest.param({"phase": "Arriving", "replacement": REPLACEMENT}, "two", id="it is the replacement"),
        pytest.param({"phase": "Arriving", "replacement": {**REPLACEMENT, "uid": "u"}}, "one", id="another is"),
    ],
)
def test_a_held_executor_is_in_one_pass_and_a_replacement_in_that_of_its_move(
    status: dict[str, Any], holder: str
) -> None:
    """Both pools would take it, and the older policy's is asked first."""
    subject = {"application": "spark-1", "resourceProfile": "0", "executorId": "1"}
    under_way = ordered(1, source="node-2", target="node-3")
    under_way["spec"]["policyName"] = "two"
    under_way["status"] = {"subject": subject, **status}
    pods = [PodReader().read(executor(7, gates=[GATE])), PodReader().read(executor(2, node="node-2"))]
    nodes = [NodeReader().read(node(f"node-{n}", labels={"pool": pool})) for n, pool in enumerate(("one", "two"), 1)]
    policies = (enforcing("one"), enforcing("two"))
    objects = ClusterObjects(Lists(pods, nodes, NAMESPACES), policies, (), (under_way,))
    cluster_view = ClusterView(objects, pools_of(policies, nodes), GateClock().after(pods, NOW), NOW)
    contexts = [cluster_view.context(read, Memory(), Reading(), []) for read in policies]
    seen = {context.name: {e.executor_id for e in context.snapshot.executors} for context in contexts}
    assert seen == {"one": {"2"}, "two": {"2"}} | {holder: {"2", "7"}}
    assert [dict(context.others) for context in contexts if context.name != holder] == [{"uid-spark-1-exec-7": holder}]


def test_each_pass_knows_the_moves_of_all_policies_and_which_are_its_own() -> None:
    """All count for scores and room, and its own alone for its budgets."""
    nodes = [NodeReader().read(node(f"node-{n}", labels={"pool": pool})) for n, pool in enumerate(("one", "two"), 1)]
    policies = (enforcing("one"), enforcing("two"))
    moves = [OpenMove({}, proposed(source="node-1", target="x")), OpenMove({}, proposed(source="node-2", target="x"))]
    objects = ClusterObjects(Lists([], nodes, NAMESPACES), policies, (), ())
    cluster_view = ClusterView(objects, pools_of(policies, nodes), GateClock(), NOW, moves=moves)
    contexts = [cluster_view.context(read, Memory(), Reading(), moves) for read in policies]
    assert [[(move.source, move.elsewhere) for move in context.snapshot.moves] for context in contexts] == [
        [("node-1", False), ("node-2", True)],
        [("node-1", True), ("node-2", False)],
    ]


def policy(pool: str, mode: str = "Enforce", **spec: Any) -> Read[BalancingPolicy]:
    """Over the nodes of that pool, by whose name it goes unless `name` says otherwise."""
    name = spec.pop("name", pool)
    raw: JSON = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"matchLabels": {"pool": pool}}, "placement": {"mode": mode}, **spec},
    }
    return Read(raw, BalancingPolicy.parse(raw))


def only(*pools: str) -> Constraints:
    return Constraints(affinity_terms=((Requirement("pool", "In", pools),),))


def holder(
    *policies: Read[BalancingPolicy],
    constraints: Constraints = ANYWHERE,
    awaited: Mapping[str | Profile, str] | None = None,
) -> str | None:
    """`policies`: the oldest first."""
    objects = ClusterObjects(Lists([POD], NODES, TWO_NAMESPACES), policies, (), ())
    claims = Claims.of(objects, pools_of(policies, NODES), awaited or {})
    return claims.holder(gated("e", constraints=constraints), POD)


STREAMING, BATCH, TAINTED = policy("streaming"), policy("batch"), policy("tainted")


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param([policy("streaming", "Recommend"), BATCH], "batch", id="not the older one that only recommends"),
        pytest.param([BATCH, policy("streaming", "Recommend")], "batch", id="nor the younger one that does"),
        pytest.param([policy("streaming", "Disabled"), BATCH], "batch", id="nor the one that is off"),
        pytest.param([STREAMING, BATCH], "streaming", id="of two that enforce the older one"),
        pytest.param([TAINTED, BATCH], "batch", id="not the one whose nodes' taints keep it off"),
        pytest.param([policy("nodeless"), BATCH], "batch", id="not the one without nodes"),
        pytest.param(
            [policy("streaming", "Disabled"), policy("batch", "Recommend")], "streaming", id="the older, if none"
        ),
        pytest.param([policy("streaming", "Recommend"), TAINTED], "streaming", id="the one that admits it, if none"),
        pytest.param(
            [policy("streaming", namespaceSelector=WEB), BATCH], "batch", id="not the one of other namespaces"
        ),
        pytest.param([policy("streaming", topologySelector=WEB), BATCH], "batch", id="nor of other topologies"),
        pytest.param([], None, id="nobody, without a policy"),
    ],
)
def test_an_executor_without_constraints_is_held_by(
    policies: list[Read[BalancingPolicy]], expected: str | None
) -> None:
    assert holder(*policies) == expected


@pytest.mark.parametrize(
    ("constraints", "expected"),
    [
        pytest.param(only("batch"), "batch", id="affinity"),
        pytest.param(Constraints(node_selector=(("pool", "batch"),)), "batch", id="node selector"),
        pytest.param(Constraints(volume_terms=(only("batch").affinity_terms,)), "batch", id="volume"),
        pytest.param(
            Constraints((("pool", "tainted"),), tolerations=(Toleration("for", value="spark"),)), "tainted", id="taint"
        ),
        pytest.param(only("nowhere"), "streaming", id="fits nowhere: the oldest"),
    ],
)
def test_a_pool_that_admits_it_comes_before_an_older_one(constraints: Constraints, expected: str) -> None:
    assert holder(STREAMING, BATCH, TAINTED, constraints=constraints) == expected


def test_pools_are_not_searched_where_one_policy_alone_includes_the_executor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors that another gate holds for good, each of another template, are asked about in each pass."""

    def searched(_: Admission, constraints: Constraints) -> None:
        raise AssertionError(constraints)

    monkeypatch.setattr(Admission, "mask", searched)
    assert holder(STREAMING, policy("batch", namespaceSelector=WEB), constraints=only("batch")) == "streaming"


def test_who_fits_nowhere_is_left_to_a_policy_that_enforces() -> None:
    assert holder(policy("streaming", "Recommend"), BATCH, constraints=only("nowhere")) == "batch"


def test_a_policy_that_cannot_be_followed_holds_nobody() -> None:
    broken = policy("streaming", moves={"budgets": [{"moves": 0, "duration": "2h", "schedule": "61 * * * *"}]})
    overlapping = policy("streaming", name="younger")
    assert holder(broken, BATCH) == "batch"
    assert holder(policy("streaming", "Recommend"), overlapping) == "streaming"
    assert holder(broken) is None


@pytest.mark.parametrize("key", ["uid-e", ("team", "spark-app", "0")], ids=["claimed", "expected"])
def test_a_replacement_stays_with_the_policy_whose_move_waits_for_it(key: str | Profile) -> None:
    assert holder(STREAMING, BATCH, awaited={key: "batch"}) == "batch"
    assert holder(STREAMING, BATCH, awaited={key: "gone"}) == "streaming"


def test_a_topology_that_a_policy_names_is_its_own() -> None:
    pod = PodReader().read(executor(1, gates=[GATE], labels={"ballast.dev/topology": "clicks"}))
    raw: JSON = {"metadata": {"name": "clicks", "namespace": "analytics"}}
    clicks = Read(raw, topology("clicks", labels={"tier": "gold"}, components=[{"name": "ingest"}]))
    policies = (BATCH, policy("streaming", topologySelector={"matchLabels": {"tier": "gold"}}))
    objects = ClusterObjects(Lists([pod], NODES, TWO_NAMESPACES), policies, (clicks,), ())
    claims = Claims.of(objects, pools_of(policies, NODES), {})
    assert claims.holder(gated("e"), pod) == "batch"
    assert claims.holder(gated("e", constraints=only("streaming")), pod) == "streaming"


READER = NodeReader()
LABELED_NODES = [
    READER.read(node("s1", labels={"pool": "streaming"})),
    READER.read(node("s2", labels={"pool": "streaming"})),
    READER.read(node("b1", labels={"pool": "b"})),
]


def policy_of(name: str, pool: str) -> Read[BalancingPolicy]:
    raw: dict[str, Any] = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "BalancingPolicy",
        "metadata": {"name": name},
        "spec": {"nodeSelector": {"matchLabels": {"pool": pool}}},
    }
    return Read(raw, BalancingPolicy.parse(raw))


def test_each_policy_rules_over_the_nodes_that_it_selects() -> None:
    found = pools_of([policy_of("first", "streaming"), policy_of("second", "b")], LABELED_NODES)
    assert found.nodes == {"first": {"s1", "s2"}, "second": {"b1"}}
    assert found.stalled == {}


def test_of_two_that_overlap_the_younger_is_stalled_and_told_what_to_change() -> None:
    found = pools_of(
        [policy_of("old", "streaming"), policy_of("young", "streaming"), policy_of("other", "b")], LABELED_NODES
    )
    assert set(found.nodes) == {"old", "other"}
    assert "old (s1, s2)" in found.stalled["young"]
    assert "spec.nodeSelector" in found.stalled["young"]


def test_policies_without_nodes_do_not_overlap() -> None:
    found = pools_of([policy_of("first", "none"), policy_of("second", "none")], LABELED_NODES)
    assert found.stalled == {}


class _Asked(MetricsReader):
    """Remembers whose queries are to run."""

    def __init__(self) -> None:
        self.topologies: list[str] = []

    def read(self, *_: Any, **__: Any) -> Reading:
        return Reading()

    def rates(self, _: BalancingPolicy, topologies: list[SparkTopology], *, now: float) -> Rates:
        del now
        self.topologies += map(key_of, topologies)
        return {}


def test_only_queries_of_topologies_that_the_policy_is_about_run() -> None:
    """Queries run with the credentials of that policy."""
    parts = [{"name": "ingest"}]
    topologies = [
        topology("clicks", components=parts),
        topology("views", labels={"tier": "gold"}, components=parts),
        topology("spy", namespace="other", components=parts),
    ]
    objects = ClusterObjects(Lists((), NODES, TWO_NAMESPACES), (), tuple(Read({}, each) for each in topologies), ())
    view = ClusterView(objects, Pools({"streaming": frozenset()}, {}), GateClock(), 0.0)
    by_namespace: JSON = {"namespaceSelector": {"matchLabels": {"team": "ads"}}}
    by_label: JSON = {"topologySelector": {"matchLabels": {"tier": "gold"}}}
    for chosen, expected in ((by_namespace, ["analytics/clicks", "analytics/views"]), (by_label, ["analytics/views"])):
        asked = _Asked()
        view.read_metrics(policy("streaming", **chosen), asked)
        assert asked.topologies == expected
