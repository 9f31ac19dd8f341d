"""One Spark session and one Prometheus for the folder: each takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.spark import known_cluster, known_data
from tests.spark.filled_prometheus import FilledPrometheus, holding
from tests.spark.session import local_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilledPrometheus]:
    """It holds the known data, and the known cluster, whose series have other names."""
    with holding(_both(), tmp_path_factory.mktemp("prometheus")) as filled:
        yield filled


def _both() -> Iterator[str]:
    yield from (line for line in known_cluster.openmetrics() if line != "# EOF\n")
    yield from known_data.openmetrics()
