"""AvgShedder with unit Usage: levels the scores themselves, in each node's own capacity.

The pairs, thresholds and hits are those of Pulsar's AvgShedder (PIP-364). What differs:

- A hit counts at most once a metric window, and only while the node stays on the same side. Hits of a node without
  metrics, and of the partner it had, stay as they are.
- Hits count as a reason only when the node strayed farther than the pool's own noise explains (`noise`).
- Points that come from executors which differ from their applications' means count only as far as they have lasted
  (`lasting`).
- Gaps have to be wider by what the load of others comes and goes by (`unrest`).
- A gap that is too small for hits is acted on once it has persisted, and no wider one is left that could be leveled.
- Executors are chosen as the combination that comes closest to leveling the two nodes without making the cold one the
  hotter or taking the hot one far below the pool's level; fewer and cheaper moves first. Every suggestion says which
  scores it should end in.

Give it scores that include what is arriving and leaving: hits are kept until the gap itself is gone, so a suggestion
that was not followed comes again, and one that was is seen in the scores.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isclose
from statistics import median

from ballast.model.move import Gap
from ballast.model.reason import LIMITS_ON_MOVES, Reason
from ballast.shedding.lasting import Lasting, calmed, observed
from ballast.shedding.load import AnythingGoes, Suggestion, Terms, UsageNode, UsagePool
from ballast.shedding.noise import Noise, leaving_out, observe
from ballast.shedding.streak import Streak
from ballast.shedding.unrest import Unrest, experienced
from ballast.shedding.victims_and_destination import Effect, Leveling, Refused, Search

_LASTING = 1.4
"""A lasting deviation must exceed the pool's extreme by this factor to be more than noise."""
_SUDDEN = 2.0
"""The same for a deviation seen a few times only, over the high threshold."""
_SMALL = 2.0
"""The same for a small gap that has persisted. It also has to be wider by so many times the unrest: there is less to
gain than in a wide one."""
_PATIENCE = 2
"""So many times as long a small gap has to persist while moves that would level a wide one are too many at once. No
longer: a user may keep such executors, in a cooldown or without a budget, on each hot node."""
_SMALL_GAP_RATIO = 0.6
"""Of the low threshold: a narrower gap stays, however long it persists."""
_SMALL_HOT_RATIO = 0.75
"""Of the least hot score: the gap of a cooler node stays, however long it persists."""
_REMEMBERED = 32
"""Streaks of hot nodes kept from pass to pass, and as many of cold ones."""
_MEMORY_SECONDS = 300.0
"""Noise is taken to last at least this long, however short the metric window."""


@dataclass(frozen=True, slots=True)
class UsageSettings:
    low_threshold: float = 15.0
    """Points of score between the two nodes of a pair."""
    high_threshold: float = 40.0
    low_hits: int = 8
    high_hits: int = 2
    min_hot_score: float = 70.0
    persistent_hits: int = 0
    """Windows for which a gap has to persist that is too small, or too cool, for hits; 0: such gaps stay."""
    max_unload_ratio: float = 0.5
    """Share of the difference that leaves the hot node; 0.5 levels the two, more is not done."""
    window_seconds: float = 120.0
    """What a score is a mean over."""
    min_gain: float = 0.0
    """Points by which each move has to narrow the gap of its two nodes."""
    max_moves: int = 2
    """Suggestions in one pass."""
    max_moves_per_node: int = 1
    """Suggestions in one pass for one hot node."""
    unrest: float = 0.0
    """Points by which the thresholds have been raised, since load of others comes and goes."""

    @property
    def least_gap(self) -> float:
        """Points between two nodes below which nothing is done."""
        if not self.persistent_hits:
            return self.low_threshold
        usual = self.low_threshold - self.unrest
        return min(_SMALL_GAP_RATIO * usual + _SMALL * self.unrest, self.low_threshold)

    @property
    def least_hot_score(self) -> float:
        """The score of a hot node below which nothing is done."""
        return self.min_hot_score * (_SMALL_HOT_RATIO if self.persistent_hits else 1.0)


@dataclass(frozen=True, slots=True)
class UsageMemory:
    """Plain values, fit for JSON. Only nodes that are apart have a streak, and of those only the farthest out."""

    streaks: tuple[tuple[str, Streak], ...] = ()
    noise: Noise = field(default_factory=Noise)
    last_at_seconds: float | None = None
    lasting: Lasting = ()
    unrest: Unrest = field(default_factory=Unrest)


