"""Executors return to where they were, and a change in their number moves as few as possible.

The idea is Samza's host affinity. Its groupers give each process the floor share and deal out the rest, which moves
executors that could have stayed; here everyone returns for whom there is still a place and room.
"""

from __future__ import annotations

import numpy as np

from ballast.placement.arrays import IntArray
from ballast.placement.openings import Openings
from ballast.placement.outlook import Outlook
from ballast.placement.strategy import Seats


def returning(view: Outlook) -> Seats:
    """As many executors as possible on nodes where theirs ran before and do not run now.

    With fewer executors than places, evenly: the next one returns to where the fewest of its component are.
    Components with the least choice go first.
    """
    openings = Openings(view)
    places = view.crew.vacancies.copy()
    seats: list[list[int]] = [[] for _ in view.groups]
    for row in _least_choice_first(view, openings):
        component = int(view.component[row])
        there = view.crew.present[component].copy()
        for _ in range(int(view.counts[row])):
            able = openings.able(row)
            able = able[places[component, able] > 0]
            if not len(able):
                break
            node = _emptiest(view, able, there, places[component])
            openings.take(row, node)
            seats[row].append(node)
            there[node] += 1
            places[component, node] -= 1
    return seats


def _least_choice_first(view: Outlook, openings: Openings) -> list[int]:
    def choice(row: int) -> tuple[int, int]:
        return int(view.crew.vacancies[view.component[row], openings.able(row)].sum()), row

    return sorted(range(len(view.groups)), key=choice)


def _emptiest(view: Outlook, able: IntArray, there: IntArray, places: IntArray) -> int:
    """Where the fewest of the component are, then where most were, then where it is coolest and most is free."""
    keys = (-view.room[able, 0], -view.preference[able], -places[able], there[able])
    return int(able[np.lexsort(keys)[0]])
