"""One full move of a real executor under load: where it went, how it left, and that no record noticed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from ballast.moves import MoveMetrics
from ballast.moves.judgment import verdict
from examples.demo.streaming.records import Comparison
from examples.demo.streaming.running import RunningJob
from tests.e2e.cluster import DECIDED_SECONDS, ENDED, WINDOW_SECONDS, Cluster, Json, names_by_node
from tests.e2e.conftest import STEADY_NAMESPACE

pytestmark = [pytest.mark.e2e, pytest.mark.soak]

GRACE_SECONDS = 60
WARM = "60s"
"""A replacement has ended tasks by then, and there is something to say of how long they take."""
NOISE_REQUEST = "250m"
"""The neighbor's share of the node's CPU leaves an executor (80m) about as much as it uses when nothing disturbs it:
batches wait for it, so that its move is felt, whatever else this machine does.
"""
_JUST_BEFORE = "8s:1s"


@dataclass(frozen=True, slots=True)
class Moved:
    """A move that has ended. `replacement`: as the API server had it then."""

    document: Json
    replacement: Json
    executors: int
    records: Comparison


@pytest.fixture(scope="module")
def moved(cluster: Cluster, steady: RunningJob) -> Moved:
    cluster.come_to_rest(steady)
    node = min(names_by_node(steady))
    with cluster.noise(node, request=NOISE_REQUEST):
        cluster.enforce(moves={"mode": "Enforce", "budgets": [{"moves": 1, "per": "1h"}], "settle": WARM})
        document = cluster.await_move(STEADY_NAMESPACE, phases=ENDED, timeout_seconds=DECIDED_SECONDS + 180)
    name = document["status"].get("replacement", {}).get("pod", "")
    executors = steady.running_executors()
    found = next((each.document for each in executors if each.name == name), {})
    return Moved(document, found, len(executors), steady.compared_so_far())


def test_the_gap_is_narrower(moved: Moved) -> None:
    measured = moved.document["status"]["measured"]
    assert measured["gain"] > 0, measured


def test_it_is_judged_by_what_was_measured(moved: Moved) -> None:
    """It helped the application; an outcome that contradicts itself, as where a batch was slow, is no failure."""
    status = moved.document["status"]
    before, after = (_figures(status["measured"], when) for when in ("Before", "After"))
    assert (status["phase"], status["reason"]) == ("Succeeded", verdict(before, after)), status


def _figures(measured: dict[str, float], when: str) -> MoveMetrics:
    return MoveMetrics(
        hot_score=measured.get(f"hot{when}"),
        cold_score=measured.get(f"cold{when}"),
        slowness=measured.get(f"slowness{when}"),
        batch_p50_seconds=measured.get(f"batchP50{when}"),
        batch_p95_seconds=measured.get(f"batchP95{when}"),
    )


def worked(cluster: Cluster, application: str, pod: str, *, at: str) -> bool:
    """Whether the executor had ended tasks in every window of the last seconds.

    It may have none: as long as others are free soon, Spark keeps tasks where their state is.
    """
    executor, moment = pod.rpartition("-exec-")[2], datetime.fromisoformat(at).timestamp()
    tasks = f'metrics_executor_completedTasks_total{{application_id="{application}",executor_id="{executor}"}}'
    rate = f"sum(rate({tasks}[{WINDOW_SECONDS}s]))"
    return (cluster.figures.value(f"min_over_time({rate}[{_JUST_BEFORE}] @ {moment:.0f})") or 0.0) > 0


def test_what_the_job_felt_is_recorded_next_to_the_prediction(cluster: Cluster, moved: Moved) -> None:
    spec, status = moved.document["spec"], moved.document["status"]
    measured, timings = status["measured"], status["timings"]
    batches = [measured.get(f"batchP95{when}") for when in ("Before", "After")]
    assert all(isinstance(value, int | float) and value > 0 for value in batches), measured
    for when, pod, at in (
        ("Before", spec["executor"]["pod"], moved.document["metadata"]["creationTimestamp"]),
        ("After", status["replacement"]["pod"], timings["ended"]),
    ):
        recorded = measured.get(f"slowness{when}", 0) > 0
        assert recorded or not worked(cluster, status["subject"]["application"], pod, at=at), (when, measured)
    after = float(spec["predicted"]["hotAfter"]) - float(spec["predicted"]["coldAfter"])
    predicted = float(spec["reason"]["difference"]) - after
    assert predicted > 0, spec


def test_the_replacement_runs_where_the_decision_said(moved: Moved) -> None:
    spec, status = moved.document["spec"], moved.document["status"]
    assert status["replacement"]["node"] == spec["targetNodeName"] == moved.replacement["spec"]["nodeName"]
    assert spec["targetNodeName"] != spec["sourceNodeName"]


def test_it_stays_in_the_zone_that_the_job_is_in(moved: Moved) -> None:
    assert moved.document["spec"]["targetNodeName"].startswith("node-b-")


def test_the_job_has_as_many_executors_as_before(moved: Moved) -> None:
    assert moved.executors == 3


def test_the_executor_left_gracefully(moved: Moved) -> None:
    """In a few seconds: when it can't finish, all of its grace period passes and it is killed."""
    timings = moved.document["status"]["timings"]
    left = datetime.fromisoformat(timings["arriving"]) - datetime.fromisoformat(timings["leaving"])
    assert left < timedelta(seconds=GRACE_SECONDS / 2)


def test_every_record_came_out_once(moved: Moved) -> None:
    assert moved.records.source > 0
    assert moved.records.agree, moved.records
