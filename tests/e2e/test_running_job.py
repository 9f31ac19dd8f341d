"""What `discover`, `explain` and `report` tell of a real streaming job."""

from __future__ import annotations

import pytest
import yaml

from ballast.api.topology import Component, SparkTopology
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import Cluster, Json
from tests.e2e.conftest import STEADY_NAMESPACE, TOPOLOGY, TOPOLOGY_OBJECT
from tests.unit.cli.program import run

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

MEASURED_SECONDS = 120.0


def ballast(cluster: Cluster, *arguments: str) -> Json:
    """What a user's `kubectl ballast` prints, read as YAML."""
    ended = run(*arguments, f"--namespace={STEADY_NAMESPACE}", f"--kubeconfig={cluster.testbed.kubeconfig}")
    assert ended.code == 0, ended.err
    document: Json = yaml.safe_load(ended.out)
    return document


def test_discover_proposes_the_topology_that_was_declared_by_hand(cluster: Cluster, steady: RunningJob) -> None:
    progress = steady.job.folder / "progress.jsonl"
    asked = ("discover", f"--progress={progress}", f"--prometheus={cluster.testbed.prometheus_url}")

    def only_component() -> Component | None:
        proposed = SparkTopology.parse(ballast(cluster, *asked))
        assert (proposed.metadata.namespace, proposed.metadata.name) == (STEADY_NAMESPACE, TOPOLOGY)
        (component,) = proposed.spec.components
        return component if component.exchange is not None else None

    component = cluster.await_(only_component, "the shuffle is measured", timeout_seconds=MEASURED_SECONDS)
    (by_hand,) = SparkTopology.parse(TOPOLOGY_OBJECT).spec.components
    assert component is not None
    # How much it shuffles was guessed by hand, and is measured here.
    assert component.model_copy(update={"exchange": by_hand.exchange}) == by_hand


def test_explain_shows_capacity_and_load_of_every_executor(cluster: Cluster, steady: RunningJob) -> None:
    policy = cluster.enforce()

    def measured() -> list[Json] | None:
        asked = ("explain", f"topology/{TOPOLOGY}", f"--policy={policy}", "--output=yaml")
        executors: list[Json] = ballast(cluster, *asked)["executors"]
        return executors if all(each["combination"] != "Unknown" for each in executors) else None

    executors = cluster.await_(measured, "tasks and CPU are measured", timeout_seconds=MEASURED_SECONDS)
    assert executors is not None
    assert {each["executor"] for each in executors} == {
        f"{STEADY_NAMESPACE}/{each.name}" for each in steady.running_executors()
    }
    assert all(0.0 < each["capacity"] <= 1.0 and 0.0 < each["load"] <= 1.0 for each in executors)


def test_report_measures_the_shuffle_and_prices_what_crosses_zones(cluster: Cluster, steady: RunningJob) -> None:
    asked = ("report", f"--prometheus={cluster.testbed.prometheus_url}", "--price-per-gib=0.01", "--output=yaml")

    def measured() -> Json | None:
        (found,) = ballast(cluster, *asked)["applications"]
        return found if found["volume"] == "Measured" else None

    found = cluster.await_(measured, "every executor's shuffle is measured", timeout_seconds=MEASURED_SECONDS)
    assert found is not None
    assert found["application"] == f"{STEADY_NAMESPACE}/{steady.job.application}"
    assert found["shuffleBytesPerSecond"] > 0.0
    # Ballast placed it: it is in one zone already, and in two racks of it.
    assert (found["before"]["crossZone"], found["before"]["costPerMonth"]) == (0.0, 0.0)
    assert 0.0 < found["before"]["crossRack"] < 1.0
