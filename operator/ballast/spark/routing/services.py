"""Kubernetes Services: the ready endpoints as targets, for sinks that call out."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ballast.errors import InvalidField
from ballast.grouping.place import Place
from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.kinds import Kind
from ballast.kube.objects import Query, read_list
from ballast.spark.routing.chooser import Reading, Target, chooser_of
from ballast.spark.routing.loads import Calls, PrometheusLoad, highest

_ENDPOINT_SLICE = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
_BACKEND = "endpoint"
"""The process of an endpoint: a sender on its node is another one."""


@dataclass(frozen=True, slots=True)
class ServiceEndpoints:
    """The ready endpoints of the Service `name`, by its EndpointSlices.

    The load of an endpoint is what `load` gives for its IP, with or without its port, or how long the calls in `timed`
    take, if that is more: calls of `seconds_at_full` make it full. Without either no load is known. `port` is the
    port's name, and need not be given if the Service has one port. Call `choose` where the records are, in
    `foreachPartition` or `mapInArrow`. The pod's ServiceAccount needs the right to list EndpointSlices, unless
    `kubeconfig` names a file.
    """

    name: str
    namespace: str
    port: str | None = None
    kubeconfig: str | None = None
    load: PrometheusLoad | None = None
    seconds_at_full: float | None = None

    def __str__(self) -> str:
        return f"Service {self.namespace}/{self.name}"

    def choose(self, records: int) -> list[str]:
        """An address `IP:port` for each record: of the nearest endpoints. Raises RoutingError if none is ready."""
        chosen = chooser_of(self).choose(records)
        addresses = _access_of(self).addresses
        return [addresses[number] for number in chosen]

    @contextmanager
    def timed(self, address: str) -> Iterator[None]:
        """Counts its block as a call of `address`, one of those chosen. A call that raises counts as full load."""
        calls = _access_of(self).calls
        if calls is None:
            raise InvalidField("seconds_at_full", None, "give how long calls take when an endpoint is fully loaded")
        with calls.timed(address):
            yield

    def read(self, at_seconds: float = 0.0) -> Reading:  # noqa: ARG002 -- how busy endpoints are does not add up
        """Raises KubeError if the API server does not answer."""
        access = _access_of(self)
        query = Query(_ENDPOINT_SLICE, self.namespace, labels=f"kubernetes.io/service-name={self.name}")
        places = endpoints(read_list(access.client, query, dict).items, self.port)
        busy = self.load.read() if self.load else {}

        def load_of(address: str) -> float | None:
            own = access.calls.load(address) if access.calls else None
            return highest([busy.get(address), busy.get(_host_of(address)), own])

        found = sorted(places.items())
        return Reading([Target(access.number(address), place, load_of(address)) for address, place in found])


def endpoints(slices: Sequence[Mapping[str, Any]], port: str | None) -> dict[str, Place | None]:
    """The ready endpoints, by address `IP:port`. One that lies in two slices counts once."""
    return {
        _address(endpoint["addresses"][0], number): _place(endpoint)
        for each in slices
        for number in _ports(each, port)
        for endpoint in each.get("endpoints") or ()
        # By the API's definition, an unknown condition counts as ready.
        if (endpoint.get("conditions") or {}).get("ready") is not False
    }


def _ports(each: Mapping[str, Any], name: str | None) -> list[int]:
    ports = each.get("ports") or ()
    numbers = [port["port"] for port in ports if port.get("port") and (name is None or port.get("name") == name)]
    return numbers[:1]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _place(endpoint: Mapping[str, Any]) -> Place | None:
    """None outside of the cluster's nodes, if no zone is known either."""
    node, zone = endpoint.get("nodeName"), endpoint.get("zone")
    return Place(node=node or "", process=_BACKEND, zone=zone) if node or zone else None


@dataclass(slots=True)
class _Access:
    """`addresses` only grows: a number means the same address as long as the process lives."""

    client: Client
    calls: Calls | None
    addresses: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, address: str) -> int:
        if address not in self.numbers:
            self.addresses.append(address)
            self.numbers[address] = len(self.addresses) - 1
        return self.numbers[address]


@functools.cache
def _access_of(service: ServiceEndpoints) -> _Access:
    """The one of this process."""
    kubeconfig = Path(service.kubeconfig) if service.kubeconfig else None
    calls = None if service.seconds_at_full is None else Calls(service.seconds_at_full)
    return _Access(Client(Connection.found(os.environ, kubeconfig=kubeconfig)), calls)
