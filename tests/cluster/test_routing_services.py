"""Routing to the endpoints of a Service of the real API server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.kinds import Kind
from ballast.spark.routing import ServiceEndpoints
from ballast.spark.routing.chooser import RoutingError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

NAMESPACE = "routing-services"
SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")


def slice_of(name: str, zones: Sequence[str]) -> dict[str, Any]:
    """One ready endpoint for each zone."""
    return {
        "apiVersion": SLICE.api_version,
        "kind": SLICE.kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": "scores"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 80}],
        "endpoints": [
            {"addresses": [f"10.1.0.{number}"], "nodeName": f"n{number}", "zone": zone, "conditions": {"ready": True}}
            for number, zone in enumerate(zones, start=1)
        ],
    }


def test_calls_go_to_the_own_zone_and_elsewhere_once_its_endpoints_are_gone(
    control_plane: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    control_plane.create_namespace(NAMESPACE)
    client = Client(Connection.from_kubeconfig(control_plane.kubeconfig))
    monkeypatch.setenv("BALLAST_ZONE", "b")
    service = ServiceEndpoints("scores", NAMESPACE, kubeconfig=str(control_plane.kubeconfig))
    with pytest.raises(RoutingError, match=f"Service {NAMESPACE}/scores: there is no target"):
        service.choose(1)

    client.create(SLICE, slice_of("scores-1", ["a", "b", "b"]), namespace=NAMESPACE)
    assert set(service.choose(1000)) == {"10.1.0.2:80", "10.1.0.3:80"}

    only_a = {"endpoints": slice_of("scores-1", ["a"])["endpoints"]}
    client.patch(SLICE, "scores-1", only_a, namespace=NAMESPACE)
    wait_until(lambda: set(service.choose(1000)) == {"10.1.0.1:80"}, what="the endpoint of zone a", timeout_seconds=30)

    client.delete(SLICE, "scores-1", namespace=NAMESPACE)
    wait_until(lambda: is_without_target(service), what="the error", timeout_seconds=30)


def is_without_target(service: ServiceEndpoints) -> bool:
    try:
        service.choose(1)
    except RoutingError:
        return True
    return False
