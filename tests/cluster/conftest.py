"""The clusters that these tests ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.chart.installation import Installation, installation
from tests.cluster.crds.fixtures import crd_server
from tests.testbed.fixtures import control_plane
from tests.testbed.testbed import Testbed

__all__ = ["control_plane", "crd_server", "installed"]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of this name, too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Two groups of files for two workers: each has its own control plane, which the same tests share in every run."""
    for item in items:
        if item.path.is_relative_to(HERE):
            group = "operator" if item.path.name.startswith("test_operator") else "server"
            item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def installed(control_plane: Testbed) -> Iterator[Installation]:
    """The chart on the control plane, with its admission policies at work and no switch that turns the gate on."""
    with installation(control_plane) as found:
        yield found
