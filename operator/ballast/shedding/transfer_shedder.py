"""TransferShedder: while loads spread too far, moves half the difference from the hottest node to the coldest.

Source: Pulsar's `TransferShedder` (PIP-192). Loads are moving averages; the condition must hold several passes in a
row; executors are moved, or swapped when none is small enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isnan, nan, sqrt

from ballast.model.shedders import TransferQuirks, TransferSettings
from ballast.shedding.load import Suggestion
from ballast.shedding.transfer_pool import (
    Allowed,
    Average,
    Exchange,
    Side,
    SwapRules,
    TransferNode,
    TransferPool,
    smoothed,
)


class Cause(StrEnum):
    OVERLOADED = "Overloaded"
    UNDERLOADED = "Underloaded"


class Outcome(StrEnum):
    """What came of a pass."""

    SUGGESTED = "Suggested"
    NO_NODES = "NoNodes"
    STALE = "Stale"
    COOLING_DOWN = "CoolingDown"
    NO_FIGURES = "NoFigures"
    WAITING_FOR_HITS = "WaitingForHits"
    NO_EXECUTORS = "NoExecutors"


@dataclass(frozen=True, slots=True)
class TransferMemory:
    """Plain values, fit for JSON."""

    averages: tuple[tuple[str, Average], ...] = ()
    hits: int = 0


@dataclass(frozen=True, slots=True)
class TransferResult:
    suggestions: tuple[Suggestion, ...]
    outcome: Outcome
    mean_ratio: float
    std_ratio: float
    """As it should be after the suggestions."""
    cooled: frozenset[str]
    """Nodes whose cooldown was found to be over."""
    memory: TransferMemory


def transfer_shedder(
    pool: TransferPool, settings: TransferSettings, memory: TransferMemory, *, allowed: Allowed
) -> TransferResult:
    """One pass."""
    averages = smoothed(pool, dict(memory.averages), settings.history_ratio)
    found = _candidates(pool, settings, averages)
    kept = tuple(sorted(averages.items()))
    if found.stop is not None:
        remembered = TransferMemory(kept, memory.hits)
        return TransferResult((), found.stop, 0.0, 0.0, found.cooled, remembered)
    cycle = _Cycle(settings, averages, found.order, _Spread.of(found.loads, settings.quirks), allowed)
    hits = memory.hits + 1 if cycle.cause() else 0
    suggestions, outcome = cycle.run(hits) if hits > settings.hits else ([], Outcome.WAITING_FOR_HITS)
    if hits == 0 and _in_doubt(pool, found, averages, settings):
        hits = memory.hits
    return TransferResult(
        tuple(suggestions),
        outcome,
        cycle.spread.mean,
        cycle.spread.std,
        found.cooled,
        TransferMemory(kept, 0 if suggestions else hits),
    )


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Which nodes take part, or why the pass ends here."""

    order: list[TransferNode] = field(default_factory=list)
    """Coldest first."""
    loads: list[float] = field(default_factory=list)
    cooled: frozenset[str] = frozenset()
    stop: Outcome | None = None


def _candidates(pool: TransferPool, settings: TransferSettings, averages: dict[str, Average]) -> _Candidates:
    quirks = settings.quirks
    stored = [node for node in pool.nodes if node.stored]
    stored = [node for node in stored if quirks.unregistered_too or node.name in pool.registered]
    cooled: set[str] = set()
    fresh: list[TransferNode] = []
    for node in stored:
        if node.age_seconds > settings.ttl_seconds:
            continue
        if node.since_unload_seconds is not None:
            if node.since_unload_seconds < settings.cooldown_seconds:
                return _Candidates(cooled=frozenset(cooled), stop=Outcome.COOLING_DOWN)
            cooled.add(node.name)
        fresh.append(node)
    if not any(node.receives for node in fresh):
        return _Candidates(cooled=frozenset(cooled), stop=Outcome.NO_NODES if fresh or not stored else Outcome.STALE)
    if not pool.registered <= {node.name for node in stored}:
        return _Candidates(cooled=frozenset(cooled), stop=Outcome.NO_FIGURES)
    fresh = _with_a_part(fresh, averages)
    order = sorted(stored if quirks.outdated_too else fresh, key=lambda node: _load(averages, node))
    return _Candidates(order, [_load(averages, node) for node in fresh], frozenset(cooled))


def _with_a_part(nodes: list[TransferNode], averages: dict[str, Average]) -> list[TransferNode]:
    """Without those that can't take and have nothing to give: the others can't change how far they are from them."""
    loads = [_load(averages, node) for node in nodes if node.receives]
    mean = sum(loads) / len(loads)
    return [node for node in nodes if node.receives or _load(averages, node) > mean]


def _in_doubt(pool: TransferPool, found: _Candidates, averages: dict[str, Average], settings: TransferSettings) -> bool:
    """Whether loads are too far apart if the silent nodes' are still what they were."""
    unseen = [TransferNode(name, 0.0, 0.0) for name in sorted(pool.silent) if name in averages]
    if not unseen:
        return False
    order = sorted([*found.order, *unseen], key=lambda node: _load(averages, node))
    loads = [*found.loads, *(_load(averages, node) for node in unseen)]
    spread = _Spread.of(loads, settings.quirks)
    return _Cycle(settings, averages, order, spread, allowed=lambda *_: True).cause() is not None


