"""The clusters that these tests ask for."""

import math
from collections.abc import Iterator

import pytest

from tests.cluster.chart.installation import Installation, installation
from tests.cluster.crds.fixtures import crd_server
from tests.faults import invariants
from tests.testbed.fixtures import control_plane
from tests.testbed.testbed import Testbed

__all__ = ["control_plane", "crd_server", "installed", "untimed"]


@pytest.fixture(autouse=True)
def untimed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a pod may be gated is judged in `make soak` alone: `make test` gives one verdict on any machine."""
    if request.node.get_closest_marker("soak") is None:
        monkeypatch.setattr(invariants, "GATED_SECONDS", math.inf)


@pytest.fixture(scope="session")
def installed(control_plane: Testbed) -> Iterator[Installation]:
    """The chart on the control plane, with its admission policies at work and no switch that turns the gate on."""
    with installation(control_plane) as found:
        yield found
