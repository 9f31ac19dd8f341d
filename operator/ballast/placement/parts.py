"""Parts of a topology that exchange nothing with each other, and so need not be near each other.

Each is placed by itself. Which one comes first matters where several want the same nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, permutations

import numpy as np

from ballast.placement.workload import TopologyWorkload

_MOST_ORDERS = 6


def parts(workload: TopologyWorkload) -> list[list[int]]:
    """The workload's groups by connected part; indices ascend within a part.

    The part with most traffic comes first, or with most CPU where rates are unknown: a later one gets what is left.
    """
    leader = np.arange(len(workload.components))
    for one, other in np.argwhere(np.tril(workload.traffic.between > 0, -1)).tolist():
        kept, gone = sorted((int(leader[one]), int(leader[other])))
        if kept != gone:
            leader[leader == gone] = kept
    by_leader: dict[int, list[int]] = {}
    for index, group in enumerate(workload.groups):
        by_leader.setdefault(int(leader[group.component]), []).append(index)
    return sorted(
        by_leader.values(), key=lambda indices: (-_traffic(workload, indices), -_demand(workload, indices), indices)
    )


def _traffic(workload: TopologyWorkload, indices: list[int]) -> float:
    """What the part exchanges within itself, as far as it is known."""
    if not workload.traffic.known:
        return 0.0
    components = sorted({workload.groups[index].component for index in indices})
    return float(np.triu(workload.traffic.between[np.ix_(components, components)]).sum())


def _demand(workload: TopologyWorkload, indices: list[int]) -> float:
    groups = (workload.groups[index] for index in indices)
    return sum(group.requests.cpu_cores * len(group.executors) for group in groups)


def orders(found: Sequence[list[int]]) -> Iterator[tuple[list[int], ...]]:
    """In which parts may be placed, not too many of them; the given one first."""
    return islice(permutations(found), _MOST_ORDERS)