@dataclass(frozen=True, slots=True)
class PairState:
    """A hot and a cold node as the pass saw them."""

    hot: UsageNode
    cold: UsageNode
    low_hits: int
    high_hits: int
    persistent: int
    """Windows for which the gap has persisted."""
    reason: Reason | None
    """Why nothing is done about them; None = it is acted on."""
    detail: str = ""

    @property
    def difference(self) -> float:
        return self.hot.score - self.cold.score


@dataclass(frozen=True, slots=True)
class UsageResult:
    suggestions: tuple[Suggestion, ...]
    refused: tuple[Refused, ...]
    pairs: tuple[PairState, ...]
    """Every pair, the widest first."""
    memory: UsageMemory


def avg_shedder_usage(
    pool: UsagePool,
    settings: UsageSettings,
    memory: UsageMemory,
    *,
    now_seconds: float,
    terms: Terms | None = None,
) -> UsageResult:
    """One pass: what to move now, why nothing else, and what to remember."""
    if len(pool.nodes) < 2:
        return UsageResult((), (), (), memory)
    elapsed_seconds = _elapsed_seconds(memory, settings, now_seconds)
    lasting, unrest = _lasting(pool, memory, elapsed_seconds), _unrest(pool, memory, elapsed_seconds)
    settings = _raised(settings, unrest)
    measured = {node.name: node.score for node in pool.nodes}
    pool = _calmed(pool, dict(lasting))
    # At the middle, to which nodes are calmed, the order remains that of what was measured.
    ranked = sorted(pool.nodes, key=lambda node: (node.score, measured[node.name], node.name))
    middle = median(node.score for node in ranked)
    noise = _noise(pool, settings, memory, middle=middle, elapsed_seconds=elapsed_seconds)
    watch = _Watch(settings, dict(memory.streaks), middle=middle, now_seconds=now_seconds)
    streaks = {**watch.resting(pool.silent), **watch.streaks(ranked)}
    pairs = [_state(cold, hot, streaks, noise, settings) for cold, hot in _pairs(ranked, settings.min_hot_score)]
    terms = terms or AnythingGoes()
    suggestions, refused = _decide(pool, pairs, settings, terms, least_gap=settings.low_threshold)
    if settings.persistent_hits and not suggestions and not _wide_gap_waits(pairs, settings):
        patience = _PATIENCE if any(each.reason in LIMITS_ON_MOVES for each in refused) else 1
        small = replace(settings, persistent_hits=patience * settings.persistent_hits)
        pairs = [_with_persistence(pair, streaks, noise, small) for pair in pairs]
        suggestions, more = _decide(pool, pairs, settings, terms, least_gap=settings.least_gap)
        moved = {each.executor for each in suggestions}
        refused = list(dict.fromkeys(each for each in (*refused, *more) if each.executor not in moved))
    learned_at = memory.last_at_seconds if elapsed_seconds is None else now_seconds
    remembered = UsageMemory(_farthest(streaks), noise, learned_at, lasting, unrest)
    return UsageResult(tuple(suggestions), tuple(refused), tuple(pairs), remembered)


def _elapsed_seconds(memory: UsageMemory, settings: UsageSettings, now_seconds: float) -> float | None:
    """Since the pass that was last learned from; where that is not known, as if it were a window.

    None: nothing is learned now. Passes in quick succession see the same values; they would teach that nothing ever
    changes.
    """
    last = memory.last_at_seconds
    # A time in the future: the wall clock stepped backwards.
    if last is None or now_seconds < last:
        return settings.window_seconds
    elapsed_seconds = now_seconds - last
    return elapsed_seconds if elapsed_seconds >= settings.window_seconds / 4.0 else None


def _calmed(pool: UsagePool, lasting: Mapping[str, float]) -> UsagePool:
    middle = median(node.score for node in pool.nodes)
    return replace(pool, nodes=tuple(calmed(node, lasting, middle=middle) for node in pool.nodes))


def _lasting(pool: UsagePool, memory: UsageMemory, elapsed_seconds: float | None) -> Lasting:
    if elapsed_seconds is None:
        return memory.lasting
    return observed(memory.lasting, pool.nodes, silent=pool.silent, elapsed_seconds=elapsed_seconds)


