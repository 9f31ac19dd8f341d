"""What the kernel allows the processes of one pod: how many open files, and how large socket buffers.

Read from what `head -n 99 /proc/1/limits /proc/sys/net/core/rmem_max /proc/sys/net/core/wmem_max` prints in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ballast.doctor.catalog import found
from ballast.doctor.finding import Finding
from ballast.errors import InvalidField

COMMAND = "head -n 99 /proc/1/limits /proc/sys/net/core/rmem_max /proc/sys/net/core/wmem_max"
_OPEN_FILES = 65_000
"""What the tuning notes of Storm and Trident ask for."""
_BUFFER_BYTES = 1024 * 1024
"""With a round trip of 1 ms it carries 1 GiB/s, more than a link of 8 Gbit/s."""
_UNLIMITED = 2**63
_FILES = re.compile(r"^Max open files\s+\S+\s+(\d+|unlimited)\s", re.MULTILINE)
_BUFFERS = re.compile(r"^==> .*/(rmem_max|wmem_max) <==\n\s*(\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodLimits:
    """`open_files`: the hard limit, to which a JVM raises its own. Buffers: the largest that a program may ask for."""

    source: str
    open_files: int
    receive_buffer_bytes: int
    send_buffer_bytes: int


def parse(text: str, *, source: str) -> PodLimits:
    """Raises InvalidField for what is not the command's output."""
    files = _FILES.search(text)
    buffers = {name: int(size) for name, size in _BUFFERS.findall(text)}
    if files is None or len(buffers) < 2:
        remedy = f"write the output of `kubectl exec POD -- {COMMAND}` to it"
        raise InvalidField("--limits", source, remedy)
    return PodLimits(
        source=source,
        open_files=_UNLIMITED if files[1] == "unlimited" else int(files[1]),
        receive_buffer_bytes=buffers["rmem_max"],
        send_buffer_bytes=buffers["wmem_max"],
    )


def check(limits: PodLimits) -> list[Finding]:
    return [*_open_files(limits), *_buffers(limits)]


def _open_files(limits: PodLimits) -> Iterator[Finding]:
    if limits.open_files < _OPEN_FILES:
        yield found("OpenFilesLow", limits.source, f"The hard limit is {limits.open_files} open files.")


def _buffers(limits: PodLimits) -> Iterator[Finding]:
    for name, size in (("rmem_max", limits.receive_buffer_bytes), ("wmem_max", limits.send_buffer_bytes)):
        if size < _BUFFER_BYTES:
            what = f"net.core.{name} is {size} B: one connection carries at most {size / 1000:.0f} MB/s at 1 ms."
            yield found("SocketBuffersSmall", limits.source, what)
