"""The clusters that these tests ask for."""

from tests.cluster.conftest import installed
from tests.testbed.fixtures import control_plane

__all__ = ["control_plane", "installed"]
