"""Control groups: quotas and true figures of nodes, pods and containers.

One interface over both generations of the kernel's cgroups. A group is named by its path below the roots,
such as `ballast-tb/a/node-1/pod…`; figures of a group include everything below it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PERIOD_MICROSECONDS = 100_000
UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True, slots=True)
class CpuUse:
    """Counters since the group was made."""

    used_seconds: float = 0.0
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    periods: int = 0
    throttled_periods: int = 0
    throttled_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class MemoryUse:
    usage_bytes: int = 0
    working_set_bytes: int = 0
    """Usage without the file pages that could be dropped at once."""
    rss_bytes: int = 0
    cache_bytes: int = 0
    limit_bytes: int = 0
    """0: no limit."""


class Cgroups(Protocol):
    def create(self, name: str) -> None: ...

    def set_quota(self, name: str, cores: float) -> None: ...

    def set_shares(self, name: str, cores: float) -> None: ...

    def set_memory_limit(self, name: str, limit_bytes: int) -> None: ...

    def entry_files(self, name: str) -> list[str]:
        """Files into which a process writes its id to become a member."""
        ...

    def cpu(self, name: str) -> CpuUse: ...

    def memory(self, name: str) -> MemoryUse: ...

    def oom_kills(self, name: str) -> int: ...

    def pressure_seconds(self, name: str, resource: str, kind: str) -> float | None:
        """Stall time (`some` or `full`) of cpu, memory or io; None where the kernel doesn't count it."""
        ...

    def unified(self, name: str) -> Path | None:
        """The group's folder in the unified hierarchy, where there is one."""
        ...

    def members(self, name: str) -> set[int]:
        """Processes in the group and below it."""
        ...

    def remove(self, name: str) -> None:
        """Remove the group and those below it; silent about missing and about busy ones."""
        ...


def read(path: Path) -> str:
    """A kernel file's text, or nothing where the file has gone."""
    try:
        return path.read_text()
    except OSError:
        return ""


