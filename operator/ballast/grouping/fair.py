"""How senders of several zones share targets: as much as can be stays in its zone while targets fill evenly.

It is the optimum of a transport problem. Each zone keeps the lesser of what its senders send and what its targets are
meant to get; what is left over goes where targets still have room, in proportion to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Shares = npt.NDArray[np.float64]
"""One share per target, in the order of the targets. What a sender gives adds up to 1."""

NO_ZONE = ""
"""The key of senders whose zone is not known."""


def leveled(weights: Shares, can: Shares) -> Shares:
    """Everything, spread by `weights`, except that no target gets more than it `can` take.

    Targets that together can't take all get more in proportion: what is sent must go somewhere.
    """
    if can.sum() <= 1.0:
        return _of_one(can if can.sum() > 0.0 else weights)
    full = np.zeros(weights.size, dtype=bool)
    while True:
        open_weights = np.where(full, 0.0, weights)
        if not open_weights.sum() > 0.0:
            return _of_one(can)
        spread = np.where(full, can, open_weights * (1.0 - can[full].sum()) / open_weights.sum())
        over = ~full & (spread > can)
        if not over.any():
            return spread
        full |= over


def fair(own: str, senders: Mapping[str, float], zones: Sequence[str | None], room: Shares) -> Shares:
    """The shares of a sender in the zone `own`; even ones if `senders` don't hold it.

    `senders` says how much those of each zone send, in any unit. `zones` are those of the targets. `room` is what each
    target may get; if it adds up to more than 1, some of it stays empty.
    """
    if not senders.get(own):
        return _of_one(room)
    total = sum(senders.values())
    of_zone: dict[str, float] = defaultdict(float)
    for zone, each in zip(zones, room.tolist(), strict=True):
        if zone is not None:
            of_zone[zone] += each
    kept = {zone: min(senders.get(zone, 0.0) / total, each) / each if each else 0.0 for zone, each in of_zone.items()}
    filled = room * np.array([0.0 if zone is None else kept.get(zone, 0.0) for zone in zones])
    mine = filled * np.array([zone == own for zone in zones]) * total / senders[own]
    left = room - filled
    away = max(1.0 - mine.sum(), 0.0)
    return _of_one(mine + (away * left / left.sum() if left.sum() > 0.0 else 0.0))


def arriving(senders: Mapping[str, float], zones: Sequence[str | None], room: Shares) -> Shares:
    """What targets get of all that is sent if every sender keeps to `fair`."""
    sent = [each * fair(own, senders, zones, room) for own, each in senders.items()]
    return _of_one(np.sum(sent, axis=0)) if sent else _of_one(room)


def _of_one(shares: Shares) -> Shares:
    whole = shares.sum()
    found: Shares = shares / whole if whole > 0.0 else np.full(shares.size, 1.0 / shares.size)
    return found
