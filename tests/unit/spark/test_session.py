from __future__ import annotations

import sys

import pytest

from ballast.spark.session import worker_python

OWN = {"PYSPARK_PYTHON": sys.executable}
SUBMITTED = {"PYSPARK_GATEWAY_PORT": "40123"}


@pytest.mark.parametrize("master", [None, "local", "local[2]", "local[*]"])
def test_workers_of_a_local_session_are_this_python(master: str | None) -> None:
    assert worker_python({}, master=master) == OWN


@pytest.mark.parametrize(
    ("environment", "master"),
    [
        ({"PYSPARK_PYTHON": "/opt/python"}, None),
        ({"PYSPARK_PYTHON": "/opt/python"}, "local[2]"),
        (SUBMITTED, None),
        (SUBMITTED, "local[2]"),
        ({}, "k8s://https://kubernetes:6443"),
        ({}, "spark://master:7077"),
    ],
)
def test_whatever_is_settled_elsewhere_stays(environment: dict[str, str], master: str | None) -> None:
    assert worker_python(environment, master=master) == {}
