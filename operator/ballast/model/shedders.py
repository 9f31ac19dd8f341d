"""Settings of the shedders that go by usage or traffic alone, in seconds, bytes and ratios.

No policy sets what begins with "As Pulsar": with these a shedder does what the real class does, to be compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TrafficSettings:
    low_threshold: float = 15.0
    """Points of score."""
    high_threshold: float = 40.0
    low_hits: int = 8
    high_hits: int = 2
    max_unload_ratio: float = 0.5
    min_rate_per_second: float = 1000.0
    """The rate to unload must exceed this, or the bytes the next one."""
    min_bytes_per_second: float = 1024.0 * 1024.0
    keep_departed: bool = False
    """As Pulsar: a node that left keeps its counts for the day it returns."""
    pair_middle: bool = False
    """As Pulsar: the middle node of an odd number is its own partner (felt only at a low threshold of 0)."""
    forget_in_vain: bool = False
    """As Pulsar: a pair that reached its hits but sheds nothing starts counting again."""


@dataclass(frozen=True, slots=True)
class ThresholdSettings:
    threshold: float = 10.0
    """Points above the mean."""
    history_ratio: float = 0.9
    """Weight of the past in the moving average."""
    min_bytes_per_second: float = 10.0 * 1024 * 1024
    """Less than this isn't worth unloading."""
    lower_boundary: bool = False
    """When no node is too hot but one is too cold, unload the hottest."""
    average_twice: bool = False
    """As Pulsar: the lower-boundary step adds the same values to the averages once more."""
    idle_too: bool = False
    """As Pulsar: while the need isn't met, executors without traffic leave as well."""
    keep_departed: bool = False
    """As Pulsar: a node that left keeps its average for the day it returns."""


@dataclass(frozen=True, slots=True)
class OverloadSettings:
    threshold: float = 85.0
    """Percent."""
    idle_too: bool = False
    """As Pulsar: executors without traffic leave as well, even from a node that has none, which can't help it."""


@dataclass(frozen=True, slots=True)
class UniformSettings:
    rate_difference_percent: float = 50.0
    """Busiest above idlest in records per second, percent of the idlest; 0 = not compared."""
    bytes_ratio: float = 4.0
    """Busiest over idlest in bytes per second; 0 = not compared."""
    max_unload_ratio: float = 0.2
    """Of the difference."""
    min_rate_per_second: float = 1000.0
    min_bytes_per_second: float = 1024.0 * 1024.0
    max_executors: int | None = None
    """At most so many in one pass."""
    whole_numbers: bool = False
    """As Pulsar: the idlest starts at 2³¹−1, the need is cut to such a whole number, what leaves is counted in whole
    units, and executors without traffic always fit."""
    rate_only: bool = False
    """As Pulsar: if records differ too much but no executor can be moved, bytes are not considered."""


@dataclass(frozen=True, slots=True)
class TransferQuirks:
    """What the real class does and ours doesn't, unless told to."""

    ignore_gains: bool = False
    """What a swap brings back doesn't count as gained (there, unless debugging)."""
    unregistered_too: bool = False
    """Nodes with values take part although they are not alive."""
    outdated_too: bool = False
    """Nodes with stale metrics are left out of mean and deviation, but not of the moves."""
    swap_anything: bool = False
    """What comes back in a swap may be anything: moved recently, not to be moved, or gone; and an executor that was
    considered for one swap is not considered for the next."""
    negative_variance: bool = False
    """Rounding may make the variance negative and the deviation no number."""
    idle_moves: bool = False
    """A node without load gives up all its reported executors but one."""


@dataclass(frozen=True, slots=True)
class TransferSettings:
    target_std_ratio: float = 0.25
    """Standard deviation of load ratios that is good enough."""
    hits: int = 3
    """Passes in a row that must have been too far apart before the one that acts."""
    transfer: bool = True
    """Name destinations; without, executors are only unloaded and never swapped."""
    max_nodes: int = 3
    """Hot nodes unloaded in one pass."""
    cooldown_seconds: float = 180.0
    """Values must be this much younger than the last unload of their node."""
    ttl_seconds: float = 1800.0
    """Older values are not used."""
    overload_threshold: float = 85.0
    """Percent."""
    history_ratio: float = 0.9
    """Weight of the past in the moving averages."""
    max_candidates: int = 10
    """Executors of a node to consider, the most loaded first."""
    quirks: TransferQuirks = field(default_factory=TransferQuirks)

    @property
    def underload_ratio(self) -> float:
        return min(0.5, max(0.0, self.target_std_ratio / 2))


ShedderSettings = TrafficSettings | ThresholdSettings | OverloadSettings | UniformSettings | TransferSettings
