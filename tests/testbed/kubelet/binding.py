"""Gives pods, which share one network namespace, what they would find in one of their own.

A program that listens on every address would take the port from all other pods; so 0.0.0.0 and :: become the
pod's address whenever a socket is bound to a port. Sockets bound to port 0 are left alone: they can't collide,
and may be meant for sending. And connections to the cluster address of the API server go to where it really is.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from tests.testbed.kubelet import bpf

# Fields of struct bpf_sock_addr.
IP4, PORT = 4, 24
IP6 = (8, 12, 16, 20)
NOTHING, MAPPED = bytes(4), b"\0\0\xff\xff"


def _port(number: int) -> bytes:
    """As the field has it: 16 bits in network order, in the first half of a word."""
    return struct.pack("!H", number) + bytes(2)


def _mapped(address: bytes) -> dict[int, bytes]:
    """The words of an IPv4 address as an IPv6 socket has it."""
    return dict(zip(IP6, (NOTHING, NOTHING, MAPPED, address), strict=True))


def confine(cgroup: Path, address: str) -> None:
    """Make the address that of all listening sockets in a cgroup (v2). Raises UnsupportedError."""
    own = socket.inet_aton(address)
    to_a_port = {PORT: NOTHING}
    four = bpf.rewrite(equal={IP4: NOTHING}, unequal=to_a_port, stores={IP4: own})
    six = bpf.rewrite(equal=dict.fromkeys(IP6, NOTHING), unequal=to_a_port, stores={IP6[2]: MAPPED, IP6[3]: own})
    kind = bpf.TYPE_CGROUP_SOCK_ADDR
    bpf.attach(cgroup, [(kind, bpf.INET4_BIND, four), (kind, bpf.INET6_BIND, six)])


def redirect(cgroup: Path, *, service: tuple[str, int], server: tuple[str, int]) -> None:
    """Lead connections from a cgroup (v2) to `service` on to `server`. Raises UnsupportedError."""
    asked, real = socket.inet_aton(service[0]), socket.inet_aton(server[0])
    port = {PORT: _port(service[1])}
    four = bpf.rewrite(equal={IP4: asked, **port}, unequal={}, stores={IP4: real, PORT: _port(server[1])})
    six = bpf.rewrite(equal={**_mapped(asked), **port}, unequal={}, stores={IP6[3]: real, PORT: _port(server[1])})
    kind = bpf.TYPE_CGROUP_SOCK_ADDR
    bpf.attach(cgroup, [(kind, bpf.INET4_CONNECT, four), (kind, bpf.INET6_CONNECT, six)])
