"""The clusters that these tests ask for."""

from tests.cluster.crds.fixtures import crd_server
from tests.testbed.fixtures import control_plane

__all__ = ["control_plane", "crd_server"]
