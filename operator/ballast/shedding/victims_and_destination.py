"""Victims and destinations: for one hot node, the destination and the executors that level the two best.

Suggestions of strategies that name no destination get one here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import fmean

from ballast.model.move import Gap
from ballast.model.reason import Reason
from ballast.shedding.load import Suggestion, Terms, UsageExecutor, UsageNode, UsagePool

# Which executors to move so that together they come closest to a wanted load without exceeding it.

_STEPS = 256
"""Sums of load are told apart in this many steps of the wanted load."""
ROUNDING = 1e-9
"""Relative; so much above the wanted load still counts as that load."""


@dataclass(frozen=True, slots=True)
class Item:
    name: str
    load: float
    """Above 0."""
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Combination:
    items: tuple[Item, ...] = ()
    load: float = 0.0
    cost: float = 0.0

    def plus(self, item: Item) -> Combination:
        return Combination((*self.items, item), self.load + item.load, self.cost + item.cost)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)


def closest(items: Iterable[Item], *, wanted: float, most: int, slack: float) -> Combination:
    """The combination of at most `most` items whose load comes closest to `wanted` and does not exceed it.

    Those whose load is within `slack` of the closest one count as equally close: then the fewest items win, then the
    lowest cost, then the load, then the names. Empty when nothing fits.
    """
    by_size = _reachable(sorted(items, key=lambda item: item.name), wanted=wanted, most=most)
    found = [combination for sums in by_size[1:] for combination in sums.values()]
    reached = max((combination.load for combination in found), default=0.0)
    close = [combination for combination in found if combination.load >= reached - slack]
    return min(close, key=lambda each: (len(each.items), each.cost, -each.load, each.names), default=Combination())


def _reachable(items: Sequence[Item], *, wanted: float, most: int) -> list[dict[int, Combination]]:
    """By number of items, the best combination of each step of load; `items` must be in the order of their names."""
    by_size: list[dict[int, Combination]] = [{0: Combination()}, *({} for _ in range(most))]
    limit = wanted * (1.0 + ROUNDING)
    for item in _few_of_a_kind(items, most):
        if not 0.0 < item.load <= limit:
            continue
        for size in range(most, 0, -1):
            for before in list(by_size[size - 1].values()):
                if before.load + item.load <= limit:
                    _keep(by_size[size], before.plus(item), wanted)
    return by_size


def _few_of_a_kind(items: Sequence[Item], most: int) -> list[Item]:
    """More than `most` items with the same load and cost are never needed."""
    seen: dict[tuple[float, float], int] = {}
    kept = []
    for item in items:
        kind = (item.load, item.cost)
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= most:
            kept.append(item)
    return kept


def _keep(sums: dict[int, Combination], new: Combination, wanted: float) -> None:
    step = int(new.load / wanted * _STEPS)
    old = sums.get(step)
    cost, load = (old.cost, old.load) if old else (inf, 0.0)
    if (new.cost, -new.load) < (cost, -load):
        sums[step] = new


_LOOKED_AT = 8
"""Destinations compared for one hot node, or tried for one executor; the coldest first. Where none of them takes
anything, the others follow: a node may be cold because idle pods have used up its requests.
"""
_MOST_TRIED = 20_000
"""Executors of one namespace that are tried on these others in a pass: a user may have thousands that go nowhere."""
_EQUALLY_LEVELING_POINTS = 5.0
"""Destinations whose predicted scores are this close to the best level equally well: the nearest wins."""
_SLACK_POINTS = 1.0
"""Combinations that bring the hot node this close to the closest one count as equally close."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one core of load, as used on the source, does to both nodes."""

    source_points: float
    target_points: float

    @classmethod
    def of(cls, source: UsageNode, target: UsageNode) -> Effect:
        return cls(100.0 / source.capacity_cores, 100.0 * (source.speed / target.speed) / target.capacity_cores)

    def after(self, before: Gap, load_cores: float) -> Gap:
        """What a move of this load makes of both scores."""
        return Gap(before.hot - load_cores * self.source_points, before.cold + load_cores * self.target_points)

    def meeting_load(self, difference: float) -> float:
        """Cores after whose move both nodes have the same score."""
        return difference / (self.source_points + self.target_points)


@dataclass(frozen=True, slots=True)
class Refused:
    """An executor (or a node, when `executor` is empty) that a decision passed over, and why."""

    executor: str
    source: str
    target: str | None
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Leveling:
    """The moves from one node to one other, and the scores that they should end in."""

    source: UsageNode
    target: UsageNode
    chosen: Combination
    hot_after: float
    cold_after: float
    locality_delta_ratio: float
    """Mean of the chosen ones' growth of the cost of traffic; the lower, the nearer."""


