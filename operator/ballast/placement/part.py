"""Parts of a topology that exchange nothing with each other need not be near each other."""

from __future__ import annotations

from ballast.placement.crew import Crew


def parts(crew: Crew) -> list[list[int]]:
    """The crew's groups by connected part, the part that asks for most CPU first; indices ascend within a part."""
    leader = list(range(len(crew.components)))
    for one in range(len(leader)):
        for other in range(one):
            if crew.traffic.between[one, other] > 0:
                _join(leader, one, other)
    by_leader: dict[int, list[int]] = {}
    for index, group in enumerate(crew.groups):
        by_leader.setdefault(leader[group.component], []).append(index)
    return sorted(by_leader.values(), key=lambda indices: (-_demand(crew, indices), indices))


def _join(leader: list[int], one: int, other: int) -> None:
    kept, gone = sorted((leader[one], leader[other]))
    for position, current in enumerate(leader):
        if current == gone:
            leader[position] = kept


def _demand(crew: Crew, indices: list[int]) -> float:
    groups = (crew.groups[index] for index in indices)
    return sum(group.requests.cpu_cores * len(group.executors) for group in groups)