def _load(averages: dict[str, Average], node: TransferNode) -> float:
    average = averages.get(node.name)
    return average.load_ratio if average else 0.0


def _quotient(one: float, other: float) -> float:
    """Division as IEEE 754 defines it."""
    if other != 0:
        return one / other
    return nan if one == 0 or isnan(one) else inf


@dataclass(slots=True)
class _Spread:
    """Mean and standard deviation of the load ratios, and what moves do to them."""

    squares: float
    nodes: int
    mean: float
    std: float

    @classmethod
    def of(cls, loads: list[float], quirks: TransferQuirks) -> _Spread:
        total = squares = 0.0
        for load in loads:
            total += load
            squares += load * load
        mean = total / len(loads)
        variance = squares / len(loads) - mean * mean
        std = nan if variance < 0 and quirks.negative_variance else sqrt(max(0.0, variance))
        return cls(squares, len(loads), mean, std)

    def moved(self, hot: float, cold: float, load: float) -> None:
        left, joined = max(0.0, hot - load), cold + load
        self.squares -= hot * hot + cold * cold
        self.squares += left * left + joined * joined
        self.std = sqrt(abs(self.squares / self.nodes - self.mean * self.mean))


@dataclass(slots=True)
class _Cycle:
    settings: TransferSettings
    averages: dict[str, Average]
    order: list[TransferNode]
    spread: _Spread
    allowed: Allowed
    coldest: int = -1
    hottest: int = -1
    unloaded: int = 0

    def __post_init__(self) -> None:
        self.hottest = len(self.order) - 1
        self._next_coldest()

    def _next_coldest(self) -> None:
        self.coldest += 1
        while self.coldest < self.hottest and not self.order[self.coldest].receives:
            self.coldest += 1

    def cause(self) -> Cause | None:
        """Why loads are too far apart: on the whole, because of the coldest node, or of the hottest."""
        cold, hot = self.order[self.coldest], self.order[self.hottest]
        if self.spread.std > self.settings.target_std_ratio:
            return Cause.OVERLOADED
        if self._underloaded(cold, hot):
            return Cause.UNDERLOADED
        return Cause.OVERLOADED if self._overloaded(hot) else None

    def _underloaded(self, cold: TransferNode, hot: TransferNode) -> bool:
        share = self.settings.underload_ratio
        if _load(self.averages, cold) < self.spread.mean * share:
            return True
        return self._bytes(cold) < self._bytes(hot) * share

    def _overloaded(self, hot: TransferNode) -> bool:
        load = _load(self.averages, hot)
        above = self.spread.mean + self.settings.target_std_ratio
        return load > self.settings.overload_threshold / 100 and load > above

    def _bytes(self, node: TransferNode) -> float:
        average = self.averages.get(node.name)
        return average.bytes_per_second if average else 0.0

    def _more(self) -> bool:
        return self.unloaded < self.settings.max_nodes and self.coldest < self.hottest

    def run(self, hits: int) -> tuple[list[Suggestion], Outcome]:
        found: list[Suggestion] = []
        silent = few = False
        while self._more() and (cause := self.cause()):
            hot, cold = self.order[self.hottest], self.order[self.coldest]
            self.hottest -= 1
            if not hot.top:
                silent = True
                continue
            exchange = self._exchange(hot, cold) if len(hot.top) > 1 else None
            if exchange is None or exchange.given <= 0:
                few = True
                continue
            found += self._suggestions(exchange, hot, cold, hits, cause)
            moved = _quotient((exchange.given - exchange.gained) * _load(self.averages, hot), hot.bytes_per_second)
            self.spread.moved(_load(self.averages, hot), _load(self.averages, cold), moved)
            self.unloaded += 1
            self._next_coldest()
        if found:
            return found, Outcome.SUGGESTED
        if silent:
            return [], Outcome.NO_FIGURES
        return [], Outcome.NO_EXECUTORS if few else Outcome.WAITING_FOR_HITS

    def _exchange(self, hot: TransferNode, cold: TransferNode) -> Exchange | None:
        hot_load, cold_load = _load(self.averages, hot), _load(self.averages, cold)
        wanted = _quotient(hot.bytes_per_second * ((hot_load - cold_load) / 2), hot_load)
        if isnan(wanted) and not self.settings.quirks.idle_moves:
            return None
        rules = SwapRules(
            wanted=wanted,
            swaps=self.settings.transfer and hot.receives,
            ignore_gains=self.settings.quirks.ignore_gains,
            anything_back=self.settings.quirks.swap_anything,
        )
        return rules.exchange(
            Side(hot.name, hot.bytes_per_second, hot.top),
            Side(cold.name, cold.bytes_per_second, cold.top),
            self.allowed,
        )

    def _suggestions(
        self, exchange: Exchange, hot: TransferNode, cold: TransferNode, hits: int, cause: Cause
    ) -> list[Suggestion]:
        target = cold.name if self.settings.transfer else None
        scores = 100 * _load(self.averages, hot), 100 * _load(self.averages, cold)

        def suggestion(executor: str, source: str, to: str | None) -> Suggestion:
            return Suggestion(executor, source, to, *scores, difference=scores[0] - scores[1], hits=hits, cause=cause)

        there = [suggestion(executor, hot.name, target) for executor in exchange.there]
        return there + [suggestion(executor, cold.name, hot.name) for executor in exchange.back]
