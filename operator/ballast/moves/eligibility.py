"""Whether one executor may be moved at all. Checked when a move is suggested and again right before it leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ballast.model import (
    Executor,
    ExecutorUsage,
    MovesPolicy,
    Objection,
    Phase,
    Reason,
    Shuffle,
    Topology,
    Workload,
)
from ballast.moves.loads import Profile, profile_of
from ballast.placement.aside import never_placed

_SPARK_MIN_FAILURES = 3
_MOST_TIMES = 1_000_000.0
"""That tasks count as longer than others: a driver may export any time, and a move's spec takes seven digits."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the eligibility of one executor depends on."""

    executor: Executor
    topology: Topology | None
    live_executors: int
    """Running executors of its component, itself included."""
    load_cores: float | None
    """CPU that would travel with it; None: unknown."""
    evidence: Evidence
    now: float


def objections(case: Case, moves: MovesPolicy) -> Iterator[Objection]:
    """Every rule that forbids to move this executor, the weightiest first."""
    for rule in (_opted_in, _alive, _workload, _graceful, _age, _kueue, _state, _failure_budget, _load, _evidence):
        found = rule(case, moves)
        if found is not None:
            yield found


def drain_objections(case: Case, moves: MovesPolicy) -> Iterator[Objection]:
    """Every rule that forbids to move it off a node that is about to go. What it holds and gains does not matter: on
    that node it would be killed.
    """
    for rule in (_opted_in, _alive, _shuffle, _graceful, _kueue):
        found = rule(case, moves)
        if found is not None:
            yield found


def _opted_in(case: Case, moves: MovesPolicy) -> Objection | None:
    executor = case.executor
    if not executor.enforced:
        return Reason.NOT_OPTED_IN, "its namespace or pod has not opted in"
    if not executor.labeled:
        return Reason.NOT_OPTED_IN, (
            "a selector or its pod template alone chose it, so its replacement might not be held: label its namespace "
            "ballast.dev/gate=enabled, or the executors with ballast.dev/topology"
        )
    return never_placed(executor, moves.scheduler_names)


