"""The table of variables: each input, and each value that follows from them, with its formula."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ballast.api.topology_sizing import Goal
from ballast.sizing.batch_regimes import COMFORT_RATIO, CannotTell, Choice, Regimes, choose, fit
from ballast.sizing.facts import Facts, inputs, measured_inputs
from ballast.sizing.littles_law import parallelism_needed
from ballast.sizing.memory import (
    GIB,
    MIB,
    SURVIVOR_RATIO,
    heap_within,
    new_generation,
    old_generation,
    overhead_bytes,
    power_of_two,
    source_tasks,
    survivor_space,
    usable_cores,
    usable_heap,
)
from ballast.sizing.provenance import Origin, Value, Variable, assumed, declared, derived, measured


@dataclass(frozen=True, slots=True)
class BatchModel:
    """How long a batch takes with any number of cores: only the part that tasks take is shared among them."""

    regimes: Regimes | None
    core_seconds_per_record: float | None
    """None if it is not known: then the curve holds for the measured cores, and nothing tells about others."""
    measured_cores: float = 1.0

    def seconds(self, rows: float, cores: float) -> float:
        work = rows * (self.core_seconds_per_record or 0.0)
        if self.regimes is None:
            return work / cores
        elsewhere = max(self.regimes.seconds(rows) - work / self.measured_cores, self.regimes.base_seconds)
        return elsewhere + work / cores

    def cores_for(self, rate: float, rows: float | None) -> int | None:
        """The fewest cores that pass `rate` in 80 % of their time, in batches of `rows`; None if none are known to."""
        if self.core_seconds_per_record is None:
            return None
        if rows is None or self.regimes is None:
            return parallelism_needed(
                records_per_second=rate / COMFORT_RATIO, latency_seconds=self.core_seconds_per_record
            )
        most = COMFORT_RATIO * rows / rate
        elsewhere = self.seconds(rows, math.inf)
        if elsewhere >= most:
            return None
        pace = rows / (most - elsewhere)
        return parallelism_needed(records_per_second=pace, latency_seconds=self.core_seconds_per_record)


@dataclass(frozen=True, slots=True)
class Table:
    """All variables by name, in the order in which they follow from each other."""

    variables: Mapping[str, Variable]
    regimes: Regimes | CannotTell | None
    """Of the measured batches; None without any."""
    choice: Choice | None
    """The batch size, where the curve tells it."""
    model: BatchModel | None
    short: bool = False
    """Whether no number of cores passes the rate with these batches."""
    needed_parallelism: int | None = None
    """The cores that the rate needs, even if the declared machines have fewer."""

    def amount(self, name: str) -> float | None:
        found = self.variables.get(name)
        return None if found is None else found.value.amount

    def whole(self, name: str, otherwise: int = 1) -> int:
        found = self.amount(name)
        return otherwise if found is None else max(1, round(found))

    @property
    def executors_known(self) -> bool:
        return self.variables["executors"].value.origin is not Origin.ASSUMED


@dataclass(slots=True)
class _Maker:
    """Adds variables in order; a formula sees those before it."""

    facts: Facts
    made: dict[str, Variable] = field(default_factory=dict)

    def has(self, *names: str) -> bool:
        return all(name in self.made for name in names)

    def amount(self, name: str) -> float:
        return self.made[name].value.amount

    def add(
        self,
        name: str,
        unit: str,
        formula: str,
        compute: Callable[..., float],
        *of: str,
        note: str = "",
    ) -> None:
        values = {each: self.made[each].value for each in of}
        self.made[name] = derived(name, unit, formula, compute, inputs=values, note=note)


def table(facts: Facts) -> Table:
    """Raises InvalidField for a what-if that can't be taken."""
    known = inputs(facts)
    maker = _Maker(facts, {name: Variable(name, value) for name, value in known.items()})
    found = fit(facts.progress.rows, facts.progress.seconds) if facts.progress is not None else None
    regimes = found if isinstance(found, Regimes) else None
    model = _model(known, regimes, measured_inputs(facts))
    choice = _choice(facts, known, regimes)
    rows = known["batchRecords"].amount if "batchRecords" in known else (choice.rows if choice else None)
    needed = model.cores_for(known["rate"].amount, rows) if model is not None and "rate" in known else None
    _parallelism(maker, model, rows, needed)
    _batch(maker, choice, model)
    _pending(maker)
    _memory(maker)
    impossible = needed is None and model is not None and model.core_seconds_per_record is not None and "rate" in known
    return Table(_used(maker.made), found, choice, model, short=impossible, needed_parallelism=needed)


