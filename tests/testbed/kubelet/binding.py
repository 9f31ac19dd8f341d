"""Gives a pod's listening sockets the pod's own address.

Pods share one network namespace. A program that listens on every address would take the port from all others;
so an eBPF program on the pod's cgroup turns 0.0.0.0 and :: into the pod's address whenever a socket is bound
to a port. Sockets bound to port 0 are left alone: they can't collide, and may be meant for sending.
"""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import socket
import struct
import sys
from pathlib import Path

log = logging.getLogger(__name__)

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_ATTACH = 5, 8
BPF_PROG_TYPE_CGROUP_SOCK_ADDR = 18
BPF_F_ALLOW_MULTI = 2
INET4_BIND, INET6_BIND = 8, 9
# Fields of struct bpf_sock_addr.
USER_IP4, USER_IP6, USER_PORT = 4, 8, 24
ATTRIBUTE_BYTES = 128


def _instruction(code: int, *, to: int = 0, by: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, by << 4 | to, offset, value)


def _word(address: bytes) -> int:
    return int.from_bytes(address, sys.byteorder, signed=True)


def program(*, zero: list[int], nonzero: list[int], stores: dict[int, bytes]) -> bytes:
    """Allows every bind; where the words at `zero` are 0 and those at `nonzero` are not, `stores` are written."""
    body = b"".join(
        _instruction(0xB4, to=2, value=_word(word)) + _instruction(0x63, to=1, by=2, offset=offset)
        for offset, word in stores.items()
    )
    for code, offsets in ((0x15, nonzero), (0x55, zero)):  # jump over the rest if (not) equal to 0
        for offset in offsets:
            length = len(body) // 8
            body = _instruction(0x61, to=2, by=1, offset=offset) + _instruction(code, to=2, offset=length) + body
    return body + _instruction(0xB7, value=1) + _instruction(0x95)


def programs(address: str) -> dict[int, bytes]:
    """The programs for both families, by the hook that they belong to."""
    own = socket.inet_aton(address)
    six = [USER_IP6 + 4 * index for index in range(4)]
    return {
        INET4_BIND: program(zero=[USER_IP4], nonzero=[USER_PORT], stores={USER_IP4: own}),
        INET6_BIND: program(zero=six, nonzero=[USER_PORT], stores={six[2]: b"\0\0\xff\xff", six[3]: own}),
    }


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes, ATTRIBUTE_BYTES)
    number = BPF_SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of the bpf call on {platform.machine()} is not known here")
    result = int(ctypes.CDLL(None, use_errno=True).syscall(number, command, buffer, ATTRIBUTE_BYTES))
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"bpf: {os.strerror(error)}")
    return result


def _load(code: bytes, hook: int) -> int:
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    attributes = struct.pack(
        "=IIQQIIQII16sII",
        BPF_PROG_TYPE_CGROUP_SOCK_ADDR,
        len(code) // 8,
        ctypes.addressof(instructions),
        ctypes.addressof(licence),
        *(0, 0, 0, 0, 0, b"pod_address", 0, hook),
    )
    return _bpf(BPF_PROG_LOAD, attributes)


def confine(cgroup: Path, address: str) -> bool:
    """Make the address that of all listening sockets in a cgroup (v2). False where the kernel can't."""
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for hook, code in programs(address).items():
            loaded = _load(code, hook)
            try:
                _bpf(BPF_PROG_ATTACH, struct.pack("=IIII", folder, loaded, hook, BPF_F_ALLOW_MULTI))
            finally:
                os.close(loaded)
    except OSError as error:
        log.warning("pods that listen on all addresses share their ports: %s", error)
        return False
    finally:
        os.close(folder)
    return True
