"""A server that knows our kinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from ballast.api.crd import KINDS
from tests.cluster.crds.server import Server
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

CRDS = Path(__file__).parents[3] / "crds"


@pytest.fixture(scope="session")
def crd_server(control_plane: Testbed) -> Iterator[Server]:
    """The real API server with the committed definitions, established."""
    control_plane.apply(*sorted(CRDS.glob("*.yaml")))
    control_plane.await_definitions(*(kind.crd_name for kind in KINDS))
    _await_explanations(control_plane)
    client = control_plane.api.client
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(control_plane.ca)
        session.cert = (str(client.certificate), str(client.key))
        yield Server(control_plane.url, session)


def _await_explanations(control_plane: Testbed) -> None:
    """The server publishes the fields of new kinds a moment after it serves them."""

    def explained() -> bool:
        try:
            return bool(control_plane.kubectl("explain", "sparktopology.spec.streams"))
        except TestbedError:
            return False

    wait_until(explained, what="the server explains sparktopology.spec.streams")