def _used(made: Mapping[str, Variable]) -> dict[str, Variable]:
    """Without assumptions that nothing follows from. The version of Java decides on its options."""
    inputs = {name for variable in made.values() for name in variable.inputs} | {"java"}
    return {
        name: variable
        for name, variable in made.items()
        if name in inputs or variable.formula or variable.value.origin is not Origin.ASSUMED
    }


def _model(known: Mapping[str, Value], regimes: Regimes | None, measured: Mapping[str, Value]) -> BatchModel | None:
    """The curve is split into work and the rest by the cores on which it was measured."""
    cores = measured["executors"].amount * measured["executorCores"].amount if "executorCores" in measured else None
    if "recordSeconds" in known and (regimes is None or cores is not None):
        return BatchModel(regimes, known["recordSeconds"].amount, cores or 1.0)
    return None if regimes is None else BatchModel(regimes, None)


def _choice(facts: Facts, known: Mapping[str, Value], regimes: Regimes | None) -> Choice | None:
    if regimes is None or "batchRecords" in known:
        return None
    most = known["batchSeconds"].amount if facts.declared.batch_time or "batchSeconds" in facts.what_if else None
    rate = known["rate"].amount if "rate" in known else None
    return choose(regimes, facts.goal, rate=rate, most_seconds=most)


def _parallelism(maker: _Maker, model: BatchModel | None, rows: float | None, needed: int | None) -> None:
    """One executor on each machine, for cost no more than the rate needs; without machines, what the rate needs."""
    what_if = maker.facts.what_if
    if not maker.has("executorCores") or (maker.has("machines") and "executorCores" not in what_if):
        maker.add("executorCores", "cores", "coresPerMachine, less 1 from 8 on", _usable, "coresPerMachine")
    cores = maker.amount("executorCores")
    by_rate = None if needed is None or model is None else _for_rate(model, rows, cores, needed)
    of = ("rate", "recordSeconds")
    needs = f"rate × recordSeconds ÷ {COMFORT_RATIO:g} ÷ executorCores, and what no core shortens; rounded up"
    if "executors" in what_if:
        pass
    elif maker.has("machines") and by_rate is not None and maker.facts.goal is Goal.COST:
        most = maker.amount("machines")
        maker.add("executors", "executors", f"{needs}; machines at most", lambda *a: min(by_rate(*a), most), *of)
    elif maker.has("machines"):
        maker.add("executors", "executors", "machines × 1", lambda machines: machines, "machines")
    elif by_rate is not None:
        maker.add("executors", "executors", needs, by_rate, *of)
    elif not maker.has("executors"):
        unknown = assumed(1.0, "executors", "nothing tells how many")
        maker.made["executors"] = Variable("executors", unknown)
    maker.add("parallelism", "tasks", "executors × executorCores", lambda e, c: e * c, "executors", "executorCores")
    _sources(maker)
    maker.add("stateTasks", "tasks", "executors × 1: one per group of cores", lambda e: e, "executors")


def _for_rate(model: BatchModel, rows: float | None, cores: float, otherwise: int) -> Callable[..., float]:
    """Executors of `cores` by rate and core seconds per record."""

    def executors(rate: float, core_seconds: float) -> float:
        needed = replace(model, core_seconds_per_record=core_seconds).cores_for(rate, rows)
        return float(math.ceil((otherwise if needed is None else needed) / cores))

    return executors


def _usable(cores: float) -> float:
    return float(usable_cores(int(cores)))


