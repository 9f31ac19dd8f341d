"""Executors go back to a process on the node they were on, as long as it has fewer than its floor share.

Source: `group(tasks, metadata)` of Samza's `GroupByContainerIds`. The floor share moves more than it has to; see
`ballast.placement.stickiness` for ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import cycle

from tests.reference.samza.dealing import Groups, demand_some, first_by_name


def by_locality(
    executors: Sequence[str],
    processes: Mapping[str, str],
    was_on: Mapping[str, str],
    *,
    visiting: Collection[str] | None = None,
) -> Groups:
    """`processes` says on which node each is, `was_on` on which node an executor was (absent: not known).

    The order of the executors counts. With more processes than executors, only the first by name are used; `visiting`
    is the order in which those of one node are tried, by name if None. Raises InvalidField as `dealt` does.
    """
    demand_some("executors", executors)
    demand_some("processes", processes)
    used = first_by_name(processes, len(executors))
    share = len(executors) // len(used)
    groups: Groups = {process: [] for process in used}
    left_over = []
    for executor in executors:
        there = (each for each in visiting or used if processes[each] == was_on.get(executor))
        home = next((process for process in there if len(groups[process]) < share), None)
        if home is None:
            left_over.append(executor)
        else:
            groups[home].append(executor)
    _spread(left_over, groups, share)
    return groups


def _spread(executors: Sequence[str], groups: Groups, share: int) -> None:
    """Fills each group up to its share, then goes round."""
    round_the_groups = cycle(groups)
    for executor in executors:
        short = next((process for process in groups if len(groups[process]) < share), None)
        groups[next(round_the_groups) if short is None else short].append(executor)