def _unrest(pool: UsagePool, memory: UsageMemory, elapsed_seconds: float | None) -> Unrest:
    if elapsed_seconds is None:
        return memory.unrest
    # Gaps at restless nodes must exceed these nodes' noise. One user's bursts on a few nodes must not keep others from
    # being leveled.
    unknown = pool.unsettled.union(memory.noise.restless)
    foreign = {node.name: node.foreign for node in pool.nodes if node.name not in unknown}
    silent = pool.silent | unknown
    return experienced(memory.unrest, foreign, silent=silent, elapsed_seconds=elapsed_seconds)


def _noise(
    pool: UsagePool, settings: UsageSettings, memory: UsageMemory, *, middle: float, elapsed_seconds: float | None
) -> Noise:
    if elapsed_seconds is None:
        return memory.noise
    deviations = {node.name: node.score - middle for node in pool.nodes}
    begun = (pool.unsettled - pool.moving).intersection(deviations)
    before = leaving_out(memory.noise, left_out=len(begun), nodes=len(deviations), elapsed_seconds=elapsed_seconds)
    # One user's executors may begin on all nodes, again and again.
    left_out = pool.moving if before.starved else pool.unsettled
    deviations = {name: each for name, each in deviations.items() if name not in left_out}
    memory_seconds = max(settings.window_seconds, _MEMORY_SECONDS)
    return observe(before, deviations, elapsed_seconds=elapsed_seconds, memory_seconds=memory_seconds)


def _raised(settings: UsageSettings, unrest: Unrest) -> UsageSettings:
    """With gaps that have to be wider by what comes and goes."""
    return replace(
        settings,
        low_threshold=settings.low_threshold + unrest.points,
        high_threshold=settings.high_threshold + unrest.points,
        unrest=unrest.points,
    )


def _farthest(streaks: Mapping[str, Streak]) -> tuple[tuple[str, Streak], ...]:
    """The streaks worth keeping: a pass acts on few nodes, and status has to stay small.

    Hot and cold nodes count separately: in a large pool, many idle nodes may be farther out than the few hot ones.
    """
    order = sorted(streaks.items(), key=lambda item: (-item[1].deviation, item[0]))
    hot, cold = ([item for item in order if item[1].hot is side][:_REMEMBERED] for side in (True, False))
    return tuple(sorted((*hot, *cold)))


def _pairs(ranked: list[UsageNode], min_hot_score: float) -> Iterator[tuple[UsageNode, UsageNode]]:
    """Cold and hot, the widest first: the coldest that take and the hottest that give.

    Hot nodes that no executor can leave come last. Otherwise one user's executor, on a node that other pods keep hot,
    would keep the coldest node from all other nodes.
    """
    destinations = [place for place, node in enumerate(ranked) if node.receives]
    sources = [place for place, node in enumerate(ranked) if node.gives]
    turns = {place: _turn(ranked[place], min_hot_score) for place in sources}
    for cold, hot in zip(destinations, sorted(sources, key=lambda place: (turns[place], -place)), strict=False):
        if cold < hot:
            yield ranked[cold], ranked[hot]


def _turn(node: UsageNode, min_hot_score: float) -> int:
    """0: a hot node that an executor may leave, now or after other moves; 1: another hot node; 2: any other node."""
    if node.score < min_hot_score:
        return 2
    leaving = (each for each in node.executors if each.refusal is None or each.refusal in LIMITS_ON_MOVES)
    return 0 if any(each.load_cores is not None and not each.idle for each in leaving) else 1


@dataclass(frozen=True, slots=True)
class _Watch:
    """One pass's look at the scores."""

    settings: UsageSettings
    known: Mapping[str, Streak]
    middle: float
    now_seconds: float

    def resting(self, silent: Collection[str]) -> dict[str, Streak]:
        """What is known of nodes whose gap can't be seen now: it neither grows nor vanishes."""
        return {name: streak for name, streak in self.known.items() if name in silent or streak.partner in silent}

    def streaks(self, ranked: list[UsageNode]) -> dict[str, Streak]:
        found: dict[str, Streak] = {}
        for cold, hot in _pairs(ranked, self.settings.min_hot_score):
            if _may_be_leveled(cold, hot, self.settings):
                low = _apart(cold, hot, self.settings)
                high = low and hot.score - cold.score >= self.settings.high_threshold
                found[hot.name] = self._hit(hot, cold.name, hot=True, low=low, high=high)
                found[cold.name] = self._hit(cold, hot.name, hot=False, low=low, high=high)
        return found

    def _hit(self, node: UsageNode, partner: str, *, hot: bool, low: bool, high: bool) -> Streak:
        before = self.known.get(node.name)
        streak = before if before is not None and before.hot == hot else Streak(hot)
        return streak.hit(
            partner=partner,
            low=low,
            high=high,
            deviation=node.score - self.middle if hot else self.middle - node.score,
            now_seconds=self.now_seconds,
            window_seconds=self.settings.window_seconds,
        )


