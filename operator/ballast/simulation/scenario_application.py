"""Spark applications in a scenario's file, and what talks to what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.duration import Duration
from ballast.api.meta import Model
from ballast.api.names import DnsLabel, ObjectName, Ratio
from ballast.api.quantity import Quantity
from ballast.api.rule import Rule
from ballast.api.topology import Grouping, Workload
from ballast.simulation.scenario_load import Load, Moment

_Homes = Annotated[dict[ObjectName, Annotated[int, Field(ge=0)]], Field(min_length=1)]


class Requests(Model):
    """What each executor asks Kubernetes for."""

    cpu: Quantity = Quantity.parse(1)
    memory: Quantity = Quantity.parse("2Gi")


class Application(Model):
    """One Spark application, or several alike."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="!has(self.stops) || duration(self.starts) < duration(self.stops)",
            message="it would never run: stops must be later than starts (0s if absent)",
            holds=lambda application: application.stops is None or application.starts < application.stops,
            path=".stops",
        ),
    )

    name: DnsLabel
    """Also the name of its component; of several applications the beginning of it, with -0, -1 … behind."""
    copies: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """How many applications alike; if absent, one with just this name."""
    topology: DnsLabel | None = None
    """The topology it is a component of; if absent, one of its own."""
    workload: Workload = Workload.STREAMING
    """Only Streaming applications are moved."""
    executors: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Of each application."""
    cores: Annotated[float, Field(gt=0, le=1024)] = 1.0
    """Tasks at once. An executor takes over the work of missing ones up to this (or its own, if that is more)."""
    requests: Requests = Field(default_factory=Requests)
    load: Load
    """Work of each executor. It stays with the executor's replacement."""
    records_per_core: Annotated[float, Field(ge=0)] = 10_000.0
    """Records per second that a core's work reads and writes; what strategies that look at rates go by."""
    bytes_per_core: Quantity = Quantity.parse("20M")
    """Bytes per second that a core's work receives and sends."""
    state: Quantity = Quantity.parse(0)
    """Bytes of state that each executor holds."""
    task_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None
    """Mean seconds of a task on an ordinary idle machine; if absent, no task metrics are there to be judged by."""
    exchange: Quantity | None = None
    """Bytes per second among its own executors."""
    runs_on: _Homes | tuple[ObjectName, ...] = ()
    """Where executors run when the run begins: how many on which node, or nodes over which all are dealt in turn.

    The rest is placed by the policy, and so are all if this is absent.
    """
    starts: Moment = Duration.parse("0s")
    stops: Moment | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.copies is None else tuple(f"{self.name}-{i}" for i in range(self.copies))

    def homes(self, groups: Mapping[str, Sequence[str]]) -> Counter[str]:
        """How many executors run on which node when the run begins. `groups`: nodes by the name of their group."""
        if not isinstance(self.runs_on, tuple):
            return Counter(dict(self.runs_on))
        nodes = [name for subject in self.runs_on for name in groups.get(subject, (subject,))]
        return Counter(nodes[i % len(nodes)] for i in range(self.total)) if nodes else Counter()

    @property
    def total(self) -> int:
        """Executors of all copies."""
        return self.executors * (self.copies or 1)


class Stream(Model):
    """What one application sends another. Both must be of one topology."""

    from_: DnsLabel
    """An application, or an external end."""
    to: DnsLabel
    bytes_per_second: Quantity | None = None
    grouping: Grouping = Grouping.SHUFFLE


class External(Model):
    """Something fixed that the applications of one topology talk to."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=(
                "self.zones.map(zone, self.zones[zone]).sum() > 0.99"
                " && self.zones.map(zone, self.zones[zone]).sum() < 1.01"
            ),
            message="the zones' shares must add up to 1",
            holds=lambda external: 0.99 < sum(external.zones.values()) < 1.01,
            path=".zones",
        ),
    )

    name: DnsLabel
    topology: DnsLabel
    zones: Annotated[dict[str, Ratio], Field(min_length=1)]
    """The share of it in each zone, adding up to 1."""
