"""Nodes in a scenario's file, and what happens to them."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.lists import SET
from ballast.api.meta import Model
from ballast.api.names import LabelValue, ObjectName
from ballast.api.quantity import Quantity
from ballast.api.rule import Rule
from ballast.simulation.scenario_load import Load, Moment, Span

_Places = Annotated[tuple[LabelValue, ...], Field(max_length=1000)]


class Machines(Model):
    """Nodes of one kind."""

    name: ObjectName
    """The node's name; of several nodes the beginning of it, with -0, -1 … behind."""
    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """If absent, one node with just this name."""
    cores: Annotated[float, Field(gt=0, le=100_000)]
    """What executors may use."""
    memory: Quantity = Quantity.parse("256Gi")
    speed: Annotated[float, Field(gt=0, le=100)] = 1.0
    """Work done per second and core, against an ordinary machine."""
    contention: Annotated[float, Field(ge=0, lt=1)] = 0.8
    """How much busy cores slow tasks: each takes 1 / (1 - contention × share of busy cores) times as long.

    By shared caches and memory, hardware threads of one core, and bursts that find no free core. 0: not at all until
    cores are missing. Close to 1: as if the node were one processor that all share.
    """
    zones: _Places = ()
    """Dealt out in turn."""
    racks: _Places = ()
    """Dealt out in turn."""
    neighbor: Load | None = None
    """What else runs there, in cores; nothing if absent."""
    joins: Moment | None = None
    """When they join; there from the beginning if absent."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.count is None else tuple(f"{self.name}-{i}" for i in range(self.count))

    @property
    def joins_later(self) -> bool:
        return self.joins is not None and self.joins.seconds > 0


_Names = Annotated[tuple[ObjectName, ...], Field(min_length=1, max_length=100_000), SET]

_DEEDS = ("fail", "leave", "restart")


class Event(Model):
    """Something that happens to nodes, or to the metrics. Set exactly one of fail, leave, restart and blackout."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="[has(self.fail), has(self.leave), has(self.restart), has(self.blackout)].filter(x, x).size() == 1",
            message="set exactly one of fail, leave, restart (nodes or groups of nodes) and blackout (of metrics)",
            holds=lambda event: sum(bool(getattr(event, deed)) for deed in (*_DEEDS, "blackout")) == 1,
        ),
        Rule(
            cel="!has(self.restart) || has(self.lasts)",
            message="say with lasts how long each node is away while it restarts",
            holds=lambda event: not event.restart or event.lasts is not None,
            path=".lasts",
        ),
        Rule(
            cel="!has(self.blackout) || has(self.lasts)",
            message="say with lasts how long there are no metrics",
            holds=lambda event: not event.blackout or event.lasts is not None,
            path=".lasts",
        ),
        Rule(
            cel="!has(self.notice) || has(self.leave) || has(self.restart)",
            message="only leave and restart are announced: remove notice",
            holds=lambda event: event.notice is None or bool(event.leave or event.restart),
            path=".notice",
        ),
        Rule(
            cel="!has(self.every) || has(self.restart)",
            message="only restart goes from node to node: remove every, or write one event for each node",
            holds=lambda event: event.every is None or bool(event.restart),
            path=".every",
        ),
    )

    at: Moment
    fail: _Names | None = None
    """Nodes that die without warning."""
    leave: _Names | None = None
    """Nodes that are drained: no new executors at once, gone after the notice."""
    restart: _Names | None = None
    """Nodes that are drained and come back, one after the other."""
    blackout: bool = False
    """Prometheus does not answer."""
    notice: Moment | None = None
    """From the warning until a node is gone (leave, restart); 30s if absent."""
    lasts: Span | None = None
    """How long they are away; for good if absent."""
    every: Span | None = None
    """From one node's restart to the next one's; 5m if absent."""

    @property
    def notice_seconds(self) -> float:
        return 30.0 if self.notice is None else self.notice.seconds

    @property
    def every_seconds(self) -> float:
        return 300.0 if self.every is None else self.every.seconds

    @property
    def subjects(self) -> tuple[str, ...]:
        """Nodes or groups of nodes."""
        return self.fail or self.leave or self.restart or ()
