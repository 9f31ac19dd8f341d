"""One testbed's place on the machine: a number, and the folder, addresses and names that follow from it."""

import contextlib
import fcntl
import itertools
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import TestbedError
from tests.testbed.manifest import Manifest
from tests.testbed.procfs import this_process

INSTANCES = range(1, 100)
FIRST_SUBNET = 100
CGROUP_PARENT = "ballast-tb"


@dataclass(frozen=True, slots=True)
class Instance:
    """Everything that two testbeds side by side must not share is derived from `number`."""

    number: int
    folder: Path

    @property
    def id(self) -> str:
        return str(self.number)

    @property
    def manifest(self) -> Manifest:
        return Manifest(self.folder / "manifest.jsonl")

    @property
    def cgroup_prefix(self) -> str:
        return f"{CGROUP_PARENT}/{self.id}"

    @property
    def link_prefix(self) -> str:
        """For network namespaces and links, whose names the kernel limits to 15 characters."""
        return f"btb{self.id}-"

    @property
    def control_address(self) -> str:
        return f"127.{FIRST_SUBNET + self.number}.0.1"

    def node_address(self, index: int) -> str:
        return f"127.{FIRST_SUBNET + self.number}.{index + 1}.1"

    def pod_network(self, index: int) -> str:
        """The addresses of a node's pods, in CIDR notation; the first is the node's own."""
        return f"127.{FIRST_SUBNET + self.number}.{index + 1}.0/24"


def default_root() -> Path:
    """The folder of all testbeds on this machine; not below /tmp for root, where pods mount their own."""
    if os.geteuid() == 0:
        return Path("/var/lib/ballast-testbed")
    return Path(tempfile.gettempdir()) / f"ballast-testbed-{os.geteuid()}"


def reserve(root: Path) -> Instance:
    """Take the lowest free number; it is ours until `release`."""
    with root_locked(root):
        for number in INSTANCES:
            instance = Instance(number, root / str(number))
            if not instance.folder.exists() and _is_unused(instance.control_address):
                instance.folder.mkdir(mode=0o755)
                instance.manifest.record_owner(this_process())
                return instance
    raise TestbedError(f"all {len(INSTANCES)} testbeds of {root} are taken: stop some with `down --all`")


def release(instance: Instance) -> None:
    """Give the number back and remove the folder; whatever ran in it must have ended."""
    with root_locked(instance.folder.parent):
        shutil.rmtree(instance.folder, ignore_errors=True)
        if instance.folder.exists():
            shutil.rmtree(instance.folder)


def existing(root: Path) -> list[Instance]:
    """Every testbed that has a folder, the lowest number first."""
    if not root.exists():
        return []
    numbers = sorted(int(entry.name) for entry in root.iterdir() if entry.name.isdecimal())
    return [Instance(number, root / str(number)) for number in numbers]


@contextmanager
def root_locked(root: Path) -> Iterator[None]:
    """Hold the root folder itself, and remove it at the end when nothing is left in it."""
    handle = _open_and_lock(root)
    try:
        yield
        with contextlib.suppress(OSError):
            root.rmdir()
    finally:
        os.close(handle)


def _open_and_lock(root: Path) -> int:
    """A handle of the folder that holds its lock; another may remove the folder while we wait for it."""
    while True:
        with contextlib.suppress(FileExistsError):
            root.mkdir(mode=0o755, parents=True)
        try:
            handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if root.stat().st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)


def _is_unused(address: str) -> bool:
    """Whether nobody serves there: a testbed of another user would."""
    with socket.socket() as probe:
        return probe.connect_ex((address, 6443)) != 0


_OUTGOING_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST_PORT = 15_000
_PORTS_APART = 997
_CALLS = itertools.count()


def free_port(address: str, *, preferred: int = 0) -> int:
    """`preferred` when it is free at `address`, else any free port that no outgoing connection is given."""
    for port in (*([preferred] if preferred else ()), *_ports()):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((address, port))
                return int(probe.getsockname()[1])
    raise TestbedError(f"no port is free at {address}")


def _ports() -> Iterator[int]:
    """Below those of outgoing connections: one of these may get the port before a server that was told of it has it.

    Each process begins elsewhere, and no call soon returns what another one did.
    """
    first_outgoing = int(_OUTGOING_PORTS.read_text().split()[0])
    count = first_outgoing - _FIRST_PORT
    begin = os.getpid() * _PORTS_APART + next(_CALLS)
    yield from (_FIRST_PORT + (begin + number) % count for number in range(count))
    yield 0  # any, where outgoing connections are given low ones
