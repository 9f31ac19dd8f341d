"""Which pod has which address."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from ballast.errors import BallastError


class OutOfAddressesError(BallastError):
    """A node's range has no free address."""


class Addresses:
    """Hands out addresses of one node's range; those just returned come last, as caches may hold them."""

    def __init__(self, cidr: str, *, reserved: Iterable[str]) -> None:
        taken = {ipaddress.ip_address(address) for address in reserved}
        self._cidr = cidr
        self._free = [str(host) for host in ipaddress.ip_network(cidr).hosts() if host not in taken]

    def claim(self) -> str:
        if not self._free:
            raise OutOfAddressesError(f"no free pod address is left in {self._cidr}: give the node a larger podCidr")
        return self._free.pop(0)

    def reclaim(self, address: str) -> None:
        """Take an address that a pod from before a restart still has."""
        if address in self._free:
            self._free.remove(address)

    def release(self, address: str) -> None:
        self._free.append(address)


def range_around(address: str) -> str:
    """The /24 around a node's address: where its pods get theirs unless the node says otherwise."""
    return str(ipaddress.ip_network(f"{address}/24", strict=False))
