"""What to change first, and what it brings, in one sentence."""

from __future__ import annotations

import math

from ballast.sizing.batch_regimes import COMFORT_RATIO, Choice
from ballast.sizing.bottleneck import Bottleneck, Resource
from ballast.sizing.facts import Facts, measured_inputs
from ballast.sizing.memory import MIB
from ballast.sizing.progress import Progress
from ballast.sizing.run_time import Prediction
from ballast.sizing.variables import Table

_WORTH_IT = 0.05


def headline(facts: Facts, made: Table, limit: Bottleneck, run_times: tuple[Prediction, ...]) -> str:
    """What to change first, by the bottleneck, and what it brings as far as that can be computed."""
    if limit.resource is Resource.REMOTE_RATE:
        return f"Change stage {limit.stage} first: {limit.evidence}, so {limit.remedy}."
    if limit.resource is Resource.MEMORY:
        return f"Change memory first: {limit.evidence}; {limit.remedy}."
    if made.choice is not None and facts.progress is not None:
        larger = _about_batch_size(facts.progress, made.choice)
        if larger is not None:
            return larger
    if run_times:
        return _about_run_time(run_times)
    return _about_executors(facts, made)


def _about_batch_size(progress: Progress, choice: Choice) -> str | None:
    """None where the chosen size brings less than 5 % over the measured batches."""
    now = math.fsum(progress.rows) / math.fsum(progress.seconds)
    gain = choice.rows_per_second / now - 1.0
    if gain < _WORTH_IT:
        return None
    return (
        f"Set maxOffsetsPerTrigger to {choice.rows:.0f} first: on the measured cores a batch then takes "
        f"{choice.seconds:.3g} s and {choice.rows_per_second:.4g} records/s pass, {gain * 100.0:.0f} % more than over "
        "the measured batches."
    )


def _about_run_time(run_times: tuple[Prediction, ...]) -> str:
    now, more = run_times[-2] if len(run_times) > 1 else run_times[0], run_times[-1]
    if more.seconds > (1.0 - _WORTH_IT) * now.seconds:
        return (
            f"Don't add executors: with {more.cores} cores instead of {now.cores} the job would take "
            f"{more.seconds:.4g} s instead of {now.seconds:.4g}; {now.driver_seconds:.4g} s of it are the driver's."
        )
    return (
        f"Raise the cores from {now.cores} to {more.cores} first: the job would take {more.seconds:.4g} s instead of "
        f"{now.seconds:.4g}."
    )


def _about_executors(facts: Facts, made: Table) -> str:
    heap = made.amount("heapBytes")
    if not made.executors_known and heap is not None and "newGenerationBytes" in made.variables:
        size = f"{math.floor(heap / MIB)}m"
        return f"Set spark.executor.memory to {size}: the new generation then holds ten seconds of allocation."
    if not made.executors_known:
        return f"How many executors to run is not known: {_lacking(facts)}."
    executors, cores = made.whole("executors"), made.whole("executorCores")
    now = measured_inputs(facts).get("executors")
    start = f"Run {_count(executors, 'executor')} of {_count(cores, 'core')}"
    if now is not None and round(now.amount) != executors:
        start = f"Change the executors from {now.amount:.0f} to {executors} first, of {_count(cores, 'core')} each"
    elif now is not None:
        start = f"Keep {_count(executors, 'executor')} of {_count(cores, 'core')}"
    capacity, records = made.amount("capacity"), made.amount("batchRecords")
    if capacity is None or records is None:
        return f"{start}; how much they pass is not known without a latency, a rate or measured batches."
    pace = f"batches of {records:.0f} records pass {capacity:.4g} records/s"
    rate, needed, declared = made.amount("rate"), made.needed_parallelism, made.whole("parallelism")
    if rate is None:
        return f"{start}: {pace}."
    if needed is not None and needed > declared:
        return (
            f"Add machines first: the rate of {rate:.4g} records/s needs {needed} cores instead of {declared}, whose "
            f"{pace}."
        )
    return f"{start}: {pace}, {capacity / rate:.3g} times the rate (aim: {1.0 / COMFORT_RATIO:g} times)."


def _lacking(facts: Facts) -> str:
    if facts.log is not None:
        return "the event log shows no executor at work; give the whole log, or declare machines"
    return "give --event-log or --prometheus, or declare machines"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
