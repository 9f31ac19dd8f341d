"""The clusters that these tests ask for."""

from collections.abc import Iterator

import pytest

from tests.cluster.chart.installation import Installation, installation
from tests.cluster.crds.fixtures import crd_server
from tests.testbed.fixtures import control_plane
from tests.testbed.testbed import Testbed

__all__ = ["control_plane", "crd_server", "installed"]


@pytest.fixture(scope="session")
def installed(control_plane: Testbed) -> Iterator[Installation]:
    """The chart on the control plane, with its admission policies at work and no switch that turns the gate on."""
    with installation(control_plane) as found:
        yield found
