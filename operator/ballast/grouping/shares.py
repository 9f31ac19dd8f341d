"""Which share of its messages a sender gives each target: near ones first, and as much farther as they fall behind.

Waiting messages add up, and what is known of them is old. A rule that acts on such a measurement as if it were fresh
herds: it sends everything to the target that looked idle a while ago. So the shares move like a controller with a dead
time (SIMC tuning, Skogestad 2003): a proportional step whose gain falls with the age of the measurement, and a slow
integral that learns unequal speeds. The sum of steps is projected onto the shares that add up to one, which is what
keeps a target that gets nothing from owing anything.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ballast.errors import InvalidField
from ballast.grouping.place import Place, Reach, reach

Shares = npt.NDArray[np.float64]
"""One share per target, in the order of the targets; they add up to 1."""

UNKNOWN_LOAD = 1.0
"""A target of which nothing is known counts as full once another one's load is known."""

TOLL = 0.05
"""How much more loaded than the least loaded target the nearest ones may be while messages still return to them."""
RETURN_SECONDS = 30.0
SPREAD = 0.01
"""How much less loaded a target must be to keep twice the share of those in its scope."""
SHORTEST_AGE_SECONDS = 2.0
LONGEST_STEP_SECONDS = 60.0
MEAN_SECONDS = 30.0
"""Limits are relative to what was sent in this time."""
_INTEGRAL_PER_DEAD_TIME = 8.0


@dataclass(frozen=True, slots=True)
class Measured:
    """Loads by target, 0 (idle) to 1 (full), and how far they can be trusted.

    `age_seconds`: how old they may be. `fill_seconds`: how long a target that serves nothing takes from idle to full at
    its usual share; infinite for a load that does not add up, such as how busy a broker is.
    """

    loads: Mapping[int, float]
    age_seconds: float = 0.0
    fill_seconds: float = math.inf
    limits: Mapping[int, float] = field(default_factory=dict)
    """How much a target can take, as a share of what it got in the last `MEAN_SECONDS`, where that is known."""

    def of(self, target: int) -> float:
        load = self.loads.get(target, UNKNOWN_LOAD)
        return min(max(load, 0.0), 1.0) if math.isfinite(load) else UNKNOWN_LOAD

    @property
    def dead_time_seconds(self) -> float:
        return max(self.age_seconds, SHORTEST_AGE_SECONDS)

    @property
    def adds_up(self) -> bool:
        return math.isfinite(self.fill_seconds)

    @property
    def gain(self) -> float:
        """How much of its share a target loses by one unit of load: what can't overshoot within the dead time."""
        return min(1.0, self.fill_seconds / (2.0 * self.dead_time_seconds))


def nearest(around: Reach) -> Shares:
    """Equal shares of the targets in the nearest scope that has any. Raises InvalidField if there is no target."""
    if not around.rungs.size:
        raise InvalidField("targets", [], "give at least one: what takes the messages")
    mine = around.rungs == around.rungs.min()
    shares: Shares = mine / mine.sum()
    return shares


def stepped(shares: Shares, around: Reach, before: Shares, loads: Shares, now: Measured, *, seconds: float) -> Shares:
    """What is wanted after a measurement: `loads` are those of now, `before` those of `seconds` ago."""
    rungs = around.rungs - around.rungs.min()
    crowding = SPREAD * shares * (rungs[:, None] == rungs[None, :]).sum(axis=1)
    elapsed = min(seconds, LONGEST_STEP_SECONDS)
    learned = (loads + crowding) * elapsed / (_INTEGRAL_PER_DEAD_TIME * now.dead_time_seconds)
    near_keep_up = loads[rungs == 0].mean() <= loads.min() + TOLL
    returned = rungs * elapsed / RETURN_SECONDS if near_keep_up else np.zeros_like(loads)
    # Messages that wait add up as fast as an even share of them comes in, however large one's own share is.
    even = np.full(shares.size, 1.0 / shares.size)
    each = even if now.adds_up else np.maximum(shares, even)
    wanted: Shares = shares - now.gain * each * (loads - before + learned + returned)
    return wanted


def projected(wanted: Shares, highest: Shares) -> Shares:
    """The shares nearest to `wanted`: all lowered or raised alike, none below zero or above its highest.

    Highest shares that do not add up to 1 are raised in proportion: what is sent must go somewhere.
    """
    if highest.sum() <= 1.0:
        even: Shares = np.full(wanted.size, 1.0 / wanted.size)
        return highest / highest.sum() if highest.sum() > 0.0 else even
    low, high = wanted.min() - 1.0, wanted.max()
    for _ in range(60):
        level = (low + high) / 2.0
        low, high = (level, high) if np.clip(wanted - level, 0.0, highest).sum() > 1.0 else (low, level)
    found = np.clip(wanted - high, 0.0, highest)
    shares: Shares = found / found.sum()
    return shares


