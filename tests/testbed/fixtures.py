"""Session-wide clusters for pytest; a conftest imports the ones its tests ask for.

from tests.testbed.fixtures import control_plane  # noqa: F401
"""

from collections.abc import Iterator

import pytest

from tests.testbed.testbed import KEPT_LOGS, Testbed

SESSION_SECONDS = 24 * 3600
"""Longer than a session: nodes that a test makes by hand send no heartbeats, and stay Ready all the same."""


@pytest.fixture(scope="session")
def control_plane(worker_id: str) -> Iterator[Testbed]:
    """The real API server with its controllers and scheduler, and no nodes but the fake ones that tests add.

    Each of pytest-xdist's workers has its own.
    """
    with Testbed(progress=print).up(
        kubelet=False, prometheus=False, kwok=True, node_grace_seconds=SESSION_SECONDS
    ) as cluster:
        yield cluster
        cluster.keep_logs(KEPT_LOGS / worker_id / "control-plane")


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """Six nodes that run pods, and Prometheus scraping them."""
    with Testbed(progress=print).up() as cluster:
        yield cluster
        cluster.keep_logs(KEPT_LOGS / "testbed")
