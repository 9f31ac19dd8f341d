"""What is reported of each application, of nodes that make applications slow, and of the pool."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from ballast.model import Executor, MetricsHealth, Phase, PlannedMove, Policy, Refusal, Snapshot
from ballast.moves.eligibility import SKEWED_BYTES_RATIO, TaskTimes
from ballast.moves.score import measured
from ballast.report.exchange import Reads, Shares, Volume
from ballast.report.price import Price
from ballast.report.traffic import Basis


class Verdict(StrEnum):
    GAIN = "Gain"
    """Placement would bring shuffle into one zone, or nearer."""
    NOTHING_TO_GAIN = "NothingToGain"
    UNKNOWN = "Unknown"
    """A node without a zone label, or an executor without a place."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one application, as its executors are placed; bytes and money are those of its shuffle."""

    shares: Shares
    """Of all its traffic, reads from declared brokers included."""
    zone_bytes_per_second: float | None
    rack_bytes_per_second: float | None
    """Between racks, those of different zones included."""
    dollars_per_month: float | None
    """None: bytes or price unknown."""


@dataclass(frozen=True, slots=True)
class ApplicationReport:
    key: str
    """`namespace/id`."""
    name: str
    """`namespace/name`, where Spark names it."""
    basis: Basis
    """What its traffic is weighed by."""
    executors: int
    zones: Mapping[str, int]
    """Executors by zone; the key is empty where a node has no zone label."""
    racks: Mapping[str, int]
    placed_zones: Mapping[str, int]
    """Executors by zone as Ballast would have placed them."""
    volume: Volume
    shuffle_bytes_per_second: float | None
    before: Traffic
    after: Traffic
    """As Ballast would have placed it, together with all others."""
    relocated: int
    unplaced: int
    verdict: Verdict
    why: str
    reads: Reads | None = None
    remote_shuffle: bool = False

    @property
    def saved_bytes_per_second(self) -> float | None:
        before, after = self.before.zone_bytes_per_second, self.after.zone_bytes_per_second
        return None if before is None or after is None else before - after

    @property
    def dollars_unknown(self) -> bool:
        """Whether it shuffles between executors, and nothing tells how much."""
        return self.before.dollars_per_month is None and not self.remote_shuffle

    @property
    def saved_dollars_per_month(self) -> float | None:
        before, after = self.before.dollars_per_month, self.after.dollars_per_month
        return None if before is None or after is None else before - after


@dataclass(frozen=True, slots=True)
class PoolReport:
    taken_at: float
    nodes: int
    zones: int
    applications: tuple[ApplicationReport, ...]
    """Those that save most first."""
    price: Price | None
    metrics: MetricsHealth
    slowness: Slowness
    moves: tuple[PlannedMove, ...]
    """What a pass would recommend if the gaps between nodes stay."""
    refusals: tuple[Refusal, ...]
    assumed_broker_zones: tuple[str, ...] = ()
    """Of brokers that no topology declares."""

    def of_namespace(self, namespace: str) -> PoolReport:
        """With the applications and moves of one namespace, which were placed together with all others."""
        prefix = f"{namespace}/"
        return replace(
            self,
            applications=tuple(each for each in self.applications if each.key.startswith(prefix)),
            moves=tuple(each for each in self.moves if each.executor.startswith(prefix)),
        )

    @property
    def verdicts(self) -> Mapping[Verdict, int]:
        return Counter(each.verdict for each in self.applications)

    @property
    def priced(self) -> tuple[ApplicationReport, ...]:
        return tuple(each for each in self.applications if each.saved_dollars_per_month is not None)

    @property
    def dollars_per_month(self) -> float:
        """What the shuffle of the priced applications costs now."""
        return sum(each.before.dollars_per_month or 0.0 for each in self.priced)

    @property
    def zone_bytes_per_second(self) -> float | None:
        """Between zones now; None if the bytes of no application are known."""
        known = [each.before.zone_bytes_per_second for each in self.applications]
        found = [each for each in known if each is not None]
        return sum(found) if found else None

    @property
    def saved_dollars_per_month(self) -> float:
        """Net: placing all of them together may bring one of them farther apart."""
        return sum(each.saved_dollars_per_month or 0.0 for each in self.priced)


@dataclass(frozen=True, slots=True)
class SlowNode:
    node: str
    slowness: float
    """Median of its slow executors: seconds per task ÷ those of their application's fastest quarter, at equal bytes."""
    executors: int
    """How many are slow."""
    score: float | None
    pressure_ratio: float | None


@dataclass(frozen=True, slots=True)
class Skewed:
    """An executor whose tasks take longer because they have more bytes: a move would take the data along."""

    executor: str
    node: str
    slowness: float
    bytes_ratio: float


@dataclass(frozen=True, slots=True)
class Slowness:
    measured_executors: int
    nodes: tuple[SlowNode, ...]
    """The slowest first."""
    skewed: tuple[Skewed, ...]


def slowness(snapshot: Snapshot, policy: Policy) -> Slowness:
    """By the rule that moves go by: slow at equal bytes is `minSlownessPercent` times the fastest quarter's seconds."""
    scores = measured(snapshot, policy).by_node
    nodes = {node.name: node for node in snapshot.nodes}
    times = TaskTimes(snapshot.executors, scores)
    slow: dict[str, list[float]] = defaultdict(list)
    skewed, known = [], 0
    for executor in snapshot.executors:
        if executor.phase is not Phase.RUNNING or executor.node not in nodes:
            continue
        found = times.evidence(executor, None, pressure_ratio=None)
        if found.slowness is None:
            continue
        known += 1
        ratio = found.skew if found.skew is not None else 1.0
        if found.slow(policy.moves):
            slow[executor.node].append(found.slowness / max(1.0, ratio))
        elif ratio > SKEWED_BYTES_RATIO and found.slowness >= policy.moves.min_slowness:
            skewed.append(Skewed(executor.key, executor.node, found.slowness, ratio))
    listed = []
    for name, values in slow.items():
        usage = nodes[name].usage
        pressure = usage.pressure_ratio if usage else None
        listed.append(SlowNode(name, median(values), len(values), scores.get(name), pressure))
    return Slowness(
        known,
        tuple(sorted(listed, key=lambda each: (-each.slowness, each.node))),
        tuple(sorted(skewed, key=lambda each: (-each.slowness, each.executor))),
    )


def running(executors: Sequence[Executor]) -> list[Executor]:
    """Those that are bound and run, or will."""
    return [each for each in executors if each.node is not None and each.phase in (Phase.RUNNING, Phase.PENDING)]
