"""The clusters that these tests ask for."""

from tests.cluster.conftest import installed, untimed
from tests.testbed.fixtures import control_plane

__all__ = ["control_plane", "installed", "untimed"]