@dataclass(frozen=True, slots=True)
class Search:
    """What the search for a hot node's destination goes by."""

    scores: Mapping[str, float]
    terms: Terms
    low_threshold: float
    max_unload_ratio: float
    floor: float
    """No source is to end below this score, unless a single executor takes it there."""
    left: float = 0.0
    """Points of a gap that are not closed, unless a single executor closes them."""
    min_gain: float = 0.0
    """Points by which each move has to narrow the gap."""
    tried: Counter[str] = field(default_factory=Counter)
    """By namespace: executors that were tried on others than the coldest nodes."""

    def best(
        self, source: UsageNode, targets: Iterable[UsageNode], most: int
    ) -> tuple[Leveling | None, tuple[Refused, ...]]:
        """The best leveling by at most `most` moves to one of the coldest `targets`, and what was refused.

        Nothing else may be on its way to the targets in this pass.
        """
        refused: dict[str, Refused] = {each.executor: each for each in unmovable(source)}
        options: list[Leveling] = []
        for place, target in enumerate(self._tried(source, targets)):
            if options and place >= _LOOKED_AT:
                break
            giving = source if place < _LOOKED_AT else self._patiently(source)
            if not giving.executors:
                break
            option, objections = self._towards(giving, target, most)
            for objection in objections:
                refused.setdefault(objection.executor, objection)
            if option is not None:
                options.append(option)
        if not options:
            return None, tuple(refused.values())
        best = _nearest(options)
        return best, tuple(each for name, each in refused.items() if name not in best.chosen.names)

    def _patiently(self, source: UsageNode) -> UsageNode:
        """The source with those of its movable executors that may be tried once more."""
        left = tuple(executor for executor, _ in movable(source) if _may_try(executor.name, self.tried))
        return replace(source, executors=left)

    def _tried(self, source: UsageNode, targets: Iterable[UsageNode]) -> Iterator[UsageNode]:
        """The coldest `targets`, then those of the others that have room for something of the source."""
        limit = self.scores[source.name] - self.low_threshold
        cold = [node for node in targets if node.name != source.name and self.scores[node.name] <= limit]
        cold.sort(key=lambda node: (self.scores[node.name], node.name))
        leaving = [executor.name for executor, _ in movable(source)]
        return _coldest_first(cold, leaving, self.terms)

    def _towards(self, source: UsageNode, target: UsageNode, most: int) -> tuple[Leveling | None, list[Refused]]:
        effect = Effect.of(source, target)
        before = Gap(self.scores[source.name], self.scores[target.name])
        meeting = effect.meeting_load(before.points)
        items, refused = self._items(source, target, before, meeting)
        wanted = self._wanted(source, items, effect, meeting)
        slack = _SLACK_POINTS / effect.source_points
        chosen, no_room = self._fitting(items, source, target, wanted=wanted, most=most, slack=slack)
        # None levels the two or stops short of it: of those that go beyond, the least does.
        chosen = chosen if chosen.items else _lightest(items, above=meeting)
        if not chosen.items:
            return None, [*refused, *no_room]
        after = effect.after(before, chosen.load)
        leveling = Leveling(source, target, chosen, after.hot, after.cold, self._dearer(chosen, target))
        return leveling, [*refused, *no_room]

    def _dearer(self, chosen: Combination, target: UsageNode) -> float:
        ratios = [self.terms.locality_delta_ratio(name, target.name) for name in chosen.names]
        # A node that is equally near up to rounding counts as equally near.
        return round(fmean(ratios), 9)

    def _wanted(self, source: UsageNode, items: list[Item], effect: Effect, meeting: float) -> float:
        """Cores that are to leave: half of what lies between the two, but no more than the source has to spare."""
        half = meeting * min(1.0, 2.0 * self.max_unload_ratio)
        surplus = (self.scores[source.name] - self.floor) / effect.source_points
        spare = min(surplus, meeting - effect.meeting_load(self.left))
        lightest = min((item.load for item in items), default=0.0)
        return min(half, max(spare, lightest))

    def _items(
        self, source: UsageNode, target: UsageNode, before: Gap, meeting: float
    ) -> tuple[list[Item], list[Refused]]:
        items, refused = [], []
        effect = Effect.of(source, target)
        for executor, load in movable(source):
            after = effect.after(before, load)
            if before.overshoots(after):
                detail = f"its {load:.2f} cores would make {target.name} the hotter one; {meeting:.2f} would level them"
                refused.append(Refused(executor.name, source.name, target.name, Reason.OVERSHOOT, detail))
                continue
            # Such an executor fits always. It must not be chosen in place of one that levels the two.
            gain = before.narrowed(after)
            if gain < self.min_gain:
                detail = f"the gap to {target.name} would narrow by {gain:.1f} points, minGain is {self.min_gain:g}"
                refused.append(Refused(executor.name, source.name, target.name, Reason.MIN_GAIN, detail))
                continue
            reason = self.terms.refusal(executor.name, target.name, ())
            if reason is not None:
                refused.append(Refused(executor.name, source.name, target.name, reason))
                continue
            items.append(Item(executor.name, load, self.terms.cost(executor.name, target.name)))
        return items, refused

    def _fitting(
        self, items: list[Item], source: UsageNode, target: UsageNode, *, wanted: float, most: int, slack: float
    ) -> tuple[Combination, list[Refused]]:
        """The closest combination that `target` takes as a whole."""
        left = list(items)
        refused: list[Refused] = []
        while True:
            chosen = closest(left, wanted=wanted, most=most, slack=slack)
            objection = self._first_objection(chosen, target)
            if objection is None:
                return chosen, refused
            name, reason = objection
            refused.append(Refused(name, source.name, target.name, reason))
            left = [item for item in left if item.name != name]

    def _first_objection(self, chosen: Combination, target: UsageNode) -> tuple[str, Reason] | None:
        for index, name in enumerate(chosen.names):
            reason = self.terms.refusal(name, target.name, chosen.names[:index])
            if reason is not None:
                return name, reason
        return None