def fields(text: str) -> dict[str, int]:
    """Lines of `name value`."""
    rows = (line.split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def number(path: Path) -> int:
    text = read(path).strip()
    return int(text) if text.isdigit() else 0


def pressure(text: str, kind: str) -> float | None:
    for line in text.splitlines():
        if line.startswith(kind):
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def folders(root: Path) -> Iterator[Path]:
    """Folders at and below `root`, deepest first."""
    for path, _, _ in os.walk(root, topdown=False):
        yield Path(path)


def members_below(root: Path) -> set[int]:
    return {int(line) for folder in folders(root) for line in read(folder / "cgroup.procs").split()}


def remove_below(root: Path) -> None:
    for folder in folders(root):
        with contextlib.suppress(OSError):
            folder.rmdir()


@dataclass(frozen=True, slots=True)
class CgroupsV1:
    """Hierarchies of their own for cpu, cpuacct and memory; `unified` adds pressure figures where mounted."""

    cpu_root: Path
    account_root: Path
    memory_root: Path
    unified_root: Path | None

    def _roots(self) -> list[Path]:
        roots = dict.fromkeys((self.cpu_root, self.account_root, self.memory_root))
        return [*roots, self.unified_root] if self.unified_root else list(roots)

    def create(self, name: str) -> None:
        for root in self._roots():
            (root / name).mkdir(parents=True, exist_ok=True)

    def set_quota(self, name: str, cores: float) -> None:
        (self.cpu_root / name / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
        (self.cpu_root / name / "cpu.cfs_quota_us").write_text(str(max(1000, int(cores * PERIOD_MICROSECONDS))))

    def set_shares(self, name: str, cores: float) -> None:
        (self.cpu_root / name / "cpu.shares").write_text(str(max(2, int(cores * 1024))))

    def set_memory_limit(self, name: str, limit_bytes: int) -> None:
        (self.memory_root / name / "memory.limit_in_bytes").write_text(str(limit_bytes))

    def entry_files(self, name: str) -> list[str]:
        return [str(root / name / "cgroup.procs") for root in self._roots()]

    def cpu(self, name: str) -> CpuUse:
        account = self.account_root / name
        stat = fields(read(self.cpu_root / name / "cpu.stat"))
        return CpuUse(
            used_seconds=number(account / "cpuacct.usage") / 1e9,
            user_seconds=number(account / "cpuacct.usage_user") / 1e9,
            system_seconds=number(account / "cpuacct.usage_sys") / 1e9,
            periods=stat.get("nr_periods", 0),
            throttled_periods=stat.get("nr_throttled", 0),
            throttled_seconds=stat.get("throttled_time", 0) / 1e9,
        )

    def memory(self, name: str) -> MemoryUse:
        folder = self.memory_root / name
        stat = fields(read(folder / "memory.stat"))
        usage = number(folder / "memory.usage_in_bytes")
        limit = number(folder / "memory.limit_in_bytes")
        return MemoryUse(
            usage_bytes=usage,
            working_set_bytes=max(0, usage - stat.get("total_inactive_file", 0)),
            rss_bytes=stat.get("total_rss", 0),
            cache_bytes=stat.get("total_cache", 0),
            limit_bytes=limit if limit < UNLIMITED_BYTES else 0,
        )

    def oom_kills(self, name: str) -> int:
        return fields(read(self.memory_root / name / "memory.oom_control")).get("oom_kill", 0)

    def pressure_seconds(self, name: str, resource: str, kind: str) -> float | None:
        if self.unified_root is None:
            return None
        return pressure(read(self.unified_root / name / f"{resource}.pressure"), kind)

    def unified(self, name: str) -> Path | None:
        return self.unified_root / name if self.unified_root else None

    def members(self, name: str) -> set[int]:
        return set().union(*(members_below(root / name) for root in self._roots()))

    def remove(self, name: str) -> None:
        for root in self._roots():
            remove_below(root / name)


@dataclass(frozen=True, slots=True)
class CgroupsV2:
    """The unified hierarchy."""

    root: Path

    def create(self, name: str) -> None:
        folder = self.root
        for part in name.split("/"):
            with contextlib.suppress(OSError):
                (folder / "cgroup.subtree_control").write_text("+cpu +memory")
            folder = folder / part
            folder.mkdir(exist_ok=True)

    def set_quota(self, name: str, cores: float) -> None:
        quota = max(1000, int(cores * PERIOD_MICROSECONDS))
        (self.root / name / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")

    def set_shares(self, name: str, cores: float) -> None:
        # The kubelet's own conversion of shares (2…262144) into weights (1…10000).
        shares = min(262_144, max(2, int(cores * 1024)))
        (self.root / name / "cpu.weight").write_text(str(1 + (shares - 2) * 9999 // 262_142))

    def set_memory_limit(self, name: str, limit_bytes: int) -> None:
        (self.root / name / "memory.max").write_text(str(limit_bytes))

    def entry_files(self, name: str) -> list[str]:
        return [str(self.root / name / "cgroup.procs")]

    def cpu(self, name: str) -> CpuUse:
        stat = fields(read(self.root / name / "cpu.stat"))
        return CpuUse(
            used_seconds=stat.get("usage_usec", 0) / 1e6,
            user_seconds=stat.get("user_usec", 0) / 1e6,
            system_seconds=stat.get("system_usec", 0) / 1e6,
            periods=stat.get("nr_periods", 0),
            throttled_periods=stat.get("nr_throttled", 0),
            throttled_seconds=stat.get("throttled_usec", 0) / 1e6,
        )

    def memory(self, name: str) -> MemoryUse:
        folder = self.root / name
        stat = fields(read(folder / "memory.stat"))
        usage = number(folder / "memory.current")
        return MemoryUse(
            usage_bytes=usage,
            working_set_bytes=max(0, usage - stat.get("inactive_file", 0)),
            rss_bytes=stat.get("anon", 0),
            cache_bytes=stat.get("file", 0),
            limit_bytes=number(folder / "memory.max"),
        )

    def oom_kills(self, name: str) -> int:
        return fields(read(self.root / name / "memory.events")).get("oom_kill", 0)

    def pressure_seconds(self, name: str, resource: str, kind: str) -> float | None:
        return pressure(read(self.root / name / f"{resource}.pressure"), kind)

    def unified(self, name: str) -> Path | None:
        return self.root / name

    def members(self, name: str) -> set[int]:
        return members_below(self.root / name)

    def remove(self, name: str) -> None:
        remove_below(self.root / name)


def detect(mounts: str) -> Cgroups:
    """The machine's cgroups, told from the text of /proc/self/mounts."""
    rows = [line.split() for line in mounts.splitlines()]
    unified = next((Path(row[1]) for row in rows if row[2] == "cgroup2"), None)
    v1 = {option: Path(row[1]) for row in rows if row[2] == "cgroup" for option in row[3].split(",")}
    if {"cpu", "cpuacct", "memory"} <= v1.keys():
        return CgroupsV1(v1["cpu"], v1["cpuacct"], v1["memory"], unified)
    if unified is None:
        raise RuntimeError("no cgroups are mounted: mount cgroup2 on /sys/fs/cgroup")
    return CgroupsV2(unified)


async def empty(cgroups: Cgroups, name: str) -> None:
    """SIGKILL whatever lives at and below a group until nothing does, then remove it."""
    while not kill(cgroups, name):  # noqa: ASYNC110 -- the kernel doesn't tell when a v1 group is empty
        await asyncio.sleep(0.01)
    cgroups.remove(name)


def kill(cgroups: Cgroups, name: str) -> bool:
    """SIGKILL whatever lives at and below a group. True when nothing was left."""
    members = cgroups.members(name) - {os.getpid()}
    for pid in members:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not members
