"""Which share of its messages a sender gives each target: near ones first, and no target more than it can take.

What is known of targets comes in two kinds. How busy they are does not add up: shares then move like a controller with
a dead time (SIMC tuning, Skogestad 2003), a step and a slow integral that learns unequal speeds, projected onto the
shares that add up to one, which is what keeps a target that gets nothing from owing anything.

Messages that wait do add up, and are seen late. A rule that sends where little waits herds: all senders go where it
was idle a while ago. So shares don't follow what waits. They are what `fair` gives for the senders there are, and
what waits only says how much a target can take. What arrives is compared with what should, which corrects senders that
send more than others of theirs; that is seen at once and does not add up.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ballast.errors import InvalidField
from ballast.grouping.fair import NO_ZONE, Shares, arriving, fair, leveled
from ballast.grouping.place import Place, Positions, Reach, reach

UNKNOWN_LOAD = 1.0
"""A target of which nothing is known counts as full once another one's load is known."""

TOLL = 0.05
"""How much more loaded than the least loaded target the nearest ones may be while messages still return to them."""
RETURN_SECONDS = 30.0
SPREAD = 0.01
"""How much less loaded a target must be to keep twice the share of those in its scope."""
SHORTEST_AGE_SECONDS = 2.0
LONGEST_STEP_SECONDS = 60.0
_INTEGRAL_PER_DEAD_TIME = 8.0
MEAN_SECONDS = 30.0
"""What arrives is counted over this time."""
CORRECTED_AT_MOST = 8.0
"""The factor up to which a target's room is corrected by what arrives there."""
_CORRECTION_PER_DEAD_TIME = 0.25
_COUNTED = 50.0
"""So many messages a target tell half as much as any more would."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What arrives at targets and what they can take, each as a share of all that arrives; where it is known."""

    got: Mapping[int, float] = field(default_factory=dict)
    """Of what arrived in the last `MEAN_SECONDS`."""
    can: Mapping[int, float] = field(default_factory=dict)
    easily: float = 0.0
    """What each target takes while it is idle at least half of the time."""
    messages: float = 0.0
    """How many arrived in that time."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How busy targets are, 0 (idle) to 1 (full), how old that may be, and the flow, if messages can wait in them."""

    loads: Mapping[int, float] = field(default_factory=dict)
    age_seconds: float = 0.0
    flow: Flow | None = None

    def of(self, target: int) -> float:
        load = self.loads.get(target, UNKNOWN_LOAD)
        return min(max(load, 0.0), 1.0) if math.isfinite(load) else UNKNOWN_LOAD

    @property
    def dead_time_seconds(self) -> float:
        return max(self.age_seconds, SHORTEST_AGE_SECONDS)


def nearest(around: Reach) -> Shares:
    """Equal shares of the targets in the nearest scope that has any. Raises InvalidField if there is no target."""
    if not around.rungs.size:
        raise InvalidField("targets", [], "give at least one: what takes the messages")
    mine = around.rungs == around.rungs.min()
    shares: Shares = mine / mine.sum()
    return shares


def stepped(
    shares: Shares, rungs: Positions, before: Shares, loads: Shares, *, seconds: float, dead_time_seconds: float
) -> Shares:
    """What is wanted after a measurement: `loads` are those of now, `before` those of `seconds` ago."""
    crowding = SPREAD * shares * (rungs[:, None] == rungs[None, :]).sum(axis=1)
    elapsed = min(seconds, LONGEST_STEP_SECONDS)
    learned = (loads + crowding) * elapsed / (_INTEGRAL_PER_DEAD_TIME * dead_time_seconds)
    near_keep_up = loads[rungs == 0].mean() <= loads.min() + TOLL
    returned = rungs * elapsed / RETURN_SECONDS if near_keep_up else np.zeros_like(loads)
    each = np.maximum(shares, 1.0 / shares.size)
    wanted: Shares = shares - each * (loads - before + learned + returned)
    return wanted