def _may_try(executor: str, tried: Counter[str]) -> bool:
    """Whether its namespace may try once more, which is counted."""
    namespace = executor.partition("/")[0]
    tried[namespace] += 1
    return tried[namespace] <= _MOST_TRIED


def _coldest_first(cold: Sequence[UsageNode], executors: Sequence[str], terms: Terms) -> Iterator[UsageNode]:
    """`cold`: the coldest node first. Beyond the first `_LOOKED_AT`, only nodes that have room and are near enough."""
    yield from cold[:_LOOKED_AT]
    for node in cold[_LOOKED_AT:]:
        if any(terms.is_near(each, node.name) and terms.takes(each, node.name) for each in executors):
            yield node


def _lightest(items: Iterable[Item], *, above: float) -> Combination:
    heavy = [item for item in items if item.load > above]
    least = min(heavy, key=lambda item: (item.load, item.cost, item.name), default=None)
    return Combination() if least is None else Combination().plus(least)


def _nearest(options: list[Leveling]) -> Leveling:
    """Of those after which the hotter node is as cool as any, and then fill the cold one as little, the nearest.

    What leaves costs the same state and warmth wherever it goes.
    """
    coolest = min(map(_peak, options)) + _EQUALLY_LEVELING_POINTS
    options = [option for option in options if _peak(option) <= coolest]
    coldest = min(option.cold_after for option in options) + _EQUALLY_LEVELING_POINTS
    options = [option for option in options if option.cold_after <= coldest]
    return min(options, key=lambda each: (each.locality_delta_ratio, each.cold_after, each.hot_after, each.target.name))


def _peak(leveling: Leveling) -> float:
    return max(leveling.hot_after, leveling.cold_after)


def movable(node: UsageNode) -> Iterator[tuple[UsageExecutor, float]]:
    """Executors that may leave, with their load; idle ones would change nothing."""
    for executor in node.executors:
        if executor.refusal is None and executor.load_cores is not None and executor.load_cores > 0:
            yield executor, executor.load_cores


def unmovable(node: UsageNode) -> Iterator[Refused]:
    for executor in node.executors:
        if executor.refusal is not None:
            yield Refused(executor.name, node.name, None, executor.refusal)
        elif executor.load_cores is None:
            yield Refused(executor.name, node.name, None, Reason.UNKNOWN_LOAD, "its use of CPU is not known")
        elif executor.load_cores <= 0:
            yield Refused(executor.name, node.name, None, Reason.NOTHING_TO_GAIN, "it uses no CPU")


# Destinations and predictions of suggestions.
#
# Threshold-, Overload- and UniformLoadShedder name executors but no destinations: each executor gets the coldest node
# that can take it, or the suggestion is refused. For every strategy, a prediction includes only the earlier suggestions
# that will be followed.

Ruling = Callable[[Suggestion], tuple[Reason, str] | None]
"""Asked once about each suggestion that could be followed, in order: why it will not be; None = it will."""