def _may_be_leveled(cold: UsageNode, hot: UsageNode, settings: UsageSettings) -> bool:
    """Once their gap has lasted: for hits if they are `_apart`, otherwise for `persistent_hits`."""
    return hot.score - cold.score >= settings.least_gap and hot.score >= settings.least_hot_score


def _apart(cold: UsageNode, hot: UsageNode, settings: UsageSettings) -> bool:
    return hot.score - cold.score >= settings.low_threshold and hot.score >= settings.min_hot_score


def _sides(cold: UsageNode, hot: UsageNode, streaks: Mapping[str, Streak]) -> list[Streak]:
    return [streaks[node.name] for node in (hot, cold) if node.name in streaks]


def _state(
    cold: UsageNode, hot: UsageNode, streaks: Mapping[str, Streak], noise: Noise, settings: UsageSettings
) -> PairState:
    sides = _sides(cold, hot, streaks)
    low, high = max((each.low for each in sides), default=0), max((each.high for each in sides), default=0)
    persistent = max((each.persistent for each in sides), default=0)
    reason, detail = _waiting(cold, hot, sides, noise, settings)
    return PairState(hot, cold, low, high, persistent, reason, detail)


def _waiting(
    cold: UsageNode, hot: UsageNode, sides: list[Streak], noise: Noise, settings: UsageSettings
) -> tuple[Reason | None, str]:
    """Why the pair is left alone."""
    difference, passing = hot.score - cold.score, hot.passing + cold.passing
    apart = difference + passing >= settings.low_threshold and hot.score + hot.passing >= settings.min_hot_score
    if passing and apart and not _apart(cold, hot, settings):
        return Reason.WAITING_FOR_HITS, (
            f"{difference + passing:.1f} points apart, {passing:.1f} of them by executors that differ from their "
            "applications' means, which has not lasted"
        )
    if difference < settings.low_threshold:
        return Reason.BALANCED, f"{difference:.1f} points apart, below lowThreshold {_threshold(settings)}"
    if hot.score < settings.min_hot_score:
        return Reason.BELOW_MIN_HOT_SCORE, f"at {hot.score:.1f}, below minHotScore {settings.min_hot_score:g}"
    due = [each for each in sides if each.low >= settings.low_hits or each.high >= settings.high_hits]
    if not due:
        low = max(each.low for each in sides)
        return Reason.WAITING_FOR_HITS, f"{low} of {settings.low_hits} hits"
    extremes = noise.of(hot=hot.name, cold=cold.name)
    if not any(_beyond_noise(each, extremes, settings) for each in due):
        farthest = max(due, key=lambda each: each.deviation)
        explained = f"which the pool's noise of {_extreme(farthest, extremes):.1f} explains"
        return Reason.WAITING_FOR_HITS, f"{farthest.deviation:.1f} points out, {explained}"
    return None, ""


def _wide_gap_waits(pairs: Iterable[PairState], settings: UsageSettings) -> bool:
    """Whether a wide gap may still be leveled. That may close or open small gaps, so these wait.

    A wide gap that nothing can level (the cold node is full, or has a taint) is no reason to wait: it may stay for
    good.
    """
    return any(pair.reason is not None and _apart(pair.cold, pair.hot, settings) for pair in pairs)


def _with_persistence(
    pair: PairState, streaks: Mapping[str, Streak], noise: Noise, settings: UsageSettings
) -> PairState:
    """The pair, acted on if its gap, too small or too cool for hits, has persisted."""
    sides = _sides(pair.cold, pair.hot, streaks)
    if not sides or not _may_be_leveled(pair.cold, pair.hot, settings):
        return pair
    extremes = noise.of(hot=pair.hot.name, cold=pair.cold.name)
    beyond = (each for each in sides if each.deviation >= _SMALL * _extreme(each, extremes))
    if any(each.persistent >= settings.persistent_hits for each in beyond):
        return replace(pair, reason=None, detail="")
    so_far = f"has persisted for {pair.persistent} of {settings.persistent_hits} windows (persistentHits)"
    if pair.reason is None:
        # It was due, and nothing levels it. A small gap between its hot node and another one has to persist as any.
        return replace(pair, reason=Reason.WAITING_FOR_HITS, detail=f"nothing levels the two; {so_far}")
    return replace(pair, detail=f"{pair.detail}; {so_far}")


