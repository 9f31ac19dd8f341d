"""A changed number of processes: those with too many give some up, those with too few take them.

Source: Samza's `GroupByContainerCount`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ballast.errors import InvalidField
from tests.reference.samza.dealing import Groups, dealt, demand_some


def by_previous_count(
    executors: Collection[str],
    count: int,
    previous: Mapping[str, str],
    *,
    refuse_renamed: bool = False,
) -> Groups:
    """Groups "0" to `count` − 1; `previous` is the process of each executor so far.

    Everything is dealt afresh when there is nothing usable before: no assignment, another number of executors,
    processes that aren't numbered from 0, a single one before or now, or executors with other names. The last one can
    be refused instead. Raises InvalidField for that, for no executors, and for a count below 1 or above theirs.
    """
    demand_some("executors", executors)
    if not 1 <= count <= len(executors):
        raise InvalidField("count", count, f"choose one from 1 to {len(executors)}, the number of executors")
    groups = _numbered(previous) if len(previous) == len(executors) else []
    if count == 1 or len(groups) <= 1:
        return dealt(executors, _names(count))
    if set(previous) != set(executors):
        if refuse_renamed:
            raise InvalidField("previous", sorted(previous), "name the same executors as before, or start afresh")
        return dealt(executors, _names(count))
    if count != len(groups):
        groups = _resized(groups, count, len(executors))
    return dict(zip(_names(count), groups, strict=True))


def _names(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def _numbered(previous: Mapping[str, str]) -> list[list[str]]:
    """The groups in the order of their numbers, names sorted; none if the numbers have gaps."""
    names = _names(len(set(previous.values())))
    if set(previous.values()) != set(names):
        return []
    return [sorted(executor for executor, process in previous.items() if process == name) for name in names]


def _resized(groups: list[list[str]], count: int, executors: int) -> list[list[str]]:
    """What is beyond a group's share leaves from its end, and fills the gaps in the order of leaving."""
    share, more = divmod(executors, count)
    shares = [share + (number < more) for number in range(count)] + [0] * (len(groups) - count)
    kept = [group[:most] for group, most in zip(groups, shares, strict=False)]
    leaving = [name for group, most in zip(groups, shares, strict=False) for name in reversed(group[most:])]
    kept = (kept + [[] for _ in range(count - len(kept))])[:count]
    for group, most in zip(kept, shares, strict=False):
        missing = most - len(group)
        group.extend(leaving[:missing])
        leaving = leaving[missing:]
    return kept