def projected(wanted: Shares) -> Shares:
    """The shares nearest to `wanted`: all lowered or raised alike, none below zero."""
    descending = np.sort(wanted)[::-1]
    levels = (np.cumsum(descending) - 1.0) / np.arange(1, wanted.size + 1)
    shares: Shares = np.maximum(wanted - levels[descending > levels][-1], 0.0)
    whole: Shares = shares / shares.sum()
    return whole


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
        self._places, self._around = tuple(places), reach(source, places)
        self._loads: Shares | None = None
        self._weights = nearest(self._around)
        """Of targets, by how busy they are."""
        self._senders: Mapping[str, float] = {}
        self._corrections = np.zeros(len(targets))
        """Logarithms of the factors by which the room of targets is corrected."""
        self._expected: deque[tuple[float, Shares]] = deque()
        self._next = 0
        self._take(self._weights)

    def senders_are(self, senders: Mapping[str, float]) -> None:
        """How much those in each zone send, in any unit, this sender included; empty if that is not known.

        Where the targets' racks are known instead of their zones, racks stand for zones. It counts from the next
        measurement on.
        """
        self._senders = {zone: each for zone, each in senders.items() if each > 0.0}

    def measured(self, now: Measured | None, *, seconds: float) -> None:
        """Takes into account what is known, `seconds` after what was known before; None when nothing is."""
        if now is None:
            self._loads = None
            self._weights = nearest(self._around)
            self._take(self._weights)
            return
        rungs = self._around.rungs - self._around.rungs.min()
        if now.flow is not None:
            # How near targets are is up to `fair`.
            rungs = np.zeros_like(rungs)
            if self._loads is None:
                self._weights = np.full(len(self._targets), 1.0 / len(self._targets))
        loads = np.array([now.of(target) for target in self._targets]) if now.loads else np.zeros(len(self._targets))
        before = np.zeros_like(loads) if self._loads is None else self._loads
        self._loads = loads
        wanted = stepped(self._weights, rungs, before, loads, seconds=seconds, dead_time_seconds=now.dead_time_seconds)
        self._weights = projected(wanted)
        self._take(self._weights if now.flow is None else self._fair(now.flow, seconds))

    def _fair(self, flow: Flow, seconds: float) -> Shares:
        can = np.array([min(flow.can.get(target, 1.0), 1.0) for target in self._targets])
        room = np.maximum(leveled(self._weights, can), np.minimum(can, flow.easily))
        self._correct(flow, seconds)
        corrected = room * np.exp(self._corrections)
        corrected *= room.sum() / corrected.sum()
        zones, own = self._zones()
        self._expected.append((0.0, arriving(self._senders, zones, room)))
        return fair(own, self._senders, zones, corrected)

    def _correct(self, flow: Flow, seconds: float) -> None:
        """Gives targets that got more than was meant for them less, slowly, and the other way round."""
        if not self._expected:
            return
        self._expected[-1] = (seconds, self._expected[-1][1])
        while sum(each for each, _ in self._expected) - self._expected[0][0] >= MEAN_SECONDS:
            self._expected.popleft()
        spans = np.array([each for each, _ in self._expected])
        if not spans.sum() > 0.0 or not flow.got:
            return
        meant = np.average([each for _, each in self._expected], axis=0, weights=spans)
        got = np.array([flow.got.get(target, 0.0) for target in self._targets])
        least = 0.1 / len(self._targets)
        told = flow.messages / (flow.messages + _COUNTED * len(self._targets))
        # What arrives is seen at once, in the mean of a while, and what follows from it is seen a reading later.
        pace = _CORRECTION_PER_DEAD_TIME * seconds / (MEAN_SECONDS / 2.0 + 2.0 * seconds)
        off = np.log(np.maximum(meant, least) / np.maximum(got, least))
        corrections = self._corrections + pace * told * off
        corrections -= corrections.mean()
        self._corrections = np.clip(corrections, -math.log(CORRECTED_AT_MOST), math.log(CORRECTED_AT_MOST))

    def _zones(self) -> tuple[list[str | None], str]:
        """Of the targets, and this sender's own."""
        zones = [place.zone if place else None for place in self._places]
        if any(zone is not None for zone in zones):
            return zones, self._source.zone or NO_ZONE
        return [place.rack if place else None for place in self._places], self._source.rack or NO_ZONE

    def targets_are(self, targets: Sequence[int], places: Sequence[Place | None]) -> None:
        """Targets or places that changed. Those that remain keep their shares, a new one gets what its scope has.

        Raises InvalidField if there is no target, and then keeps the former ones.
        """
        if (tuple(targets), tuple(places)) == (self._targets, self._places):
            return
        around = reach(self._source, places)
        fresh = nearest(around)
        weights, shares = (self._kept(of, targets, around, fresh) for of in (self._weights, self.shares))
        corrections = dict(zip(self._targets, self._corrections.tolist(), strict=True))
        if self._loads is not None:
            loads = dict(zip(self._targets, self._loads.tolist(), strict=True))
            self._loads = np.array([loads.get(target, 0.0) for target in targets])
        self._targets, self._places, self._around, self._weights = tuple(targets), tuple(places), around, weights
        self._corrections = np.array([corrections.get(target, 0.0) for target in targets])
        self._expected.clear()
        self._take(shares)

    def _kept(self, former: Shares, targets: Sequence[int], around: Reach, fresh: Shares) -> Shares:
        by_target = dict(zip(self._targets, former.tolist(), strict=True))
        kept = np.array([by_target.get(target, math.nan) for target in targets])
        known = ~np.isnan(kept)
        for rung in np.unique(around.rungs):
            here = around.rungs == rung
            kept[here & ~known] = kept[here & known].mean() if (here & known).any() else 0.0
        return kept / kept.sum() if kept.sum() > 0.0 else fresh

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
