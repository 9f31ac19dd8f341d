"""Two policies over one namespace, with nodes of their own: who answers for an executor that is held."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.claims import Claims
from ballast.controller.observe import Lists
from ballast.controller.pools import territories
from ballast.controller.survey import Read, Survey
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Constraints, Requirement, Toleration
from ballast.moves.score import Profile
from tests.builders import gated
from tests.unit.kube.builders import GATE, executor, node, topology

JSON = dict[str, Any]
SPARK = {"key": "for", "value": "spark", "effect": "NoSchedule"}
NODES = [
    NodeReader().read(node("s1", labels={"pool": "streaming"})),
    NodeReader().read(node("b1", labels={"pool": "batch"})),
    NodeReader().read(node("t1", labels={"pool": "tainted"}, taints=[SPARK])),
]
POD = PodReader().read(executor(1, gates=[GATE]))
NAMESPACES = {"analytics": {"team": "ads"}, "other": {}}
ANYWHERE = Constraints()
WEB = {"matchLabels": {"team": "web"}}


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
    survey = Survey(Lists([POD], NODES, NAMESPACES), policies, (), ())
    claims = Claims.of(survey, territories(policies, NODES), awaited or {})
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
    survey = Survey(Lists([pod], NODES, NAMESPACES), policies, (clicks,), ())
    claims = Claims.of(survey, territories(policies, NODES), {})
    assert claims.holder(gated("e"), pod) == "batch"
    assert claims.holder(gated("e", constraints=only("streaming")), pod) == "streaming"
