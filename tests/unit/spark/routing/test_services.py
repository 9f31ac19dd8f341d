from __future__ import annotations

from typing import Any

from ballast.grouping.shuffle import Place
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
