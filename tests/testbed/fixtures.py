"""Session-wide clusters for pytest; a conftest imports the ones its tests ask for."""

from collections.abc import Iterator

import pytest

from tests.testbed.testbed import Testbed


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Testbed]:
    """The real API server with its controllers and scheduler, but no nodes."""
    with Testbed().up(kubelet=False) as testbed:
        yield testbed


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """Six nodes that run pods, and Prometheus scraping them."""
    with Testbed().up() as cluster:
        yield cluster
