"""The real API server behaves as the table of the fake one says, so that the fake one can't drift."""

from __future__ import annotations

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from tests.apiserver.behaviors import BEHAVIORS, Behavior, Scene
from tests.cluster.crds.server import Server
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("behavior", BEHAVIORS, ids=lambda each: each.__name__.replace("_", " "))
def test_the_real_api_server(control_plane: Testbed, crd_server: Server, behavior: Behavior) -> None:
    assert crd_server.url == control_plane.url
    namespace = f"fake-{BEHAVIORS.index(behavior)}"
    control_plane.create_namespace(namespace)
    client = Client(Connection.from_kubeconfig(control_plane.kubeconfig))
    behavior(Scene(client, namespace))
    client.close()
