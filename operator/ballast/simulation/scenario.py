"""A scenario: a pool of nodes, what runs on it, and what happens; written in YAML, read with clear errors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model, Resource, nested
from ballast.api.rule import Rule, map_by
from ballast.api.version import API_VERSION
from ballast.errors import InvalidField, InvalidResource
from ballast.files import documents
from ballast.simulation.scenario_models import Application, Event, External, Machines, Moment, Span, Stream

_REMEDY = "write a scenario as in examples/scenarios"
_ROUNDING = 1e-6
_GIB = float(1 << 30)


class Metrics(Model):
    """How the pool is measured."""

    scrape_interval: Annotated[Duration, Between("1s", "10m")] = Duration.parse("15s")
    """Also the simulation's own step."""
    window: Moment | None = None
    """What figures are means over; if absent, what the policy says. 0s: the newest sample alone."""
    delay: Moment = Duration.parse("0s")
    """From a sample until a query sees it."""
    pressure: bool = False
    """Whether it is measured how much of the time something on a node waits for CPU."""
    loss: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of scrapes that fail; a node's and its executors' fail together."""


class Moving(Model):
    """How long executors take, and how often something goes wrong."""

    leave: Moment = Duration.parse("5s")
    """From the order until the executor is gone."""
    replace: Moment = Duration.parse("5s")
    """From then until Spark has asked for another one."""
    start: Moment = Duration.parse("20s")
    """From being bound to a node until it runs: image pull and JVM."""
    detect: Moment = Duration.parse("40s")
    """From the death of a node until its executors are given up."""
    stuck: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of moves whose executor does not leave in time."""
    lost: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of moves whose replacement does not come to run."""


class ScenarioSpec(Model):
    """A pool, its load, and what happens."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="self.policy.all(key, key != 'nodeSelector')",
            message="policy has no nodeSelector here: the scenario's nodes are the pool",
            holds=lambda spec: "nodeSelector" not in spec.policy,
            path=".policy",
        ),
    )

    description: Annotated[str, Field(max_length=2000)] = ""
    duration: Span
    seed: Annotated[int, Field(ge=0)] = 1
    """Of all chances, unless another one is given when it is run."""
    level_points: Annotated[float, Field(gt=0, le=100)] = 15.0
    """Points up to which a gap counts as level, and by which a node must stray from the mean to count as wrong."""
    nodes: Annotated[tuple[Machines, ...], Field(min_length=1, max_length=10_000), map_by("name")]
    applications: Annotated[tuple[Application, ...], Field(max_length=100_000), map_by("name")] = ()
    streams: Annotated[tuple[Stream, ...], Field(max_length=100_000)] = ()
    externals: Annotated[tuple[External, ...], Field(max_length=10_000)] = ()
    events: Annotated[tuple[Event, ...], Field(max_length=100_000)] = ()
    metrics: Metrics = nested(Metrics)
    moving: Moving = nested(Moving)
    policy: dict[str, Any] = Field(default_factory=dict)
    """Fields of a BalancingPolicy's spec that differ from the defaults, for runs that name a strategy only."""


class Scenario(Resource):
    """A pool of nodes, what runs on it, and what happens."""

    api_version: Literal["ballast.dev/v1alpha1"] = API_VERSION
    kind: Literal["Scenario"] = "Scenario"
    spec: ScenarioSpec

    @property
    def name(self) -> str:
        return self.metadata.name

    @classmethod
    def read(cls, path: Path, *, option: str = "SCENARIO") -> Self:
        """Raises InvalidField, which names the option and the file, or InvalidResource for what the file holds."""
        found = documents(path, option=option, remedy=_REMEDY)
        if len(found) > 1:
            raise InvalidField(option, str(path), f"{len(found)} documents in one file; give each its own file")
        if not found or not isinstance(found[0], dict) or found[0].get("kind") != "Scenario":
            raise InvalidField(option, str(path), f"no Scenario in this file; {_REMEDY}")
        return cls.of_file(found[0], path)

    @classmethod
    def parse(cls, raw: Any) -> Self:
        """As above; what refers to something that is not there is refused as well."""
        found = super().parse(raw)
        problems = list(_dangling(found.spec)) or list(_overfull(found.spec))
        if problems:
            raise InvalidResource(f"Scenario {found.name}", problems)
        return found


