"""Executors dealt out to processes in turn, as cards are.

Source: `group(tasks, containerIds)` of Samza's `GroupByContainerIds`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ballast.errors import InvalidField

Groups = dict[str, list[str]]
"""Executors by process."""


def dealt(executors: Collection[str], processes: Sequence[str]) -> Groups:
    """In the order of the executors' names and of the processes as given; processes that would stay empty are left
    out, those first by name being kept.

    Raises InvalidField when there is no executor or no process.
    """
    demand_some("executors", executors)
    demand_some("processes", processes)
    processes = first_by_name(processes, len(executors)) if len(processes) > len(executors) else processes
    groups: Groups = {process: [] for process in processes}
    for turn, executor in enumerate(sorted(executors)):
        groups[processes[turn % len(processes)]].append(executor)
    return groups


def first_by_name(processes: Collection[str], count: int) -> list[str]:
    return sorted(processes)[:count]


def demand_some(field: str, names: Collection[str]) -> None:
    if not names:
        raise InvalidField(field, list(names), "name at least one")
