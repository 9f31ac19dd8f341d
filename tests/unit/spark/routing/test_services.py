from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ballast.errors import InvalidField
from ballast.grouping.place import Place
from ballast.kube.client import Client
from ballast.spark.routing import PrometheusLoad, ServiceEndpoints, services
from ballast.spark.routing.loads import Calls
from ballast.spark.routing.services import endpoints


def endpoint(address: str, **fields: Any) -> dict[str, Any]:
    return {"addresses": [address], "nodeName": "n1", "zone": "a", **fields}


def slice_of(*members: dict[str, Any], ports: Any = ({"name": "http", "port": 80},)) -> dict[str, Any]:
    return {"endpoints": list(members), "ports": list(ports)}


def test_an_endpoint_is_where_its_node_and_zone_are() -> None:
    assert endpoints([slice_of(endpoint("10.0.0.1"))], None) == {
        "10.0.0.1:80": Place(node="n1", process="endpoint", zone="a")
    }


def test_one_that_is_outside_of_the_cluster_has_no_place() -> None:
    assert endpoints([slice_of({"addresses": ["192.0.2.1"]})], None) == {"192.0.2.1:80": None}


def test_an_endpoint_that_is_not_ready_is_no_target_and_one_whose_state_is_not_known_is() -> None:
    states = {"10.0.0.1": True, "10.0.0.2": False, "10.0.0.3": None}
    members = [endpoint(address, conditions={"ready": ready}) for address, ready in states.items()]
    assert list(endpoints([slice_of(*members)], None)) == ["10.0.0.1:80", "10.0.0.3:80"]


def test_the_port_is_chosen_by_its_name() -> None:
    ports = [{"name": "http", "port": 80}, {"name": "grpc", "port": 90}]
    slices = [slice_of(endpoint("10.0.0.1"), ports=ports)]
    assert list(endpoints(slices, "grpc")) == ["10.0.0.1:90"]
    assert list(endpoints(slices, "other")) == []


def test_an_endpoint_in_two_slices_counts_once_and_an_empty_slice_is_no_error() -> None:
    slices = [slice_of(endpoint("10.0.0.1")), slice_of(endpoint("10.0.0.1")), {"endpoints": None, "ports": None}]
    assert list(endpoints(slices, None)) == ["10.0.0.1:80"]


def test_an_ipv6_address_has_brackets() -> None:
    assert list(endpoints([slice_of(endpoint("2001:db8::1"))], None)) == ["[2001:db8::1]:80"]


NEAR, FAR = "10.0.0.1:80", "[2001:db8::1]:80"
BUSY = PrometheusLoad("http://prometheus", "busy")


def loads(monkeypatch: pytest.MonkeyPatch, service: ServiceEndpoints, calls: Calls | None) -> dict[str, float | None]:
    """Of a Service with two endpoints, by address."""
    access = services._Access(cast("Client", None), calls)
    listed = SimpleNamespace(items=[slice_of(endpoint("10.0.0.1"), endpoint("2001:db8::1"))])
    monkeypatch.setattr(services, "_access_of", lambda service: access)
    monkeypatch.setattr(services, "read_list", lambda client, query, kind: listed)
    return {access.addresses[target.id]: target.load for target in service.read().targets}


@pytest.mark.parametrize("name", [NEAR, "10.0.0.1"])
def test_a_load_of_prometheus_is_for_an_ip_with_or_without_its_port(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(PrometheusLoad, "read", lambda load: {name: 0.5, "2001:db8::1": 0.25})
    service = ServiceEndpoints("scores", "shop", load=BUSY)
    assert loads(monkeypatch, service, None) == {NEAR: 0.5, FAR: 0.25}


def test_the_higher_of_both_loads_counts_and_without_either_none_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PrometheusLoad, "read", lambda load: {NEAR: 0.5, FAR: 0.5})
    refused = Calls(1.0, clock=lambda: 0.0)
    with pytest.raises(ConnectionRefusedError), refused.timed(NEAR):
        raise ConnectionRefusedError
    service = ServiceEndpoints("scores", "shop", load=BUSY)
    assert loads(monkeypatch, service, refused) == {NEAR: 1.0, FAR: 0.5}
    assert loads(monkeypatch, ServiceEndpoints("scores", "shop"), None) == {NEAR: None, FAR: None}


def test_calls_are_timed_only_if_it_is_known_how_long_they_take_at_full_load(monkeypatch: pytest.MonkeyPatch) -> None:
    service = ServiceEndpoints("scores", "shop")
    loads(monkeypatch, service, None)
    with pytest.raises(InvalidField, match="seconds_at_full"), service.timed(NEAR):
        pass
