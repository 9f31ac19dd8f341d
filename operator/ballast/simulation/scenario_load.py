"""Load in a scenario's file: an amount of work, and how it varies over time."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.lists import ATOMIC
from ballast.api.meta import Model
from ballast.api.rule import Rule

Span = Annotated[Duration, Between("1s", "8760h")]
"""A length of time above zero."""
Moment = Annotated[Duration, Between("0s", "8760h")]
"""A time, counted from the beginning of the run."""
_Factor = Annotated[float, Field(ge=0, le=1000)]


class _Vary(Model):
    """A factor on the load that changes over time."""

    shared: bool = False
    """Whether all executors of one application (or all nodes of one group) see the same chances, or each its own."""


class Diurnal(_Vary):
    """Rises and falls once a period, like a sine: 1 + amplitude at the peak, 1 − amplitude half a period later."""

    kind: Literal["Diurnal"]
    amplitude: Annotated[float, Field(ge=0, le=1)]
    """From 0 to 1."""
    period: Span = Duration.parse("24h")
    peak: Moment = Duration.parse("14h")


class Bursts(_Vary):
    """Now and then the load is multiplied for a while."""

    kind: Literal["Bursts"]
    per_hour: Annotated[float, Field(gt=0, le=3600)]
    """How many begin in an hour, in the mean."""
    factor: _Factor
    lasts: Span


class RandomWalk(_Vary):
    """Wanders, in steps that are as often up as down, and turns at its bounds."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.low < self.high",
            message="low (0.5 if absent) must be below high (1.5 if absent): there is nowhere to wander",
            holds=lambda walk: walk.low < walk.high,
        ),
    )

    kind: Literal["RandomWalk"]
    step: Annotated[float, Field(gt=0, le=10)]
    """Standard deviation of a minute's change."""
    low: _Factor = 0.5
    high: _Factor = 1.5


class Noise(_Vary):
    """Strays about 1, alike over some minutes."""

    kind: Literal["Noise"]
    deviation: Annotated[float, Field(gt=0, le=10)]
    """Standard deviation."""
    memory: Moment = Duration.parse("5m")
    """After this time a third of a deviation is left; 0s: every sample is new."""


class HeavyTail(_Vary):
    """Mostly small, rarely very large (Pareto with mean 1), drawn again at regular times."""

    kind: Literal["HeavyTail"]
    alpha: Annotated[float, Field(gt=1, le=20)]
    """The smaller, the heavier the tail; above 1."""
    renewed: Span | None = None
    """If absent, drawn once: some executors are simply larger than others."""
    most: _Factor = 20
    """Larger draws are cut to this."""


class Surge(_Vary):
    """Once, the load is multiplied: a flash crowd."""

    kind: Literal["Surge"]
    at: Moment
    factor: _Factor
    rise: Moment = Duration.parse("1m")
    lasts: Span
    """At its full height, after the rise."""
    fall: Moment = Duration.parse("5m")


class Series(_Vary):
    """Recorded values, one after the other; the last one stays."""

    kind: Literal["Series"]
    values: Annotated[tuple[_Factor, ...], Field(min_length=1, max_length=1_000_000), ATOMIC]
    every: Span
    """From one value to the next."""
    repeat: bool = False
    """Begin again at the end."""


Vary = Annotated[
    Diurnal | Bursts | RandomWalk | Noise | HeavyTail | Surge | Series,
    Field(discriminator="kind"),
]

_Cores = Annotated[float, Field(ge=0, le=100_000)]


class Load(Model):
    """Work per executor (or node), in cores of an ordinary machine."""

    cores: _Cores | Annotated[tuple[_Cores, ...], Field(min_length=1, max_length=100_000), ATOMIC]
    """One figure, or several that are dealt out in turn."""
    vary: Annotated[tuple[Vary, ...], Field(max_length=16), ATOMIC] = ()
    """Factors over time; all are multiplied."""

    @property
    def dealt(self) -> tuple[float, ...]:
        return self.cores if isinstance(self.cores, tuple) else (self.cores,)
