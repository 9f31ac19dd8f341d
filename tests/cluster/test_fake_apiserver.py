"""The real API server behaves as the table of the fake one says, so that the fake one can't drift."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from tests.apiserver.behaviors import BEHAVIORS, Behavior, Scene, a_silent_watch_brings_a_bookmark_within_75_seconds
from tests.cluster.crds.server import Server
from tests.testbed.testbed import Testbed

pytestmark = pytest.mark.cluster


@pytest.fixture
def scene(control_plane: Testbed, crd_server: Server, request: pytest.FixtureRequest) -> Iterator[Scene]:
    assert crd_server.url == control_plane.url
    namespace = (
        f"fake-{request.node.callspec.indices['behavior'] if hasattr(request.node, 'callspec') else 'bookmarks'}"
    )
    control_plane.create_namespace(namespace)
    client = Client(Connection.from_kubeconfig(control_plane.kubeconfig))
    yield Scene(client, namespace)
    client.close()


@pytest.mark.parametrize("behavior", BEHAVIORS, ids=lambda each: each.__name__.replace("_", " "))
def test_the_real_api_server(scene: Scene, behavior: Behavior) -> None:
    behavior(scene)


@pytest.mark.soak
def test_a_silent_watch_of_the_real_one_brings_a_bookmark(scene: Scene) -> None:
    a_silent_watch_brings_a_bookmark_within_75_seconds(scene)
