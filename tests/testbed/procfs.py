"""What /proc says: who runs, since when, where it is mounted, which testbed it belongs to."""

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARKER_VARIABLE = "BALLAST_TESTBED_FOLDER"
# Fields 20 and 22 of /proc/PID/stat, counted from the one behind the command's name.
_THREADS_FIELD_AFTER_NAME = 17
_START_FIELD_AFTER_NAME = 19


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process beyond doubt: its number and its start, in clock ticks since boot."""

    pid: int
    start_ticks: int

    def is_alive(self) -> bool:
        return start_ticks(self.pid) == self.start_ticks and not has_ended(self.pid)

    def send(self, number: signal.Signals) -> None:
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def send_to_group(self, number: signal.Signals) -> None:
        """To the whole process group that it leads."""
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)


def this_process() -> ProcessId:
    return identify(os.getpid())


def identify(pid: int) -> ProcessId:
    return ProcessId(pid, start_ticks(pid) or 0)


def start_ticks(pid: int) -> int | None:
    """None when there is no such process."""
    stat = _stat(pid)
    return int(stat[_START_FIELD_AFTER_NAME]) if stat else None


def has_ended(pid: int) -> bool:
    """Whether it is a zombie with all of its threads: until then one of them may hold its files and ports."""
    stat = _stat(pid)
    return bool(stat) and stat[0] == "Z" and int(stat[_THREADS_FIELD_AFTER_NAME]) <= 1


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()


def belonging_to(folder: Path) -> Iterator[ProcessId]:
    """Every living process but this one that carries the folder's mark or sees a mount from it.

    A pod's process has its own environment, but also mounts of its own, made from the folder.
    """
    mark = f"{MARKER_VARIABLE}={folder}".encode()
    own_mounts = Path("/proc/self/ns/mnt").readlink()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
            if marked or _has_mounts_of(entry, folder, own_mounts):
                yield identify(int(entry.name))


def _has_mounts_of(process: Path, folder: Path, own_mounts: Path) -> bool:
    if (process / "ns" / "mnt").readlink() == own_mounts:
        return False
    return any(f" {folder}/" in line for line in (process / "mountinfo").read_text().splitlines())


def mounts_below(folder: Path) -> list[Path]:
    """Mount points in or below `folder`, the innermost first."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    inside = [Path(point) for point in points if Path(point).is_relative_to(folder)]
    return sorted(inside, key=lambda point: len(point.parts), reverse=True)


def cgroup_roots() -> list[Path]:
    """The mount point of every cgroup hierarchy, v1 and v2."""
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(fields[1]) for fields in lines if fields[2] in {"cgroup", "cgroup2"}]