def _alive(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    if case.executor.phase is not Phase.RUNNING:
        return Reason.NOT_RUNNING, f"it is {case.executor.phase}"
    return None


def _workload(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    component = case.topology.component(case.executor.component) if case.topology else None
    workload = component.workload if component else None
    if workload is None and case.executor.unknown_topology:
        return Reason.UNKNOWN_TOPOLOGY, (
            f"its label ballast.dev/topology names {case.executor.unknown_topology}, and namespace "
            f"{case.executor.namespace} has no SparkTopology of that name within its quota, so its workload is not "
            "known: correct the label, create the SparkTopology, or set the label ballast.dev/workload"
        )
    if workload is None:
        return Reason.UNKNOWN_WORKLOAD, (
            "its component declares no workload; set components[].workload, or without a SparkTopology the executors' "
            "label ballast.dev/workload"
        )
    if workload is Workload.REAL_TIME:
        return Reason.UNSUITED_WORKLOAD, (
            "a RealTime executor is placed and never moved: a query in real-time mode ends when it loses one executor"
        )
    if workload is not Workload.STREAMING:
        return Reason.UNSUITED_WORKLOAD, f"a {workload} executor is placed but not moved in mid-stage"
    return None


def _shuffle(case: Case, moves: MovesPolicy) -> Objection | None:
    component = case.topology.component(case.executor.component) if case.topology else None
    workload = component.workload if component else None
    if component is None or workload is None or workload is Workload.REAL_TIME:
        return _workload(case, moves)
    if workload is Workload.STREAMING or component.shuffle in (Shuffle.MIGRATED, Shuffle.REMOTE):
        return None
    return Reason.SHUFFLE_LOST, (
        f"the shuffle files of a {workload} executor would be lost with it: set "
        "spark.storage.decommission.enabled=true or use a remote shuffle service, and declare that by "
        "components[].shuffle, or by the executors' label ballast.dev/shuffle"
    )


def _graceful(case: Case, moves: MovesPolicy) -> Objection | None:
    if not case.executor.allocator_direct:
        return Reason.UNSUPPORTED_ALLOCATOR, (
            "only Spark's direct allocator, which names executors …-exec-ID, replaces one that is moved by a new one"
        )
    if not case.executor.graceful and not moves.allow_ungraceful:
        return Reason.NO_DECOMMISSIONING, "it was submitted without spark.decommission.enabled=true"
    return None


def _age(case: Case, moves: MovesPolicy) -> Objection | None:
    since = case.executor.running_since
    age = case.now - (since if since is not None else case.now)
    if age < moves.min_executor_age_seconds:
        return Reason.TOO_YOUNG, f"it has run {age:.0f} s of minExecutorAge {moves.min_executor_age_seconds:.0f} s"
    return None


def _kueue(case: Case, moves: MovesPolicy) -> Objection | None:
    if case.executor.kueue_managed and not moves.allow_kueue_managed:
        return Reason.KUEUE_MANAGED, "its replacement would queue again; see moves.allowKueueManaged"
    return None


def _state(case: Case, moves: MovesPolicy) -> Objection | None:
    usage = case.executor.usage
    state = usage.state_bytes if usage else None
    if state is None:
        if moves.allow_unknown_state:
            return None
        return Reason.UNKNOWN_STATE, "the size of its state is not known; see moves.allowUnknownState"
    if state > moves.max_state_bytes:
        return Reason.LARGE_STATE, f"it holds {state:.0f} B of state, above maxStateSize {moves.max_state_bytes:.0f} B"
    return None


def _failure_budget(case: Case, moves: MovesPolicy) -> Objection | None:
    if case.topology is None:
        return None
    limit = max(_SPARK_MIN_FAILURES, 2 * case.live_executors)
    failed, percent = case.topology.failed_executors, moves.max_failure_percent
    if 100 * failed >= percent * limit:
        detail = f"{failed} executors failed, and Spark gives up at {limit}: maxFailurePercent {percent} is reached"
        return Reason.FAILURE_BUDGET, detail
    return None


def _load(case: Case, moves: MovesPolicy) -> Objection | None:
    del moves
    if case.load_cores is None:
        return Reason.UNKNOWN_LOAD, "its use of CPU is not known, so nothing can be predicted"
    return None


def _evidence(case: Case, moves: MovesPolicy) -> Objection | None:
    return case.evidence.objection(moves)


# Whether moving an executor would help: evidence that its node slows it down.
#
# Evidence is any of three: its tasks take longer than those of its application elsewhere; something waits for CPU, by
# the node's pressure or by throttling that its application does not meet elsewhere; the node's score is above
# saturation.

SKEWED_BYTES_RATIO = 1.5
"""Above this ratio to the reference, an executor's tasks are larger, not slower."""
_FASTEST_SHARE = 4
"""The reference is the middle of the fastest one in four."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one executor and its node; None: unknown.

    The reference is the executor of the same application and resource profile that it is compared with.
    """

    slowness: float | None = None
    """Its seconds per task ÷ the reference's."""
    skew: float | None = None
    """Its bytes per task ÷ the reference's."""
    throttling_ratio: float | None = None
    """Share of its CPU periods that were throttled, less the reference's: its own limit goes along with a move."""
    pressure_ratio: float | None = None
    """Share of time in which something on its node waited for CPU."""
    score: float | None = None
    """Measured score of its node, percent."""
    reference: str = "the fastest quarter"
    comparable: bool = True
    """Whether the reference's node is like the destination. Where it is as hot as the executor's own, equal seconds per
    task do not speak against a move to a cold one."""

    def objection(self, moves: MovesPolicy) -> Objection | None:
        """Why a move would not help, or None. Where neither tasks nor pressure are measured there is no objection."""
        slow = self.slow(moves)
        if not slow and self.skew is not None and self.skew > SKEWED_BYTES_RATIO:
            return (
                Reason.DATA_SKEW,
                f"its tasks carry {self.skew:.2f} times the bytes of {self.reference}; a move takes the data along",
            )
        slowness = self.slowness if self.comparable else None
        measured = any(each is not None for each in (slowness, self.throttling_ratio, self.pressure_ratio))
        if slow or not measured or self._waiting(moves) or self._saturated(moves):
            return None
        return Reason.NOTHING_TO_GAIN, "; ".join(self._seen(moves))

    def slow(self, moves: MovesPolicy) -> bool:
        """At similar bytes: tasks that are larger by chance or by their data take longer on any node."""
        return self.slowness is not None and self.slowness >= moves.min_slowness * max(1.0, self.skew or 1.0)

    def _waiting(self, moves: MovesPolicy) -> bool:
        return any(
            ratio is not None and ratio >= moves.min_pressure for ratio in (self.pressure_ratio, self.throttling_ratio)
        )

    def _saturated(self, moves: MovesPolicy) -> bool:
        return self.score is not None and self.score >= moves.saturation_score

    def _seen(self, moves: MovesPolicy) -> Iterator[str]:
        if self.slowness is None:
            yield "seconds per task unknown"
        else:
            larger = f" at {self.skew:.0%} of its bytes" if self.skew is not None and self.skew > 1.0 else ""
            as_hot = "" if self.comparable else ", which is on nodes as hot"
            yield (
                f"{self.slowness:.0%} of the seconds per task of {self.reference}{larger}{as_hot} "
                f"(minSlownessPercent {moves.min_slowness * 100:.0f})"
            )
        least = f"(minPressurePercent {moves.min_pressure * 100:.0f})"
        pressure = "unknown" if self.pressure_ratio is None else f"{self.pressure_ratio:.0%} {least}"
        yield f"node pressure {pressure}"
        if self.throttling_ratio is not None:
            yield f"throttled {self.throttling_ratio:+.0%} against {self.reference} {least}"
        score = (
            "unknown" if self.score is None else f"{self.score:.0f} below saturationScore {moves.saturation_score:g}"
        )
        yield f"score {score}"


@dataclass(frozen=True, slots=True)
class _Timed:
    """An executor whose tasks are measured."""

    uid: str
    node: str | None
    usage: ExecutorUsage
    seconds: float


class TaskTimes:
    """How long tasks take, by executor, and which executor each is compared with.

    `scores`: measured scores by node, percent.
    """

    def __init__(self, executors: Iterable[Executor], scores: Mapping[str, float]) -> None:
        self._scores, self._coldest = scores, min(scores.values(), default=None)
        groups: dict[Profile, list[_Timed]] = defaultdict(list)
        for executor in executors:
            usage = executor.usage
            if executor.phase is Phase.RUNNING and usage is not None and usage.task_seconds is not None:
                groups[profile_of(executor)].append(_Timed(executor.uid, executor.node, usage, usage.task_seconds))
        self._groups = {profile: _Group(members) for profile, members in groups.items() if len(members) > 1}

    @cached_property
    def slownesses(self) -> Mapping[str, float]:
        """By executor uid, against the fastest quarter of its application's executors on other nodes."""
        return {
            member.uid: times
            for group in self._groups.values()
            for member in group.members
            if (reference := group.fastest_quarter(member.node)) is not None
            and (times := _quotient(member.seconds, reference.seconds)) is not None
        }

    def evidence(self, executor: Executor, target: str | None, *, pressure_ratio: float | None) -> Evidence:
        """Evidence for moving it to `target`; None: wherever its application is fastest.

        Compared with its application's executors on `target`, if there are any, or with the fastest quarter of those
        on other nodes than its own.
        """
        group, score = self._groups.get(profile_of(executor)), self._scores.get(executor.node or "")
        there = group.middle(target) if group is not None and target is not None else None
        reference = there if there is not None or group is None else group.fastest_quarter(executor.node)
        if reference is None or executor.usage is None:
            return Evidence(pressure_ratio=pressure_ratio, score=score)
        here, other = executor.usage, reference.usage
        return Evidence(
            slowness=_quotient(here.task_seconds, other.task_seconds),
            skew=_quotient(here.task_bytes, other.task_bytes),
            throttling_ratio=_difference(here.throttled_ratio, other.throttled_ratio),
            pressure_ratio=pressure_ratio,
            score=score,
            reference="the destination's executors" if there is not None else "the fastest quarter",
            comparable=there is not None
            or self._nearer_to(target, than=score, score=self._scores.get(reference.node or "")),
        )

    def _nearer_to(self, target: str | None, *, than: float | None, score: float | None) -> bool:
        """Whether a node's `score` is nearer to the destination's than to the score `than`; so if one is unknown."""
        goal = self._coldest if target is None else self._scores.get(target)
        return goal is None or than is None or score is None or abs(score - goal) <= abs(score - than)


class _Group:
    """The measured executors of one application and resource profile, the fastest first."""

    def __init__(self, members: list[_Timed]) -> None:
        self.members = sorted(members, key=lambda member: (member.seconds, member.uid))
        self._places: dict[str | None, list[int]] = defaultdict(list)
        for place, member in enumerate(self.members):
            self._places[member.node].append(place)

    def middle(self, node: str) -> _Timed | None:
        """The middle one on that node."""
        places = self._places.get(node)
        return self.members[places[(len(places) - 1) // 2]] if places else None

    def fastest_quarter(self, node: str | None) -> _Timed | None:
        """The middle one of the fastest quarter of those that are not on `node`."""
        own = self._places.get(node, ())
        others = len(self.members) - len(own)
        if not others:
            return None
        quarter = -(-others // _FASTEST_SHARE)
        return self.members[_without(own, (quarter - 1) // 2)]


def _without(left_out: Sequence[int], place: int) -> int:
    """The index of the member at `place` when those at the ascending indices `left_out` do not count."""
    for each in left_out:
        if each > place:
            break
        place += 1
    return place


def _quotient(own: float | None, other: float | None) -> float | None:
    return min(own / other, _MOST_TIMES) if own is not None and other is not None and other > 0 else None


def _difference(own: float | None, other: float | None) -> float | None:
    return own - other if own is not None and other is not None else None


def cause(*, slowness: float | None, pressure_ratio: float | None) -> str:
    """What, in addition to the scores, was measured of a move's executor and its node."""
    told = []
    if slowness is not None:
        told.append(f"its tasks take {slowness:.2f} times as long as those of the fastest quarter")
    if pressure_ratio is not None:
        told.append(pressure_words(pressure_ratio))
    return ", ".join(told) or "by the scores alone: there are no task metrics and no pressure metrics"


def pressure_words(pressure_ratio: float) -> str:
    return f"something waits for CPU on its node {pressure_ratio:.0%} of the time"
