"""A real move, and the backtest of the same policy over what Prometheus has kept of it: pass by pass the same."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ballast.cli.main import app
from ballast.simulation.study import Result
from ballast.spark.backtest.cases import results
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import WINDOW_SECONDS, Cluster, Json, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE
from tests.spark.session import local_session
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

INTERVAL_SECONDS = 10
HITS = 4
"""Passes in a gap before anything is moved."""
RIPE_SECONDS = 5
STEP_SECONDS = 1
ARRIVED = frozenset({"Settling", "Succeeded"})
LEVELING = {
    "strategy": "AvgShedder",
    "avgShedder": {"lowThreshold": 10, "highThreshold": 30, "lowHits": HITS, "highHits": HITS, "minHotScore": 40},
}
LIMITS = {
    "mode": "Enforce",
    "budgets": [{"moves": 1, "per": "1h"}],
    "maxLocalityLossPercent": 100,
    "allowUnknownState": True,
}
_OTHERS_CPU = f'container_cpu_usage_seconds_total{{namespace!="{STEADY_NAMESPACE}",pod=~".+-exec-.+"}}'
OTHERS = f"count(count_over_time({_OTHERS_CPU}[2m]))"
NOTHING = "vector(1) < 0"
"""How long tasks take is in no history, so it may not count here."""


def ballast(*arguments: str) -> None:
    app("ballast")(args=list(arguments), standalone_mode=False)


def told(moment: float) -> str:
    return datetime.fromtimestamp(moment, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Run:
    """What has happened, and what a user has of it in the folder: the policy, a snapshot and the history."""

    policy: str
    move: Json
    first_pass: float
    last_pass: float
    told_at: float
    """When Prometheus had all of it."""
    folder: Path


@dataclass(frozen=True, slots=True)
class Passes:
    """Times in seconds since 1970; scores by node, of each pass."""

    times: list[float]
    scores: list[dict[str, float]]


@pytest.fixture(scope="module")
def made(cluster: Cluster, steady: RunningJob, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """The operator's move, from the policy's first pass on until the replacement runs."""
    folder = tmp_path_factory.mktemp("replay")
    cluster.come_to_rest(steady)
    assert cluster.figures.value(OTHERS) is None, "executors of other jobs would count as long as their series last"
    metrics = {
        "prometheus": {"url": cluster.testbed.prometheus_url},
        "window": f"{WINDOW_SECONDS}s",
        "advanced": {"queries": {"executorTaskSeconds": NOTHING}},
    }
    with cluster.noise(min(names_by_node(steady))):
        name = cluster.enforce(moves=LIMITS, shedding=LEVELING, metrics=metrics, interval=f"{INTERVAL_SECONDS}s")
        move = cluster.await_move(STEADY_NAMESPACE, phases=ARRIVED)
    passes = f'ballast_metrics_timestamp_seconds{{policy="{name}"}}'
    first, last = (cluster.figures.value(f"{edge}_over_time({passes}[10m])") for edge in ("min", "max"))
    assert first is not None
    assert last is not None
    told_at = time.time()
    (folder / "policy.yaml").write_text(json.dumps(cluster.policy(name)))
    config = str(cluster.testbed.kubeconfig)
    ballast("snapshot", "-p", name, "--output-file", str(folder / "snapshot.json"), "--kubeconfig", config)
    yield Run(name, move, first, last, told_at, folder)
    cluster.come_to_rest(steady)


@pytest.fixture(scope="module")
def replayed(cluster: Cluster, made: Run) -> Result:
    """What the same policy comes to by the history alone."""
    ripe = made.told_at + RIPE_SECONDS + STEP_SECONDS
    wait_until(lambda: time.time() > ripe, what="the history is ripe", timeout_seconds=2 * RIPE_SECONDS)
    first, end = told(made.first_pass), told(made.last_pass + 1)
    history, out = str(made.folder / "history"), str(made.folder / "out")
    spark = local_session("replay")
    try:
        days = ("--from", first[:10], "--to", end[:10])
        spans = ("--step", f"{STEP_SECONDS}s", "--window", f"{WINDOW_SECONDS}s", "--delay", f"{RIPE_SECONDS}s")
        ballast("history", "--prometheus", cluster.testbed.prometheus_url, "--path", history, *days, *spans)
        files = ("--policies", str(made.folder / "policy.yaml"), "--snapshot", str(made.folder / "snapshot.json"))
        window = ("--pool", made.policy, "--from", first, "--to", end)
        ballast("backtest", "--history", history, *window, *files, "--out", out, "--no-baseline", "-o", "json")
        (result,) = results(pq.read_table(f"{out}/results.parquet"))
    finally:
        spark.stop()
    return result


@pytest.fixture(scope="module")
def recorded(made: Run, replayed: Result) -> Passes:
    """The operator's own passes until the last one that is replayed, as its metrics told of them."""
    del replayed
    scores: dict[float, dict[str, float]] = {}
    moments: dict[float, float] = {}
    for file in sorted((made.folder / "history").glob(f"date=*/pool={made.policy}/*.parquet")):
        for row in pq.ParquetFile(file).read().to_pylist():
            at = row["time"].replace(tzinfo=UTC).timestamp()
            if row["signal"] == "pass":
                moments.setdefault(row["value"], at)
            elif row["signal"] == "nodeScore":
                scores.setdefault(at, {})[row["node"]] = row["value"]
    times = sorted(moment for moment in moments if moment <= made.last_pass)
    return Passes(times, [scores[moments[each]] for each in times])


def pass_of(move: Json, recorded: Passes) -> int:
    """The pass that decided it: a move is written in its pass, and figures are asked for at the beginning of one."""
    proposed = datetime.fromisoformat(move["metadata"]["creationTimestamp"]).timestamp()
    return max(index for index, at in enumerate(recorded.times) if at <= proposed)


def test_its_passes_are_the_operators(made: Run, replayed: Result, recorded: Passes) -> None:
    assert len(recorded.times) >= HITS
    assert [made.first_pass + at for at in replayed.series.times] == recorded.times


def test_it_sees_the_operators_scores_until_it_decides(made: Run, replayed: Result, recorded: Passes) -> None:
    """To the rounding of the results, which keep scores in single precision."""
    series = replayed.series
    for index in range(pass_of(made.move, recorded) + 1):
        seen = dict(zip(series.nodes, series.scores[index].tolist(), strict=True))
        assert seen == pytest.approx(recorded.scores[index], rel=1e-6), recorded.times[index]


def test_it_decides_the_operators_move_at_the_same_pass_and_no_other(
    made: Run, replayed: Result, recorded: Passes
) -> None:
    spec = made.move["spec"]
    real = (
        f"{STEADY_NAMESPACE}/{spec['executor']['pod']}",
        spec["sourceNodeName"],
        spec["targetNodeName"],
        pass_of(made.move, recorded),
    )
    found = [
        (move.executor, move.source, move.target, int(np.searchsorted(replayed.series.times, move.decided_at)))
        for move in replayed.moves
    ]
    assert found == [real], (made.move, replayed.moves)
