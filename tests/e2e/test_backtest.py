"""A real move, and the backtest of the same policy over what Prometheus has kept of it: the same decision."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ballast.cli.main import app
from ballast.simulation.trace import MoveRecord
from ballast.spark.backtest import Store
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import ENDED, WINDOW_SECONDS, Cluster, Json, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE
from tests.spark.session import local_session
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.e2e

INTERVAL_SECONDS = 10
QUIET_SECONDS = 60
"""Of the policy, before anything happens; for the backtest to begin in."""
RIPE_SECONDS = 5


def ballast(*arguments: str) -> None:
    app("ballast")(args=list(arguments), standalone_mode=False)


def told(moment: float) -> str:
    return datetime.fromtimestamp(moment, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backtest")


@pytest.fixture(scope="module")
def made(cluster: Cluster, steady: RunningJob, folder: Path) -> Json:
    """The operator's move. Beside it lie what a user would have: a snapshot, the policy, and the history."""
    cluster.come_to_rest(STEADY_NAMESPACE)
    steady.await_executors()
    limits = {"mode": "Enforce", "budgets": [{"moves": 1, "per": "1h"}], "settle": "30s"}
    since = time.time()
    name = cluster.enforce(moves=limits, interval_seconds=INTERVAL_SECONDS)
    wait_until(lambda: time.time() - since > QUIET_SECONDS, what="some quiet", timeout_seconds=2 * QUIET_SECONDS)
    with cluster.noise(min(names_by_node(steady))):
        document = cluster.await_move(STEADY_NAMESPACE, phases=ENDED, timeout_seconds=240)
    (folder / "policy.yaml").write_text(json.dumps(cluster.policy(name)))
    config = str(cluster.testbed.kubeconfig)
    ballast("snapshot", "-p", name, "-o", str(folder / "snapshot.json"), "--kubeconfig", config)
    until = time.time()
    wait_until(lambda: time.time() - until > RIPE_SECONDS, what="figures are ripe", timeout_seconds=2 * RIPE_SECONDS)
    (folder / "times.json").write_text(json.dumps([told(since + 2 * WINDOW_SECONDS), told(until)]))
    return document


@pytest.fixture(scope="module")
def replayed(cluster: Cluster, made: Json, folder: Path) -> tuple[MoveRecord, ...]:
    """What the same policy decides by the history alone."""
    del made
    since, until = json.loads((folder / "times.json").read_text())
    spark: SparkSession = local_session("backtest")
    try:
        days = ("--from", since[:10], "--to", until[:10])
        spans = ("--step", f"{INTERVAL_SECONDS}s", "--window", f"{WINDOW_SECONDS}s", "--delay", f"{RIPE_SECONDS}s")
        pool = ("--pool", "tested=node-.*")
        url = cluster.testbed.prometheus_url
        ballast("history", "--prometheus", url, "--path", str(folder / "history"), *days, *spans, *pool)
        files = ("--policies", str(folder / "policy.yaml"), "--snapshot", str(folder / "snapshot.json"))
        times = ("--from", since, "--to", until)
        ballast(
            "backtest", "--history", str(folder / "history"), *times, *files, "--out", str(folder / "out"),
            "--no-baseline", "-o", "json",
        )  # fmt: skip
        (result,) = Store(spark, str(folder / "out")).published().results
    finally:
        spark.stop()
    return result.moves


def test_the_backtest_decides_the_move_that_the_operator_made(made: Json, replayed: tuple[MoveRecord, ...]) -> None:
    spec = made["spec"]
    decided = [(move.executor, move.source, move.target) for move in replayed]
    assert decided == [(f"{STEADY_NAMESPACE}/{spec['executor']['pod']}", spec["from"], spec["to"])], made


def test_it_decides_at_the_same_pass(made: Json, replayed: tuple[MoveRecord, ...], folder: Path) -> None:
    """Passes of the two are at other moments: up to an interval apart, and the operator takes a while to write."""
    since = datetime.fromisoformat(json.loads((folder / "times.json").read_text())[0])
    proposed = datetime.fromisoformat(made["status"]["timings"]["proposed"])
    apart = (proposed - since).total_seconds() - replayed[0].decided_at
    assert abs(apart) < 2 * INTERVAL_SECONDS, (proposed, since, replayed[0])