def _dangling(spec: ScenarioSpec) -> Iterator[InvalidField]:
    """Names that nothing has, or that two things have."""
    nodes = Counter(name for machines in spec.nodes for name in machines.names)
    for name in (name for name, times in nodes.items() if times > 1):
        yield InvalidField("spec.nodes", name, "two nodes would have this name: rename one group")
    applications = Counter(name for each in spec.applications for name in each.names)
    for name in (name for name, times in applications.items() if times > 1):
        yield InvalidField("spec.applications", name, "two applications would have this name: rename one")
    yield from _unaffected(spec)
    yield from _misplaced(spec)
    yield from _miscounted(spec)
    yield from _unconnected(spec)


def _unaffected(spec: ScenarioSpec) -> Iterator[InvalidField]:
    """What is to happen to nodes that are not there, or not yet."""
    joining = {name: machines.joins for machines in spec.nodes for name in (machines.name, *machines.names)}
    for index, event in enumerate(spec.events):
        for subject in event.subjects:
            joins = joining.get(subject)
            if subject not in joining:
                groups = {machines.name for machines in spec.nodes}
                yield InvalidField(f"spec.events[{index}]", subject, f"no such node; there are {_some(groups)}")
            elif joins is not None and event.at <= joins and joins.seconds > 0:
                remedy = f"it joins at {joins} only: let this happen to it later"
                yield InvalidField(f"spec.events[{index}]", subject, remedy)


def _unconnected(spec: ScenarioSpec) -> Iterator[InvalidField]:
    """External ends and streams that would be part of no topology."""
    topology = {name: each.topology or name for each in spec.applications for name in each.names}
    known = set(topology.values())
    for index, external in enumerate(spec.externals):
        field = f"spec.externals[{index}]"
        if external.name in topology:
            yield InvalidField(f"{field}.name", external.name, "something else has this name: rename one")
        if external.topology not in known:
            remedy = f"no application is of this topology; there are {_some(known)}"
            yield InvalidField(f"{field}.topology", external.topology, remedy)
        topology[external.name] = external.topology
    for index, stream in enumerate(spec.streams):
        field, ends = f"spec.streams[{index}]", (stream.from_, stream.to)
        missing = [end for end in ends if end not in topology]
        for end in missing:
            yield InvalidField(field, end, f"no such application; there are {_some(set(topology))}")
        if not missing and topology[stream.from_] != topology[stream.to]:
            remedy = "both ends must be of one topology: give their applications the same topology"
            yield InvalidField(field, " → ".join(ends), remedy)


def _misplaced(spec: ScenarioSpec) -> Iterator[InvalidField]:
    """Executors that are to run where no node is when the run begins."""
    nodes = {name for machines in spec.nodes for name in machines.names}
    groups = {machines.name for machines in spec.nodes}
    later = {name for machines in spec.nodes if machines.joins_later for name in (machines.name, *machines.names)}
    for index, application in enumerate(spec.applications):
        field, dealt = f"spec.applications[{index}].runsOn", isinstance(application.runs_on, tuple)
        known = nodes | groups if dealt else nodes
        for name in application.runs_on:
            if name not in known:
                yield InvalidField(field, name, f"no such node; there are {_some(known)}")
            elif name in later:
                yield InvalidField(field, name, "it joins later: name nodes that are there when the run begins")


def _miscounted(spec: ScenarioSpec) -> Iterator[InvalidField]:
    """More executors on nodes when the run begins than there are then."""
    for index, application in enumerate(spec.applications):
        field, starts = f"spec.applications[{index}].runsOn", application.starts
        placed = 0 if isinstance(application.runs_on, tuple) else sum(application.runs_on.values())
        if placed > application.total:
            yield InvalidField(field, placed, f"place at most the {application.total} executors that there are")
        if application.runs_on and starts.seconds > 0:
            yield InvalidField(field, starts.text, "what starts later is placed by the policy: remove runsOn")


def _overfull(spec: ScenarioSpec) -> Iterator[InvalidField]:
    """Nodes that hold more when the run begins than they have."""
    groups = {machines.name: machines.names for machines in spec.nodes}
    cpu: defaultdict[str, float] = defaultdict(float)
    memory: defaultdict[str, float] = defaultdict(float)
    for application in spec.applications:
        for name, count in application.homes(groups).items():
            cpu[name] += count * float(application.requests.cpu)
            memory[name] += count * float(application.requests.memory)
    for machines in spec.nodes:
        for name in machines.names:
            if cpu[name] > machines.cores + _ROUNDING:
                remedy = f"its executors request {cpu[name]:g} cores: place fewer there, or lower requests.cpu"
                yield InvalidField("spec.nodes", name, remedy)
            if memory[name] > float(machines.memory):
                remedy = f"its executors request {memory[name] / _GIB:g} GiB: place fewer there, or raise memory"
                yield InvalidField("spec.nodes", name, remedy)


def _some(names: set[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:10]) + (", …" if len(shown) > 10 else "")
