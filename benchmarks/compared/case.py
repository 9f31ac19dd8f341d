"""The sets of applications that every peer has to place, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from benchmarks.compared.pool import FilledPool

MEBIBYTE = float(1 << 20)
BROKERS = "kafka"
"""The component of the brokers, their label `app` and their namespace."""


@dataclass(frozen=True, slots=True)
class Step:
    """What happens at once; the next step waits until everything that can be bound is."""

    starts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By application, the numbers of the executors that are asked for."""
    ends: Mapping[str, Sequence[int]] = field(default_factory=dict)
    measured: str = ""
    """The row of the table that the state after this step belongs to; none if empty."""


@dataclass(frozen=True, slots=True)
class Flow:
    source: str
    target: str
    bytes_per_second: float
    """An application that sends to itself shuffles."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    steps: tuple[Step, ...]
    flows: tuple[Flow, ...] = ()
    """What applications and brokers send one another; each application shuffles and does nothing else if empty."""
    brokers: tuple[str, ...] = ()
    """Nodes with a broker on them."""

    @property
    def changes(self) -> bool:
        """Whether an application grows or shrinks after its start."""
        started = [name for step in self.steps for name in step.starts]
        return any(step.ends for step in self.steps) or len(started) != len(set(started))

    @property
    def sizes(self) -> dict[str, int]:
        """The most executors that each application asks for."""
        found: dict[str, int] = {}
        for step in self.steps:
            for name, numbers in step.starts.items():
                found[name] = max(found.get(name, 0), max(numbers) + 1)
        return found


CASES = ("one", "many", "near", "apart", "rackless", "zoneless", "elastic")
"""Their names."""


def cases(pool: FilledPool) -> list[Case]:
    too_many_for_a_rack = max(45, pool.largest_rack + 1)
    too_many_for_a_zone = pool.largest_zone * 11 // 10
    return [
        Case("one", (Step({"one": range(24)}, measured="(i) one of 24"),)),
        Case("many", tuple(_one_after_another())),
        communicating("near", "(iii) three, brokers in one zone", _brokers(pool, pool.zones[:1])),
        communicating("apart", "(iii) three, brokers in three zones", _brokers(pool, pool.zones[:3])),
        Case("rackless", (Step({"wide": range(too_many_for_a_rack)}, measured="(iv) fits in no rack"),)),
        Case("zoneless", (Step({"huge": range(too_many_for_a_zone)}, measured="(v) fits in no zone"),)),
        Case("elastic", tuple(_growing_and_shrinking(pool.seed))),
    ]


def _one_after_another() -> list[Step]:
    earlier = [Step({f"early-{number}": range(12)}, measured="(ii) ten of 12 in turn") for number in range(10)]
    return [*earlier, Step({"late": range(24)}, measured="(ii) then one of 24")]


def _brokers(pool: FilledPool, zones: Sequence[str]) -> tuple[str, ...]:
    """Nine, dealt out to the zones, in each to its racks in turn."""
    each = 9 // len(zones)
    found: list[str] = []
    for zone in zones:
        by_rack: dict[str, list[str]] = {}
        for name, node in pool.nodes.items():
            if node.zone == zone:
                by_rack.setdefault(node.rack, []).append(name)
        racks = sorted(by_rack.values())
        found += [racks[number % len(racks)][number // len(racks)] for number in range(each)]
    return tuple(found)


def communicating(name: str, row: str, brokers: tuple[str, ...]) -> Case:
    """Kafka → ingest → sessions → report → Kafka."""
    flows = (
        Flow(BROKERS, "ingest", 40 * MEBIBYTE),
        Flow("ingest", "ingest", 10 * MEBIBYTE),
        Flow("ingest", "sessions", 30 * MEBIBYTE),
        Flow("sessions", "sessions", 20 * MEBIBYTE),
        Flow("sessions", "report", 10 * MEBIBYTE),
        Flow("report", "report", 5 * MEBIBYTE),
        Flow("report", BROKERS, 5 * MEBIBYTE),
    )
    start = Step({"ingest": range(12), "sessions": range(12), "report": range(6)}, measured=row)
    return Case(name, (start,), flows, brokers)


def _growing_and_shrinking(seed: int) -> list[Step]:
    """Which executors become idle is chance; a number that has ended does not come again."""
    random = Random(f"idle {seed}")
    row, there, next_number = "(vi) grows and shrinks", list[int](), 0
    steps: list[Step] = []
    for wanted in (8, 24, 36, 10, 30, 6, 24):
        if wanted > len(there):
            new = range(next_number, next_number + wanted - len(there))
            next_number += len(new)
            there += new
            steps.append(Step({"elastic": new}, measured=row))
        else:
            kept = sorted(random.sample(there, wanted))
            steps.append(Step(ends={"elastic": sorted(set(there) - set(kept))}))
            there = kept
    return steps
