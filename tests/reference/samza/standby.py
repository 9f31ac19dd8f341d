"""Standby processes: copies of each active one that must not share a place with it, nor with each other.

Source: Samza's `TaskNameGrouperProxy` and `StandbyTaskUtil`. Samza finds out from names what is a copy of what, which
goes wrong for names with hyphens; here it is written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.reference.samza.dealing import Groups


@dataclass(frozen=True, slots=True)
class Replica:
    """An executor or a standby of it."""

    name: str
    copy_of: str
    """The active executor; its own name, if it is that one."""
    active: bool


@dataclass(frozen=True, slots=True)
class Process:
    name: str
    active_process: str
    """Whom it stands by for; its own name, if it is active."""
    executors: tuple[Replica, ...]


def with_standbys(groups: Groups, replicas: int) -> dict[str, Process]:
    """Each active process and its copies, so that there are `replicas` of each executor in all (1: no copies)."""
    active = [Process(name, name, tuple(Replica(e, e, active=True) for e in inside)) for name, inside in groups.items()]
    copies = [_copy(process, number) for process in active for number in range(replicas - 1)]
    return {process.name: process for process in (*active, *copies)}


def must_be_apart(processes: Mapping[str, Process], *, by_names: bool = False) -> dict[str, list[str]]:
    """For each process the others, by name, that hold the same executor or a copy of it.

    `by_names` reads from an executor's name what it is a copy of, as Samza does.
    """
    holders: dict[str, set[str]] = {}
    for process in processes.values():
        for replica in process.executors:
            holders.setdefault(_original(replica, by_names=by_names), set()).add(process.name)
    apart: dict[str, set[str]] = {name: set() for name in processes}
    for names in holders.values():
        for name in names:
            apart[name] |= names - {name}
    return {name: sorted(others) for name, others in apart.items()}


def kind(process: Process, *, by_names: bool = False) -> tuple[bool, str]:
    """Whether it is a standby, and of which process; `by_names` reads it from the name, as Samza does."""
    if by_names:
        return "-" in process.name, process.name.split("-")[0]
    return process.name != process.active_process, process.active_process


def _copy(process: Process, number: int) -> Process:
    inside: Sequence[Replica] = process.executors
    standbys = tuple(Replica(f"Standby-{each.name}-{number}", each.name, active=False) for each in inside)
    return Process(f"{process.name}-{number}", process.name, standbys)


def _original(replica: Replica, *, by_names: bool) -> str:
    return replica.name.split("-")[1] if by_names and not replica.active else replica.copy_of