def _sources(maker: _Maker) -> None:
    """As many as the stage after them, to avoid a shuffle: executors × cores, bounded by the partitions."""
    first = next(iter(maker.facts.declared.stages), None)
    note = ""
    if not maker.has("partitions"):
        formula = "parallelism, to avoid a shuffle"
        maker.add("sourceTasks", "tasks", formula, lambda cores: cores, "parallelism")
    else:
        formula = "the largest divisor of partitions that is no larger than parallelism"
        maker.add("sourceTasks", "tasks", formula, _divisor, "partitions", "parallelism")
    given, computed = first.parallelism if first else None, maker.amount("sourceTasks")
    if first is not None and given is not None and first.latency is None and given != computed:
        note = f"declared {given} (stage {first.component}), but the formula gives {computed:g}"
        found = maker.made["sourceTasks"]
        maker.made["sourceTasks"] = Variable(found.name, found.value, found.formula, found.inputs, note)


def _divisor(partitions: float, cores: float) -> float:
    return float(source_tasks(partitions=int(partitions), cores=int(cores)))


def _batch(maker: _Maker, choice: Choice | None, model: BatchModel | None) -> None:
    if choice is not None:
        progress = maker.facts.progress
        count = len(progress.batches) if progress is not None else 0
        value = measured(choice.rows, "records", f"regimes of {count} batches, without the first")
        maker.made["batchRecords"] = Variable("batchRecords", value, choice.reason)
    elif not maker.has("batchRecords") and maker.has("recordSeconds"):
        formula = "batchSeconds ÷ recordSeconds × parallelism"
        of = ("batchSeconds", "recordSeconds", "parallelism")
        maker.add("batchRecords", "records", formula, lambda batch, each, cores: batch / each * cores, *of)
    if not maker.has("batchRecords"):
        return
    maker.add("batchBytes", "B", "batchRecords × recordBytes", lambda n, size: n * size, "batchRecords", "recordBytes")
    if maker.has("partitions"):
        maker.add("fetchBytes", "B", "batchBytes ÷ partitions", lambda size, n: size / n, "batchBytes", "partitions")
        maker.add("socketBufferBytes", "B", "the power of two above fetchBytes", _power_of_two, "fetchBytes")
    _timing(maker, model)


def _timing(maker: _Maker, model: BatchModel | None) -> None:
    if model is None:
        return
    cores = maker.amount("parallelism")
    of = tuple(each for each in ("batchRecords", "recordSeconds", "parallelism") if maker.has(each))
    formula = "batchRecords × recordSeconds ÷ parallelism, and what no core shortens"
    records = maker.amount("batchRecords")
    seconds = model.seconds(records, cores)
    curve = model.regimes
    if curve is not None:
        spread = min(2.0 * curve.noise_ratio, 0.9)
        source = f"curve of {curve.batches} batches"
        low, high = seconds * (1.0 - spread), seconds * (1.0 + spread)
        value = measured(seconds, "s", source, low=low, high=high)
        maker.made["expectedBatchSeconds"] = Variable("expectedBatchSeconds", value, formula, of)
    else:
        maker.add("expectedBatchSeconds", "s", formula, lambda n, each, p: n * each / p, *of)
    maker.add("capacity", "records/s", "batchRecords ÷ expectedBatchSeconds", lambda n, s: n / s, *_CAPACITY)
    if maker.has("rate"):
        formula = f"{COMFORT_RATIO:g} × batchRecords ÷ rate: a cap on the pace, with room to catch up"
        of = ("batchRecords", "rate")
        maker.add("triggerSeconds", "s", formula, lambda n, rate: COMFORT_RATIO * n / rate, *of)


_CAPACITY = ("batchRecords", "expectedBatchSeconds")


def _pending(maker: _Maker) -> None:
    of = ("pendingRatio", "parallelism")
    maker.add("maxPending", "tasks", "pendingRatio × parallelism", lambda ratio, tasks: ratio * tasks, *of)
    if not maker.has("batchBytes"):
        return
    formula = "pendingRatio × batchBytes ÷ executors"
    maker.add("pendingBytes", "B", formula, lambda ratio, size, n: ratio * size / n, *_PENDING)
    if not maker.has("outputRatio"):
        maker.made["outputRatio"] = Variable("outputRatio", assumed(1.0, "", "one record sent on per record received"))
    formula = "the power of two above batchRecords × outputRatio ÷ executors"
    maker.add("sendBufferRecords", "records", formula, lambda n, sent, e: _power_of_two(n * sent / e), *_SENT)