LEAST_SLOTS = 1000
_SLOTS_PER_TARGET = 16


def turns(slots: npt.NDArray[np.int64], random: np.random.Generator) -> npt.NDArray[np.int32]:
    """Positions of targets in the order in which they are chosen: each as often as `slots` says, evenly spaced."""
    target = np.repeat(np.arange(slots.size, dtype=np.int32), slots)
    first = np.cumsum(slots) - slots
    number = np.arange(target.size) - first[target]
    order = np.argsort((number + random.random(slots.size)[target]) / slots[target], kind="stable")
    ring = target[order]
    ring.flags.writeable = False
    return ring


class Sender:
    """Chooses among `targets` (their ids, as in `Measured`) for messages from `source`. For one thread."""

    def __init__(
        self, source: Place, targets: Sequence[int], places: Sequence[Place | None], *, random: np.random.Generator
    ) -> None:
        """Raises InvalidField if there is no target."""
        self._source, self._targets, self._random = source, tuple(targets), random
        self._around = reach(source, places)
        self._loads: Shares | None = None
        self._sent: deque[tuple[float, Shares]] = deque()
        self._next = 0
        self._take(nearest(self._around))

    def measured(self, now: Measured | None, *, seconds: float) -> None:
        """Takes loads into account, `seconds` after the ones before; None when no load is known."""
        if now is None:
            self._loads = None
            self._take(nearest(self._around))
            return
        loads = np.array([now.of(target) for target in self._targets])
        before = np.zeros_like(loads) if self._loads is None else self._loads
        self._loads = loads
        wanted = stepped(self.shares, self._around, before, loads, now, seconds=seconds)
        self._sent.append((seconds, self.shares))
        self._take(projected(wanted, self._highest(now)))

    def _highest(self, now: Measured) -> Shares:
        """What targets can take of what is sent; 1 where that is not known or more than they got."""
        while len(self._sent) > 1 and sum(seconds for seconds, _ in self._sent) > MEAN_SECONDS:
            self._sent.popleft()
        seconds = np.array([each for each, _ in self._sent])
        shares = np.array([each for _, each in self._sent])
        mean = np.average(shares, axis=0, weights=seconds) if seconds.sum() > 0.0 else self.shares
        limits = np.array([now.limits.get(target, 1.0) for target in self._targets])
        return np.where(limits < 1.0, limits * mean, 1.0)

    def targets_are(self, targets: Sequence[int], places: Sequence[Place | None]) -> None:
        """Targets or places that changed. Those that remain keep their shares, a new one gets what its scope has.

        Raises InvalidField if there is no target, and then keeps the former ones.
        """
        around = reach(self._source, places)
        fresh = nearest(around)
        shares = dict(zip(self._targets, self.shares.tolist(), strict=True))
        kept = np.array([shares.get(target, math.nan) for target in targets])
        known = ~np.isnan(kept)
        for rung in np.unique(around.rungs):
            here = around.rungs == rung
            kept[here & ~known] = kept[here & known].mean() if (here & known).any() else 0.0
        if self._loads is not None:
            loads = dict(zip(self._targets, self._loads.tolist(), strict=True))
            self._loads = np.array([loads.get(target, 0.0) for target in targets])
        self._targets, self._around = tuple(targets), around
        self._sent.clear()
        self._take(kept / kept.sum() if kept.sum() > 0.0 else fresh)

    def choose(self, n: int) -> npt.NDArray[np.int32]:
        """Positions of the next `n` targets."""
        rounds = -(-(self._next + n) // self._ring.size)
        chosen = np.tile(self._ring, rounds)[self._next : self._next + n]
        self._next = (self._next + n) % self._ring.size
        return chosen

    def _take(self, shares: Shares) -> None:
        self.shares = shares
        wanted = shares * max(LEAST_SLOTS, _SLOTS_PER_TARGET * shares.size)
        # Which way a part of a slot is rounded is drawn, so that over refreshes each target gets its exact share.
        edges = np.floor(np.cumsum(wanted) + self._random.random())
        self._ring = turns(np.diff(edges, prepend=0.0).clip(0).astype(np.int64), self._random)
        self._next = 0