def _threshold(settings: UsageSettings) -> str:
    set_to = f"{settings.low_threshold - settings.unrest:g}"
    return f"{set_to} + {settings.unrest:.1f} that others' load comes and goes by" if settings.unrest else set_to


def _extreme(streak: Streak, extremes: tuple[float, float]) -> float:
    """`extremes`: of the hot and of the cold node."""
    return extremes[0] if streak.hot else extremes[1]


def _beyond_noise(streak: Streak, extremes: tuple[float, float], settings: UsageSettings) -> bool:
    extreme = _extreme(streak, extremes)
    if streak.low >= settings.low_hits and streak.deviation >= _LASTING * extreme:
        return True
    return streak.high >= settings.high_hits and streak.deviation >= _SUDDEN * extreme


def _decide(
    pool: UsagePool, pairs: list[PairState], settings: UsageSettings, terms: Terms, *, least_gap: float
) -> tuple[list[Suggestion], list[Refused]]:
    """`least_gap`: points between two nodes below which nothing is done in this pass."""
    search = Search(
        scores={node.name: node.score for node in pool.nodes},
        terms=terms,
        low_threshold=least_gap,
        max_unload_ratio=settings.max_unload_ratio,
        min_gain=settings.min_gain,
        # Farther below the pool's level than half a gap, a node would have to be filled again.
        floor=_level(pool) - settings.low_threshold / 2.0,
        # At both nodes so much comes and goes without any move.
        left=2.0 * settings.unrest,
    )
    suggestions: list[Suggestion] = []
    refused: list[Refused] = []
    # A node gives or takes in one pass, and takes from one other: so none ends hotter than the node that it relieved.
    engaged: set[str] = set()
    for pair in pairs:
        if pair.reason is not None or pair.hot.name in engaged:
            continue
        most = min(settings.max_moves_per_node, settings.max_moves - len(suggestions))
        if most <= 0:
            refused.append(_refused(pair, Reason.BUDGET, "later: the moves of this pass are used up"))
            continue
        targets = [node for node in pool.nodes if node.receives and node.name not in engaged]
        best, objections = search.best(pair.hot, targets, most)
        refused += objections
        if best is None:
            refused.append(_refused(pair, Reason.NO_DESTINATION, "no executor and node go together"))
            continue
        suggestions += _suggestions(best, pair)
        engaged |= {best.source.name, best.target.name}
    return suggestions, refused


def _level(pool: UsagePool) -> float:
    """The score that all nodes would have if their work were spread evenly.

    Those that take none of it are left out, and those that others keep above it.
    """
    sharing = [node for node in pool.nodes if node.receives]
    level = _mean(sharing)
    return _mean([node for node in sharing if node.gives or node.score <= level])


def _mean(nodes: list[UsageNode]) -> float:
    """Of their scores, weighed by the work that each can do; 0 of none."""
    power = [node.capacity_cores * node.speed for node in nodes]
    work = sum(node.score * each for node, each in zip(nodes, power, strict=True))
    return work / sum(power) if power else 0.0


def _refused(pair: PairState, reason: Reason, detail: str) -> Refused:
    return Refused("", pair.hot.name, pair.cold.name, reason, detail)


def _suggestions(leveling: Leveling, pair: PairState) -> Iterator[Suggestion]:
    """Each counts on those before it; the largest first, for budgets may not suffice for all."""
    effect = Effect.of(leveling.source, leveling.target)
    hot, cold = leveling.source.score, leveling.target.score
    for item in sorted(leveling.chosen.items, key=lambda each: (-each.load, each.name)):
        after = effect.after(Gap(hot, cold), item.load)
        # Where both meet, rounding must not make the cold one the hotter.
        hot_after, cold_after = after.hot, after.hot if isclose(after.hot, after.cold) else after.cold
        yield Suggestion(
            executor=item.name,
            source=leveling.source.name,
            target=leveling.target.name,
            hot_score=hot,
            cold_score=cold,
            difference=hot - cold,
            hits=max(pair.low_hits, pair.high_hits) or pair.persistent,
            hot_after=hot_after,
            cold_after=cold_after,
        )
        hot, cold = hot_after, cold_after
