"""What becomes of moves, and of executors at their gates, when the cluster changes under a move or is in its way."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.controller.turns import MOST
from ballast.kube.constraint_reader import REQUIRED
from ballast.kube.errors import Forbidden
from ballast.kube.kinds import (
    BALANCING_POLICY,
    DISRUPTION_BUDGET,
    EXECUTOR_MOVE,
    NAMESPACE,
    NODE,
    POD,
    SPARK_TOPOLOGY,
    Kind,
)
from ballast.kube.pods import PodReader
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.ordered import COLD, EAGER, HOT, WARM, Stage, stage
from tests.cluster.controller.pool import POOL_LABEL, Pool, pool, required_labels, zones
from tests.faults.invariants import watched
from tests.faults.webhook import Webhook, webhook
from tests.testbed.errors import TestbedError
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
EXAMPLE = Path(__file__).parents[2] / "examples" / "tenants" / "resourcequota.yaml"
MOVES_COUNTED = "count/executormoves.ballast.dev"
JUNK = 300
NEXT_TO_NONE = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"no": "such"}}}


def until_phase(on: Stage, name: str, *phases: str) -> None:
    def reached() -> JSON | None:
        status: JSON = on.move(name).get("status") or {}
        return status if status.get("phase") in phases else None

    on.until(reached, f"{name} is {' or '.join(phases)}")


def assert_placed(on: Stage, others: Pool, *, rounds: int = 3) -> None:
    """Executors elsewhere do not wait for what is wrong here."""
    placed = others.executors(2)
    for _ in range(rounds):
        on.clock.ahead_seconds += 1.0
        on.operator.reconcile()
    assert not any(others.gated(name) for name in placed)
    assert all(required_labels(others.pod(name)) for name in placed)


@pytest.mark.soak
def test_a_namespace_that_is_deleted_while_an_executor_moves_delays_no_other(installed: Installation) -> None:
    with stage(installed, "lost-space") as on, pool(installed.testbed, "lost-space-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name):
            on.ask("asked", on.executor(HOT))
            until_phase(on, "asked", "Leaving", "Arriving")
            on.mine.delete(NAMESPACE, on.mine.name)
            written = len(on.operator.fate.writes)
            assert_placed(on, others)
            for _ in range(10):
                on.clock.ahead_seconds += 1.0
                on.operator.reconcile()
            assert len(on.operator.fate.writes) - written < 40, "it writes without end"


@pytest.mark.soak
def test_a_destination_that_is_deleted_while_an_executor_moves_there_leaves_nothing_gated(
    installed: Installation,
) -> None:
    with stage(installed, "lost-node") as on, watched(installed.testbed, on.mine.name):
        on.ask("asked", on.executor(HOT))
        until_phase(on, "asked", "Leaving")
        on.mine.delete(NODE, on.mine.node(COLD))
        assert on.outcome("asked")[0] == "Succeeded"
        assert len(on.driver.pods()) == 2
        assert not any(on.mine.gated(pod["metadata"]["name"]) for pod in on.driver.pods())


@pytest.mark.soak
def test_a_replacement_that_a_user_deletes_is_followed_by_another_and_nothing_is_evicted_again(
    installed: Installation,
) -> None:
    with stage(installed, "lost-pod") as on, watched(installed.testbed, on.mine.name) as witness:
        on.ask("asked", on.executor(HOT))
        until_phase(on, "asked", "Arriving")
        for pod in on.driver.pods():
            if pod["spec"].get("nodeName") != on.mine.node(WARM):
                on.mine.delete(POD, pod["metadata"]["name"])
        assert on.outcome("asked")[0] == "Succeeded"
        assert len(on.driver.pods()) == 2
        assert len(witness.evicted()) == 1


@pytest.mark.soak
def test_a_disruption_budget_of_zero_is_told_and_an_executor_leaves_once_it_allows(installed: Installation) -> None:
    with stage(installed, "budget") as on, watched(installed.testbed, on.mine.name) as witness:
        none = {"maxUnavailable": 0, "selector": {"matchLabels": {"spark-role": "executor"}}}
        on.mine.apply(DISRUPTION_BUDGET, "none", none)
        wait_until(
            lambda: (on.mine.read(DISRUPTION_BUDGET, "none").get("status") or {}).get("currentHealthy") is not None,
            what="pods are counted for the budget",
        )
        on.ask("asked", on.executor(HOT))

        def blocked() -> JSON | None:
            status: JSON = on.move("asked").get("status") or {}
            return status if status.get("reason") == "DisruptionBudget" else None

        on.until(blocked, "the move says what blocks it")
        assert witness.evicted() == []
        on.mine.delete(DISRUPTION_BUDGET, "none")
        assert on.outcome("asked")[0] == "Succeeded"
        assert len(witness.evicted()) == 1


@pytest.mark.soak
def test_a_quota_that_is_used_up_refuses_moves_and_executors_are_placed(installed: Installation) -> None:
    with stage(installed, "quota", shedding=EAGER) as on, pool(installed.testbed, "quota-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name) as witness:
            hard = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))["spec"]["hard"]
            on.mine.apply(QUOTA, "tenant", {"hard": {**hard, MOVES_COUNTED: "1"}})
            # The controller manager learns of new kinds every 30 s.
            wait_until(lambda: _used(on).keys() == hard.keys(), what="the quota counts", timeout_seconds=60.0)
            on.ask("first", on.executor(WARM), approved=False)
            assert _used(on)[MOVES_COUNTED] == "1"
            with pytest.raises(Forbidden, match="exceeded quota: tenant"):
                on.ask("second", on.executor(WARM), approved=False)
            told = on.until(lambda: next(iter(on.mine.events("MoveNotCreated")), None), "its Event says why")
            assert "exceeded quota: tenant" in told["note"]
            assert_placed(on, others)
            assert witness.evicted() == []


def _used(on: Stage) -> JSON:
    found: JSON = (on.mine.read(QUOTA, "tenant").get("status") or {}).get("used") or {}
    return found


@pytest.mark.parametrize(
    "hangs", [pytest.param(False, id="refuses"), pytest.param(True, id="hangs", marks=pytest.mark.soak)]
)
def test_a_webhook_that_is_in_the_way_of_releases_delays_no_other_namespace(
    installed: Installation, tmp_path: Path, *, hangs: bool
) -> None:
    name = f"webhook-{'hangs' if hangs else 'refuses'}"
    with stage(installed, name) as on, pool(installed.testbed, f"{name}-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name) as witness:
            with webhook(on.mine, tmp_path, hangs=hangs) as hook, witness.outage():
                on.driver.target += 1
                on.driver.start()
                wait_until(lambda: _asked(on, hook), what="the webhook is asked")
                assert_placed(on, others, rounds=2)
            on.until(lambda: {"released": True} if not _gated(on) else None, "the executor is released")
            placed = on.mine.condition(BALANCING_POLICY, "Ready")
            assert placed is not None
            assert placed["status"] == "True"


def _asked(on: Stage, hook: Webhook) -> bool:
    on.operator.reconcile()
    return hook.asked > 0


def _gated(on: Stage) -> bool:
    return any(on.mine.gated(pod["metadata"]["name"]) for pod in on.driver.pods())


@pytest.mark.soak
def test_a_flood_of_junk_moves_delays_no_executor_at_its_gate(installed: Installation) -> None:
    with stage(installed, "flood") as on, pool(installed.testbed, "flood-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name) as witness:
            installed.testbed.api.post_all(EXECUTOR_MOVE.path(namespace=others.name), [_junk(i) for i in range(JUNK)])
            before = len(on.operator.fate.writes)
            assert_placed(on, others)
            statuses = on.operator.fate.writes[before:].count("patch ExecutorMove status")
            assert 0 < statuses <= 3 * MOST
            on.ask("asked", on.executor(HOT))
            on.operator.reconcile()
            assert on.move("asked")["status"]["phase"] == "Leaving", "another namespace's move has its turn at once"
            assert len(witness.evicted()) == 1


@pytest.mark.soak
@pytest.mark.parametrize(
    "asking",
    [
        {"schedulerName": "nosuch"},
        {"affinity": {"podAffinity": {REQUIRED: [NEXT_TO_NONE]}}},
    ],
    ids=["no scheduler", "no node"],
)
def test_pods_that_will_never_be_bound_take_no_room_from_another_namespace(
    installed: Installation, asking: JSON
) -> None:
    name = "never-scheduled" if "schedulerName" in asking else "never-fits"
    with stage(installed, name) as on, pool(installed.testbed, f"{name}-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name):
            larger = {"cpu": "3500m", "gates": (), "nodeSelector": {POOL_LABEL: others.name}, **asking}
            pods = on.mine.executors(2 * len(zones()), role="other", application="larger", **larger)
            wait_until(
                lambda: not any(_may_be_bound(on.mine.pod(name)) for name in pods),
                what="kube-scheduler has tried those that are its own",
            )
            assert_placed(on, others)


def _may_be_bound(pod: JSON) -> bool:
    return PodReader().read(pod).about_to_be_bound(time.time())


@pytest.mark.soak
def test_a_topology_as_long_as_etcd_takes_delays_no_other_namespace(
    installed: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    with stage(installed, "long") as on, pool(installed.testbed, "long-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name):
            path = SPARK_TOPOLOGY.path(namespace=on.mine.name)
            installed.testbed.api.post(path, _long(_longest(on, path)))
            assert_placed(on, others)
            # Answers to status writes are not awaited by a pass.
            on.until(
                lambda: {"said": True} if "status of long was not written" in caplog.text else None,
                "its status is refused",
            )
            on.until(lambda: on.mine.read(SPARK_TOPOLOGY, "clicks").get("status"), "the others' statuses are written")


def _longest(on: Stage, path: str) -> int:
    """The most bytes of labels and annotations that a topology may have."""
    fits, too_many = 1 << 20, 1 << 21
    while too_many - fits > 60:
        tried = (fits + too_many) // 2
        try:
            on.mine.testbed.api.post(path, _long(tried))
        except TestbedError:
            too_many = tried
        else:
            on.mine.delete(SPARK_TOPOLOGY, "long")
            fits = tried
    return fits


def _long(size: int) -> JSON:
    label = f"{'x' * 40}/{'y' * 60}"
    each = len(label) + 73
    labels = {f"l{number:06d}.{label}": "z" * 63 for number in range(size // each)}
    return {
        "apiVersion": SPARK_TOPOLOGY.api_version,
        "kind": SPARK_TOPOLOGY.kind,
        "metadata": {"name": "long", "labels": labels, "annotations": {"rest": "a" * (size % each)}},
        "spec": {"components": [{"name": "a", "executors": 3}]},
    }


def _junk(number: int) -> JSON:
    """Names what is not there, in words that would do harm if they were read as PromQL, HTML or a terminal's."""
    words = ("{__name__=~'.+'}", "<script>alert(1)</script>", "\x1b[2J", "%s%n{0}")[number % 4]
    return {
        "apiVersion": EXECUTOR_MOVE.api_version,
        "kind": EXECUTOR_MOVE.kind,
        "metadata": {"name": f"junk-{number}", "annotations": {"words": words, "much": "x" * (1 << 10)}},
        "spec": {
            "topologyName": "clicks",
            "executor": {"pod": f"no-such-{number}", "uid": f"junk-{number}"},
            "sourceNodeName": f"flood-{HOT}",
            "targetNodeName": f"flood-{COLD}",
            "approved": True,
        },
    }
