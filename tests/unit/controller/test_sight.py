from __future__ import annotations

from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.gateclock import GateClock
from ballast.controller.observe import Lists
from ballast.controller.openmove import OpenMove
from ballast.controller.pools import Territories, territories
from ballast.controller.sight import Sight
from ballast.controller.survey import Read, Survey
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Memory
from ballast.moves import MoveState
from ballast.prometheus import Reading
from tests.unit.controller.stage import NAMESPACES, NOW
from tests.unit.controller.stage import move as ordered
from tests.unit.kube.builders import GATE, executor, node
from tests.unit.moves.builders import leaving, orders, proposed

POOLS = {"one": frozenset({"hot", "mild"}), "two": frozenset({"cold"})}


def ruler(move: MoveState, pools: dict[str, frozenset[str]] | None = None) -> str | None:
    sight = Sight(Survey(Lists((), ()), (), (), ()), Territories(pools or POOLS, {}), GateClock(), 0.0)
    each = OpenMove({}, move)
    (found,) = [name for name in ("one", "two", None) if sight.own_moves([each], name)]
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
    survey = Survey(Lists(pods, nodes, NAMESPACES), policies, (), (under_way,))
    sight = Sight(survey, territories(policies, nodes), GateClock().after(pods, NOW), NOW)
    contexts = [sight.context(read, Memory(), Reading(), []) for read in policies]
    seen = {context.name: {e.executor_id for e in context.snapshot.executors} for context in contexts}
    assert seen == {"one": {"2"}, "two": {"2"}} | {holder: {"2", "7"}}
    assert [dict(context.others) for context in contexts if context.name != holder] == [{"uid-spark-1-exec-7": holder}]