_PENDING = ("pendingRatio", "batchBytes", "executors")
_SENT = ("batchRecords", "outputRatio", "executors")


def _power_of_two(least: float) -> float:
    return float(power_of_two(least))


def _memory(maker: _Maker) -> None:
    """From the GC log where there is one; else within the machine's memory; else as it is."""
    gc = maker.facts.gc
    shows_old = maker.has("steadyOldBytes") or (gc is not None and gc.steady_old_bytes is not None)
    if maker.has("allocationRate") and shows_old:
        formula = f"10 s × allocationRate × {SURVIVOR_RATIO + 2} ÷ {SURVIVOR_RATIO}"
        maker.add("newGenerationBytes", "B", formula, new_generation, "allocationRate")
        formula = f"newGenerationBytes ÷ {SURVIVOR_RATIO + 2}"
        maker.add("survivorBytes", "B", formula, survivor_space, "newGenerationBytes")
        if not maker.has("steadyOldBytes"):
            none = declared(0.0, "B", "the log shows an empty old generation")
            maker.made["steadyOldBytes"] = Variable("steadyOldBytes", none)
        formula = "the larger of 2 × steadyOldBytes and 1.5 × newGenerationBytes"
        maker.add("oldGenerationBytes", "B", formula, _old, *_OLD)
        formula = "newGenerationBytes + oldGenerationBytes, in steps of 256 MiB, below 32 GiB"
        of: tuple[str, ...] = ("newGenerationBytes", "oldGenerationBytes")
        if maker.has("occupiedBytes"):
            formula = f"{formula}; no less than newGenerationBytes + occupiedBytes"
            of = (*of, "occupiedBytes")
        maker.add("heapBytes", "B", formula, _heap, *of)
    elif maker.has("memoryPerMachine"):
        formula = "memoryPerMachine less the overhead outside the heap, below 32 GiB"
        maker.add("heapBytes", "B", formula, _within(maker), "memoryPerMachine", *_overhead(maker))
    elif maker.has("executorMemory"):
        maker.add("heapBytes", "B", "executorMemory: nothing tells another", lambda size: size, "executorMemory")
    if maker.has("heapBytes"):
        own = _overhead(maker)
        formula = "the larger of 384 MiB and 10 % of heapBytes (40 % where Python runs)"
        least = " and ".join(_LEAST_OVERHEAD[each] for each in own)
        formula = f"{formula}; no less than {least}" if least else formula
        python = _python(maker)
        maker.add(
            "overheadBytes",
            "B",
            formula,
            lambda heap, *a: overhead_bytes(heap, python=python, **_own(own, a)),
            "heapBytes",
            *own,
        )


_LEAST_OVERHEAD = {"executorOverhead": "executorOverhead", "overheadFactor": "overheadFactor × heapBytes"}
"""What users gave the container in addition to the heap."""


def _overhead(maker: _Maker) -> tuple[str, ...]:
    return tuple(each for each in _LEAST_OVERHEAD if maker.has(each))


def _own(names: tuple[str, ...], amounts: tuple[float, ...]) -> dict[str, float]:
    given = dict(zip(names, amounts, strict=True))
    return {"own_bytes": given.get("executorOverhead", 0.0), "own_ratio": given.get("overheadFactor", 0.0)}


def _within(maker: _Maker) -> Callable[..., float]:
    own, python = _overhead(maker), _python(maker)
    return lambda size, *a: _steps(heap_within(size, python=python, **_own(own, a)))


def _python(maker: _Maker) -> bool:
    return maker.facts.log is not None and maker.facts.log.python


_OLD = ("newGenerationBytes", "steadyOldBytes")


def _old(new: float, steady: float) -> float:
    return old_generation(new_bytes=new, steady_old_bytes=steady)


def _heap(new: float, old: float, occupied: float = 0.0) -> float:
    """No less than what is occupied after collections, even where that is more than a heap should have."""
    step = 256 * MIB
    return max(usable_heap(math.ceil((new + max(old, occupied)) / step) * step), _up(occupied), GIB)


def _up(size: float) -> float:
    return math.ceil(size / (256 * MIB)) * 256.0 * MIB


def _steps(size: float) -> float:
    step = 256 * MIB
    return usable_heap(max(math.floor(size / step) * step, step))
