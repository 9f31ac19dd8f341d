from tests.testbed.fixtures import control_plane, testbed

__all__ = ["control_plane", "testbed"]
