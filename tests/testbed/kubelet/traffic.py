"""Counts what a cgroup's sockets receive and send, also where pods share one network namespace.

What stays between 127.0.0.1 and 127.0.0.1 isn't counted: in its own pod it would never leave it.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from tests.testbed.kubelet import bpf
from tests.testbed.kubelet.bpf import instruction
from tests.testbed.kubelet.figures import InterfaceFigures

INTERFACE = "eth0"
VALUE = struct.Struct("=QQ")
SOURCE_AND_DESTINATION_OFFSET = 12
LOOPBACK = bpf.word(socket.inet_aton("127.0.0.1"))
HELPER_MAP_LOOKUP, HELPER_LOAD_BYTES = 1, 26
STACK, CONTEXT = 10, 6


def program(counters: int, index: int) -> bytes:
    """Adds each packet and its length to the counters' entry `index`."""
    add = instruction
    count = (
        # key on the stack, look the entry up
        add(0x62, to=STACK, offset=-12, value=index)
        + add(0x18, to=1, by=1, value=counters)
        + add(0)
        + add(bpf.MOVE_REGISTER, to=2, by=STACK)
        + add(0x07, to=2, value=-12)
        + add(bpf.CALL, value=HELPER_MAP_LOOKUP)
        + add(0x15, to=0, offset=4)
        # bytes, then packets
        + add(bpf.LOAD_WORD, to=1, by=CONTEXT)
        + add(0xDB, to=0, by=1)
        + add(bpf.MOVE_IMMEDIATE, to=1, value=1)
        + add(0xDB, to=0, by=1, offset=8)
    )
    return (
        add(bpf.MOVE_REGISTER, to=CONTEXT, by=1)
        + add(bpf.MOVE_IMMEDIATE, to=2, value=SOURCE_AND_DESTINATION_OFFSET)
        + add(bpf.MOVE_REGISTER, to=3, by=STACK)
        + add(0x07, to=3, value=-8)
        + add(bpf.MOVE_IMMEDIATE, to=4, value=8)
        + add(bpf.CALL, value=HELPER_LOAD_BYTES)
        + add(0x55, to=0, offset=4)
        + add(bpf.LOAD_WORD, to=1, by=STACK, offset=-8)
        + add(bpf.JUMP_UNLESS_EQUAL, to=1, offset=2, value=LOOPBACK)
        + add(bpf.LOAD_WORD, to=1, by=STACK, offset=-4)
        + add(bpf.JUMP_IF_EQUAL, to=1, offset=len(count) // 8, value=LOOPBACK)
        + count
        + bpf.verdict()
    )


class Counters:
    """The traffic of one cgroup (v2) from now on. Raises UnsupportedError where the kernel can't."""

    def __init__(self, cgroup: Path) -> None:
        self._map = bpf.array(entries=2, value_bytes=VALUE.size)
        try:
            hooks = (bpf.INGRESS, bpf.EGRESS)
            bpf.attach(cgroup, [(bpf.TYPE_CGROUP_SKB, hook, program(self._map, hook)) for hook in hooks])
        except OSError:
            self.close()
            raise

    def read(self) -> InterfaceFigures:
        values = [VALUE.unpack(bpf.lookup(self._map, index, VALUE.size)) for index in (bpf.INGRESS, bpf.EGRESS)]
        (received, packets_in), (sent, packets_out) = values
        return InterfaceFigures(
            INTERFACE,
            received_bytes=received,
            received_packets=packets_in,
            sent_bytes=sent,
            sent_packets=packets_out,
        )

    def close(self) -> None:
        os.close(self._map)
