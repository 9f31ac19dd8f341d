from typing import Any

import pytest

from tests.testbed.pod_discovery import EXECUTORS_JOB, PODS_JOB, targets_of
from tests.testbed.prometheus import Target

SCRAPED = {"prometheus.io/scrape": "true", "prometheus.io/port": "4040"}


def pod(
    *, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None, phase: str = "Running"
) -> dict[str, Any]:
    metadata = {"name": "driver", "namespace": "jobs", "labels": labels or {}}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "status": {"phase": phase, "podIP": "127.1.2.3"}}


def test_an_annotated_pod_is_scraped_where_it_says() -> None:
    annotated = pod(annotations={**SCRAPED, "prometheus.io/path": "/metrics/prometheus"})

    labels = {"namespace": "jobs", "pod": "driver"}
    assert targets_of([annotated]) == {
        PODS_JOB: [Target("127.1.2.3:4040", labels, "/metrics/prometheus")],
        EXECUTORS_JOB: [],
    }


def test_a_spark_driver_is_scraped_for_its_executors_too() -> None:
    driver = pod(annotations=SCRAPED, labels={"spark-role": "driver"})

    assert [target.path for target in targets_of([driver])[EXECUTORS_JOB]] == ["/metrics/executors/prometheus"]


@pytest.mark.parametrize(
    "other",
    [
        pod(),
        pod(annotations={}),
        pod(annotations=SCRAPED, phase="Pending"),
        pod(annotations=SCRAPED, phase="Succeeded"),
        pod(annotations={**SCRAPED, "prometheus.io/scrape": "false"}),
        pod(annotations={"prometheus.io/scrape": "true"}),
    ],
    ids=["unannotated", "empty", "pending", "ended", "declined", "no port"],
)
def test_other_pods_are_left_alone(other: dict[str, Any]) -> None:
    assert targets_of([other]) == {PODS_JOB: [], EXECUTORS_JOB: []}
