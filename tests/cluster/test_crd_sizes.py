"""The largest objects that the bounds allow are still judged within the server's cost limits, and statuses kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import islice, permutations
from typing import Any

import pytest

from ballast.api.condition import ConditionStatus, set_condition
from ballast.api.meta import StatusModel
from ballast.api.move import Measured, MoveStatus, Replacement, Subject, Timings
from ballast.api.policy_status import (
    SHOWN,
    ApplicationPlacement,
    BudgetStatus,
    MoveRecommendation,
    MoveRecommendations,
    NodeHits,
    NodeScore,
    NodesStatus,
    Pair,
    Pairs,
    PolicyStatus,
    Refusal,
    Refusals,
)
from ballast.api.quantity import Quantity
from ballast.api.topology_status import (
    ComponentStatus,
    ExecutorCounts,
    Locality,
    Recommendation,
    SizingStatus,
    SizingVariable,
    TopologyStatus,
)
from ballast.controller.status import policy_status, topology_status
from ballast.enums import MovePhase
from tests.cluster.crds.server import Server
from tests.cluster.crds.table import cases
from tests.unit.controller.crowd import (
    KIB,
    PARTS,
    busy,
    policy_resource,
    recommended,
    topology_resource,
)

pytestmark = [pytest.mark.cluster, pytest.mark.soak]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CONDITIONS = set_condition(
    (), type_="Ready", status=ConditionStatus.TRUE, reason="Placed", message="all", observed_generation=1, now=NOW
)


def base_of(kind: str) -> dict[str, Any]:
    return next(case for case in cases("good") if case.kind == kind).object


def long_name(index: int) -> str:
    """63 characters that differ at the very end, which costs a comparison most."""
    return f"{'c' * 59}-{index:03}"


def test_a_topology_of_the_largest_size_is_taken(crd_server: Server) -> None:
    names = [long_name(index) for index in range(100)]
    rate = {"bytesPerSecond": "123456789.123456789Mi"}
    selector = {
        "matchLabels": {f"key-{index}": "v" * 63 for index in range(16)},
        "matchExpressions": [
            {"key": f"example.org/{index}", "operator": "In", "values": ["v" * 63] * 20} for index in range(8)
        ],
    }
    topology = base_of("sparktopology")
    topology["spec"] = {
        "components": [{"name": name, "selector": selector, "exchange": rate} for name in names],
        "streams": [{"from": a, "to": b, "rate": rate} for a, b in islice(permutations(reversed(names), 2), 300)],
        "separate": [names[-8:]] * 16,
        "sizing": {"stages": [{"component": name, "latency": "8ms"} for name in names[-50:]]},
    }

    answer = crd_server.create(topology)

    assert answer.code == 201, answer.message


def test_a_policy_of_the_largest_size_is_taken(crd_server: Server) -> None:
    policy = base_of("balancingpolicy")
    policy["spec"] |= {
        "externalNamespaces": [long_name(index) for index in range(64)],
        "placement": {"limits": [{"component": long_name(index), "maxPerNode": 1} for index in range(64)]},
        "metrics": {"advanced": {"queries": {"nodeCpu": "x" * 4096, "nodeMemory": "y" * 4096}}},
        "moves": {"budgets": [{"moves": 1, "per": f"{hours}h"} for hours in range(1, 17)]},
    }

    answer = crd_server.create(policy)

    assert answer.code == 201, answer.message


def test_a_switch_for_as_many_namespaces_as_may_be_is_taken(crd_server: Server) -> None:
    switch = base_of("gateswitch")
    switch["metadata"]["name"] = "largest"
    switch["spec"]["namespaces"] = [f"{'n' * 58}-{index:04}" for index in range(2000)]

    answer = crd_server.create(switch)

    assert answer.code == 201, answer.message


STATUSES: list[tuple[str, StatusModel]] = [
    (
        "sparktopology",
        TopologyStatus(
            observed_generation=1,
            conditions=CONDITIONS,
            policy="streaming",
            executors=ExecutorCounts(text="5/6", running=5, expected=6, gated=1),
            components=(
                ComponentStatus(name="ingest", executors=6, gated=1, running=5, scope="Rack", nodes=3, zones=1),
            ),
            locality=Locality(
                cross_zone_ratio=0.1,
                cross_rack_ratio=0.2,
                cross_node_ratio=0.9,
                cross_zone_bytes_per_second=1e6,
                cost=12.5,
                lower_bound=10.0,
            ),
            placement={"ingest": {"n1": 3, "n2": 3}},
            recommendation=Recommendation(locality=Locality(cross_zone_ratio=0), placement={"ingest": {"n1": 6}}),
            sizing=SizingStatus(
                bottleneck="CPU",
                variables=(
                    SizingVariable(name="parallelism", value="16", formula="rate × latency", origin="Measured"),
                ),
                spark_conf={"spark.executor.cores": "4"},
                warnings=("extra sources sit idle",),
            ),
        ),
    ),
    (
        "balancingpolicy",
        PolicyStatus(
            observed_generation=1,
            conditions=CONDITIONS,
            nodes=NodesStatus(
                total=6,
                eligible=5,
                stale=1,
                mean=48.5,
                std_dev=12.1,
                gap=40,
                hottest=NodeScore(name="n1", score=104.2),
                coldest=NodeScore(name="n6", score=64.2),
            ),
            hits=tuple(NodeHits(node=f"n{index}", low=8, high=2, last_time=NOW) for index in range(400)),
            pairs=Pairs(
                items=(Pair(hot="n1", cold="n6", hot_score=104.2, cold_score=64.2, low_hits=2, high_hits=1),) * SHOWN,
                more=7,
            ),
            recommendations=MoveRecommendations(
                items=(
                    MoveRecommendation(
                        namespace="analytics", executor="p", from_="n1", to="n6", gain=-0.5, message="half the gap"
                    ),
                ),
                more=1,
            ),
            refusals=Refusals(items=(Refusal(reason="NoRoom", from_="n1", to="n6", count=3, last_time=NOW),), more=2),
            budget=BudgetStatus(used=2, remaining=4, next_reset=NOW),
            moved=3,
            applications=(
                ApplicationPlacement(namespace="a", application="spark-1", placement={"default": {"n1": 2}}),
                ApplicationPlacement(namespace="b", application="spark-1", placement={"default": {"n2": 2}}),
            ),
        ),
    ),
    (
        "executormove",
        MoveStatus(
            observed_generation=1,
            phase=MovePhase.SETTLING,
            reason="Judging",
            message="until 12:03",
            conditions=CONDITIONS,
            subject=Subject(
                application="spark-1", resource_profile="0", executor_id="4", requests={"cpu": Quantity.parse("50m")}
            ),
            replacement=Replacement(pod="p", uid="u", node="n2", pinned=True),
            measured=Measured(
                hot_after=70.5,
                cold_after=50,
                gain=-3,
                slowness_before=1.4,
                slowness_after=1,
                batch_p95_before=3.5,
                batch_p95_after=1.2,
            ),
            timings=Timings(proposed=NOW, approved=NOW, leaving=NOW, arriving=NOW, settling=NOW, ended=NOW),
            attempts=1,
        ),
    ),
]


@pytest.mark.parametrize(("kind", "status"), STATUSES, ids=[kind for kind, _ in STATUSES])
def test_a_full_status_is_kept_as_it_was_written(kind: str, status: StatusModel, crd_server: Server) -> None:
    obj = base_of(kind)

    with crd_server.existing(obj):
        answer = crd_server.patch_status(obj, status.to_dict())

    assert (answer.code, answer.warnings) == (200, ""), answer.message
    assert type(status).model_validate_json(json.dumps(answer.body["status"])) == status


@pytest.mark.parametrize("declared", [True, False])
def test_a_policys_status_at_a_thousand_nodes_and_ten_thousand_executors_is_taken(
    crd_server: Server, *, declared: bool
) -> None:
    assert_taken(crd_server, "balancingpolicy", policy_status(policy_resource(), busy(declared=declared)))


def test_a_topologys_status_at_a_thousand_nodes_and_ten_thousand_executors_is_taken(crd_server: Server) -> None:
    seen = recommended(busy(declared=True))
    assert_taken(crd_server, "sparktopology", topology_status(topology_resource(*PARTS), seen))


def assert_taken(server: Server, kind: str, status: StatusModel) -> None:
    obj, written = base_of(kind), status.to_dict()

    with server.existing(obj):
        answer = server.patch_status(obj, written)

    assert (answer.code, answer.warnings) == (200, ""), answer.message
    assert answer.body["status"] == written
    assert 8 * KIB < len(json.dumps(answer.body["status"])) < 64 * KIB
