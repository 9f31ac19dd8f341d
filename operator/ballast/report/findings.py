"""What is reported of each application, and of the pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ballast.model import MetricsHealth, PlannedMove, Refusal
from ballast.report.exchange import Shares, Volume
from ballast.report.price import Price
from ballast.report.reads import Reads
from ballast.report.slowness import Slowness


class Verdict(StrEnum):
    GAIN = "Gain"
    """Placement would bring shuffle into one zone, or nearer."""
    NOTHING_TO_GAIN = "NothingToGain"
    UNKNOWN = "Unknown"
    """A node without a zone label, or an executor without a place."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one application's shuffle, as its executors are placed."""

    shares: Shares
    zone_bytes_per_second: float | None
    rack_bytes_per_second: float | None
    """Between racks, those of different zones included."""
    dollars_per_month: float | None
    """None: bytes or price unknown."""


@dataclass(frozen=True, slots=True)
class ApplicationReport:
    key: str
    """`namespace/id`."""
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