def _followed(suggestion: Suggestion) -> None:
    """The default ruling."""
    del suggestion


def completed(
    suggestions: Iterable[Suggestion], pool: UsagePool, terms: Terms, *, ruling: Ruling = _followed
) -> tuple[tuple[Suggestion, ...], tuple[Refused, ...]]:
    """The suggestions that will be followed, in order, each with a target and the scores predicted after it.

    Each counts on those before it that will be followed, and on no other. A target that the strategy named is
    replaced only if it can't take the executor; no target is to end hotter than its source, so what a swap would bring
    back stays where it is.
    """
    completion = _Completion(
        nodes={node.name: node for node in pool.nodes},
        executors={executor.name: executor for node in pool.nodes for executor in node.executors},
        scores={node.name: node.score for node in pool.nodes},
        terms=terms,
        ruling=ruling,
    )
    made: list[Suggestion] = []
    refused: list[Refused] = []
    for suggestion in suggestions:
        found = completion.of(suggestion)
        if isinstance(found, Suggestion):
            made.append(found)
        else:
            refused.append(found)
    return tuple(made), tuple(refused)


@dataclass(slots=True)
class _Completion:
    nodes: Mapping[str, UsageNode]
    executors: Mapping[str, UsageExecutor]
    scores: dict[str, float]
    terms: Terms
    ruling: Ruling
    arriving: dict[str, tuple[str, ...]] = field(default_factory=dict)
    tried: Counter[str] = field(default_factory=Counter)
    """As in `Search`."""

    def of(self, suggestion: Suggestion) -> Suggestion | Refused:
        """The suggestion with everything filled in and its effect noted, or why it is not followed."""
        name, source = suggestion.executor, suggestion.source
        executor = self.executors.get(name)
        if executor is None or executor.load_cores is None:
            return Refused(name, source, suggestion.target, Reason.UNKNOWN_LOAD, "its use of CPU is not known")
        if executor.refusal is not None:
            return Refused(name, source, suggestion.target, executor.refusal)
        refused: Refused | None = None
        for target in self._targets(suggestion):
            before = Gap(self.scores[source], self.scores[target.name])
            after = Effect.of(self.nodes[source], target).after(before, executor.load_cores)
            found = self._objection(name, target, before, after)
            if found is None:
                return self._ruled(self._filled(suggestion, target, after), target.name, after)
            # It would have gone to the first one.
            refused = refused or Refused(name, source, target.name, *found)
        return refused or Refused(name, source, suggestion.target, Reason.NO_DESTINATION)

    def _targets(self, suggestion: Suggestion) -> Iterator[UsageNode]:
        named = self.nodes.get(suggestion.target or "")
        if named is not None:
            yield named
        if suggestion.target is not None and (named is None or self.terms.takes(suggestion.executor, named.name)):
            return
        # It names the coldest, which idle pods may have filled.
        others = {named.name if named is not None else "", suggestion.source}
        open_nodes = [node for node in self.nodes.values() if node.receives and node.name not in others]
        coldest = sorted(open_nodes, key=lambda node: (self.scores[node.name], node.name))
        for place, node in enumerate(_coldest_first(coldest, [suggestion.executor], self.terms)):
            if place >= _LOOKED_AT and not _may_try(suggestion.executor, self.tried):
                return
            yield node

    def _objection(self, name: str, target: UsageNode, before: Gap, after: Gap) -> tuple[Reason, str] | None:
        if not target.receives:
            return Reason.NODE_UNAVAILABLE, ""
        if before.overshoots(after):
            return Reason.OVERSHOOT, f"{target.name} would end at {after.cold:.1f}, above {after.hot:.1f}"
        refused = self.terms.refusal(name, target.name, self.arriving.get(target.name, ()))
        return None if refused is None else (refused, "")

    def _filled(self, suggestion: Suggestion, target: UsageNode, after: Gap) -> Suggestion:
        # A strategy may go by smoothed scores; these are what the prediction starts from.
        hot, cold = self.scores[suggestion.source], self.scores[target.name]
        return replace(
            suggestion,
            target=target.name,
            hot_score=hot,
            cold_score=cold,
            difference=hot - cold,
            hot_after=after.hot,
            cold_after=after.cold,
        )

    def _ruled(self, filled: Suggestion, target: str, after: Gap) -> Suggestion | Refused:
        refused = self.ruling(filled)
        if refused is not None:
            return Refused(filled.executor, filled.source, target, *refused)
        self.scores |= {filled.source: after.hot, target: after.cold}
        self.arriving[target] = (*self.arriving.get(target, ()), filled.executor)
        return filled
