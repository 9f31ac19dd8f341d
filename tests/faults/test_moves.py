"""What becomes of moves, and of executors at their gates, when the cluster changes under a move or is in its way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.kube.errors import Forbidden
from ballast.kube.kinds import (
    DISRUPTION_BUDGET,
    NAMESPACE,
    NODE,
    POD,
    Kind,
)
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.ordered import COLD, EAGER, HOT, WARM, Stage, stage
from tests.cluster.controller.pool import Pool, pool, required_labels, zones
from tests.faults.invariants import watched
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
EXAMPLE = Path(__file__).parents[2] / "examples" / "tenants" / "resourcequota.yaml"
MOVES_COUNTED = "count/executormoves.ballast.dev"


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
