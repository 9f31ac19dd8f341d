"""A backtest through spark-submit, with a cluster of Kubernetes as its master and executors that are pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from ballast.api import BalancingPolicy
from ballast.simulation.policies import candidates
from ballast.simulation.ranking import ranking
from ballast.simulation.replay import ScenarioTrial
from ballast.simulation.study import Case, Study
from ballast.spark.backtest.store import ranking_table
from tests.testbed.nodes import NodeSpec
from tests.testbed.spark_driver import FILES, driver, log, prepare
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until
from tests.unit.simulation.small_world import EAGER, scenario

pytestmark = [pytest.mark.e2e, pytest.mark.soak]
NAMESPACE = "spark"
PROGRAM = """
import sys
from ballast.cli.main import call

call("ballast", ["backtest", *sys.argv[1:]])
"""
WORLD = scenario(duration="10m", policy=EAGER)
SEEDS = (1, 2)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Testbed]:
    document = {"apiVersion": "ballast.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "small"}}
    world = yaml.safe_dump({**document, "spec": WORLD.to_dict()["spec"]})
    with Testbed(progress=print).up(nodes=[NodeSpec("one", cpu="4")], prometheus=False) as testbed:
        prepare(testbed, NAMESPACE, {"backtest.py": PROGRAM, "world.yaml": world})
        yield testbed


def wanted() -> Study:
    """What it should come to, run here."""
    policies = candidates(["AvgShedder"], [], figures=EAGER, baseline=True)
    trial = ScenarioTrial(WORLD)
    results = [
        trial.run(BalancingPolicy.parse(document), Case(name, "small", seed))
        for name, document in policies.items()
        for seed in SEEDS
    ]
    return Study(tuple(results), policies)


def test_a_backtest_on_executors_that_are_pods_comes_to_the_same(cluster: Testbed, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    asked = ["--scenario", f"{FILES}/world.yaml", "--policies", "AvgShedder", "--seeds", str(len(SEEDS))]
    cluster.apply(driver(NAMESPACE, "backtest.py", [*asked, "--out", "/results"], folders={"/results": tmp_path}))

    def phase() -> str:
        pod = json.loads(cluster.kubectl("get", "pod", "driver", "-n", NAMESPACE, "-o", "json"))
        return str(pod["status"].get("phase"))

    def told() -> str:
        return cluster.kubectl("get", "events", "-n", NAMESPACE) + log(cluster, NAMESPACE, "driver")[-6000:]

    wait_until(lambda: phase() in {"Succeeded", "Failed"}, what="the driver ends", timeout_seconds=240, explain=told)
    assert phase() == "Succeeded", told()
    assert "4 runs, 0 of them reused from /results, 4 to do" in log(cluster, NAMESPACE, "driver")
    assert log(cluster, NAMESPACE, "job-exec-1")
    assert pq.read_table(tmp_path / "ranking.parquet").equals(ranking_table(ranking(wanted())))
