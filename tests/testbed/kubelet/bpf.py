"""Small eBPF programs on cgroups: just enough of an assembler and of the bpf call for a few instructions."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SYSCALL = {"x86_64": 321, "aarch64": 280}
MAP_CREATE, MAP_LOOKUP, PROG_LOAD, PROG_ATTACH = 0, 1, 5, 8
MAP_TYPE_ARRAY = 2
TYPE_CGROUP_SKB, TYPE_CGROUP_SOCK_ADDR = 8, 18
INGRESS, EGRESS, INET4_BIND, INET6_BIND, INET4_CONNECT, INET6_CONNECT = 0, 1, 8, 9, 10, 11
ALLOW_MULTI = 2
ATTRIBUTE_BYTES = 128

# Operation codes of the instructions used.
LOAD_WORD, STORE_WORD, MOVE_WORD, MOVE_IMMEDIATE, MOVE_REGISTER = 0x61, 0x63, 0xB4, 0xB7, 0xBF
JUMP_IF_EQUAL, JUMP_UNLESS_EQUAL, CALL, EXIT = 0x16, 0x56, 0x85, 0x95


class UnsupportedError(OSError):
    """This kernel can't do it, or doesn't let us."""


def instruction(code: int, *, to: int = 0, by: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("=BBhi", code, by << 4 | to, offset, value)


def word(octets: bytes) -> int:
    """Four bytes as the kernel's registers hold them."""
    return int.from_bytes(octets, sys.byteorder, signed=True)


def verdict(allowed: int = 1) -> bytes:
    return instruction(MOVE_IMMEDIATE, value=allowed) + instruction(EXIT)


def rewrite(*, equal: Mapping[int, bytes], unequal: Mapping[int, bytes], stores: Mapping[int, bytes]) -> bytes:
    """A program on a socket address: always allows; where all words (un)equal those given, `stores` are written."""
    body = b"".join(
        instruction(MOVE_WORD, to=2, value=word(octets)) + instruction(STORE_WORD, to=1, by=2, offset=offset)
        for offset, octets in stores.items()
    )
    for code, words in ((JUMP_IF_EQUAL, unequal), (JUMP_UNLESS_EQUAL, equal)):
        for offset, octets in words.items():
            past = instruction(code, to=2, offset=len(body) // 8, value=word(octets))
            body = instruction(LOAD_WORD, to=2, by=1, offset=offset) + past + body
    return body + verdict()


def call(command: int, attributes: bytes) -> int:
    """The bpf system call. Raises UnsupportedError."""
    buffer = ctypes.create_string_buffer(attributes, ATTRIBUTE_BYTES)
    number = SYSCALL.get(platform.machine())
    if number is None:
        raise UnsupportedError(f"the number of the bpf call on {platform.machine()} is not known here")
    result = int(ctypes.CDLL(None, use_errno=True).syscall(number, command, buffer, ATTRIBUTE_BYTES))
    if result < 0:
        error = ctypes.get_errno()
        raise UnsupportedError(error, f"bpf: {os.strerror(error)}")
    return result


def load(code: bytes, *, kind: int, hook: int) -> int:
    """A descriptor of the program, which the kernel has checked."""
    instructions = ctypes.create_string_buffer(code, len(code))
    license_text = ctypes.create_string_buffer(b"Apache-2.0")
    attributes = struct.pack(
        "=IIQQIIQII16sII",
        kind,
        len(code) // 8,
        ctypes.addressof(instructions),
        ctypes.addressof(license_text),
        *(0, 0, 0, 0, 0, b"testbed", 0, hook),
    )
    return call(PROG_LOAD, attributes)


def attach(cgroup: Path, programs: Sequence[tuple[int, int, bytes]]) -> None:
    """Attach programs (kind, hook, code) to a cgroup (v2); they go with it. Raises UnsupportedError."""
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for kind, hook, code in programs:
            loaded = load(code, kind=kind, hook=hook)
            try:
                call(PROG_ATTACH, struct.pack("=IIII", folder, loaded, hook, ALLOW_MULTI))
            finally:
                os.close(loaded)
    finally:
        os.close(folder)


def array(*, entries: int, value_bytes: int) -> int:
    """A descriptor of a new map from 0…entries-1 to values."""
    return call(MAP_CREATE, struct.pack("=IIIII", MAP_TYPE_ARRAY, 4, value_bytes, entries, 0))


def lookup(descriptor: int, index: int, value_bytes: int) -> bytes:
    key = ctypes.create_string_buffer(struct.pack("=I", index), 4)
    value = ctypes.create_string_buffer(value_bytes)
    addresses = (ctypes.addressof(key), ctypes.addressof(value))
    call(MAP_LOOKUP, struct.pack("=IIQQQ", descriptor, 0, *addresses, 0))
    return value.raw
