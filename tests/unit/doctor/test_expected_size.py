"""Doctor proposes the label that tells how many executors an application is going to have."""

from __future__ import annotations

import pytest

from ballast.doctor.command import from_properties, from_script
from ballast.doctor.resources import from_documents
from ballast.doctor.submission import Submission
from ballast.doctor.submission_checks import Expectations, check, patch
from tests.unit.doctor.provoked import as_properties, settings

LABEL = "spark.kubernetes.executor.label.ballast.dev/executors"
DYNAMIC = "spark.dynamicAllocation"
CELEBORN = "org.apache.spark.shuffle.celeborn.SparkShuffleManager"
ALLOCATING = {f"{DYNAMIC}.enabled": "true", f"{DYNAMIC}.shuffleTracking.enabled": "true"}
TOPOLOGY = """
apiVersion: ballast.dev/v1alpha1
kind: SparkTopology
metadata: {name: clicks}
spec: {components: [{name: ingest, executors: 40}]}
---
"""
KUBEFLOW = """
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: clicks}
spec: {executor: {instances: 40, labels: {ballast.dev/topology: clicks}}}
"""


def proposed(app: Submission) -> str | None:
    found = [each for each in check([app], Expectations()) if each.id == "SizeUnknown"]
    return found[0].settings[LABEL] if found else None


@pytest.mark.parametrize(
    ("changes", "number"),
    [
        ({"spark.executor.instances": "40"}, "40"),
        ({**ALLOCATING, f"{DYNAMIC}.maxExecutors": "100", f"{DYNAMIC}.initialExecutors": "10"}, "100"),
        ({**ALLOCATING, f"{DYNAMIC}.initialExecutors": "30"}, "30"),
        # Those of one batch are seen together.
        ({"spark.executor.instances": "20"}, None),
        ({"spark.executor.instances": "20", "spark.kubernetes.allocation.batch.size": "5"}, "20"),
        ({"spark.executor.instances": "6", "spark.kubernetes.container.image": "spark:3.5.7"}, "6"),
        ({**ALLOCATING, f"{DYNAMIC}.maxExecutors": "2147483647"}, None),
        ({**ALLOCATING, "spark.executor.instances": "40"}, None),
        ({"spark.executor.instances": "40", "spark.shuffle.manager": CELEBORN}, None),
        ({"spark.executor.instances": "40", LABEL: "80"}, None),
        ({"spark.executor.instances": "40", LABEL.replace(".label.", ".annotation."): "80"}, None),
        ({}, None),
    ],
)
def test_the_number_comes_from_the_applications_own_settings(changes: dict[str, str], number: str | None) -> None:
    assert proposed(from_properties(as_properties(settings(changes)), "app.conf")) == number


def test_a_command_line_gets_an_option() -> None:
    (app,) = from_script("spark-submit --conf spark.executor.instances=40 job.py", "submit.sh", lambda _: None)
    text = patch(check([app], Expectations()), {app.source: app})
    assert f"--conf {LABEL}=40" in text


def test_a_resource_gets_a_setting_unless_its_topology_says_how_many() -> None:
    (alone,) = from_documents(KUBEFLOW, "app.yaml")
    (declared,) = from_documents(TOPOLOGY + KUBEFLOW, "app.yaml")
    assert (proposed(alone), proposed(declared)) == ("40", None)
    assert f"    {LABEL}: '40'" in patch(check([alone], Expectations()), {alone.source: alone})
