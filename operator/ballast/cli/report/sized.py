"""A recommendation as text, as a document for programs, and as a file for spark-submit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ballast.cli.output import heading, line, table
from ballast.comment import comment
from ballast.sizing.batch_regimes import Breakpoint, CannotTell, Regimes
from ballast.sizing.bottleneck import Bottleneck
from ballast.sizing.provenance import Value, Variable
from ballast.sizing.recommendation import Recommendation

_SECOND, _KIB = 1.0, 1024.0


def sized_report(found: Recommendation) -> Iterator[RenderableType]:
    yield Text(found.headline, style="bold")
    yield Text("")
    yield line(("goal", found.goal.value))
    yield line(("bottleneck", limited_by(found.bottleneck)))
    yield from (line(("read", each)) for each in found.read)
    if found.first_rule:
        yield heading("First rule: is each stage always ready for records, and are they taken promptly?")
        rows = [
            [each.stage, yes_or_no(each.ready_upstream), yes_or_no(each.room_downstream), each.origin, each.evidence]
            for each in found.first_rule
        ]
        yield table(["stage", "ready", "room", "from", "evidence"], rows, wrap=["evidence"], cut=["stage"])
    yield heading("Variables")
    yield table(VARIABLE_COLUMNS, variable_rows(found), right=["value"], wrap=["source", "formula"])
    if isinstance(found.table.regimes, Regimes):
        yield heading("Batch regimes")
        yield from (Text(each) for each in regimes_told(found.table.regimes))
    if found.run_times:
        yield heading("Run time of the job, by cores in all")
        run_times = [
            [str(each.cores), duration(each.seconds), duration(each.least_seconds)] for each in found.run_times
        ]
        yield table(["cores", "predicted", "never below"], run_times, right=["cores", "predicted", "never below"])
    yield heading("Configuration: spark-submit --conf NAME=VALUE, or --write-conf FILE")
    if found.before:
        changes = [[name, found.before.get(name, "-"), value] for name, value in found.spark_conf.items()]
        yield table(["name", "now", "proposed"], changes, wrap=["now", "proposed"])
    else:
        yield table(["name", "value"], [list(pair) for pair in found.spark_conf.items()], wrap=["value"])
    if found.source_options:
        yield heading("In the application: options of its source, and its trigger")
        yield table(["name", "value"], [list(pair) for pair in found.source_options.items()])
    if found.gc:
        yield heading("Garbage collection")
        checks = [[verdict(each.healthy), each.rule, each.evidence, each.remedy] for each in found.gc]
        yield table(["healthy", "rule", "evidence", "remedy"], checks, wrap=["rule", "evidence", "remedy"])
    if found.warnings:
        yield heading("Warnings")
        yield from (Text(f"- {warning}") for warning in found.warnings)


def limited_by(limit: Bottleneck) -> str:
    if limit.resource is None:
        return f"not known: {limit.evidence}; {limit.remedy}"
    return f"{limit.resource} at {limit.stage} ({limit.origin}): {limit.evidence}"


VARIABLE_COLUMNS = ("name", "value", "from", "interval", "source", "formula")


def variable_rows(found: Recommendation) -> list[list[str]]:
    return [
        [
            each.name,
            amount(each.value.amount, each.value.unit),
            each.value.origin,
            interval(each.value),
            each.value.source,
            f"{each.formula} ({each.note})" if each.note else each.formula,
        ]
        for each in found.table.variables.values()
    ]


def regimes_told(regimes: Regimes) -> Iterator[str]:
    """One sentence a regime."""
    flat, sharp = regimes.flat_until, regimes.sharp_from
    yield (
        f"{regimes.batches} batches of {regimes.smallest_rows:.0f} to {regimes.largest_rows:.0f} rows; typically one "
        f"deviates from the curve by {regimes.noise_ratio:.0%}."
    )
    if flat is not None:
        yield f"Flat up to {_place(flat)} rows: {duration(regimes.base_seconds)}, whatever the rows."
    else:
        yield f"Base: {duration(regimes.base_seconds)}; where flat turns into slow growth is not sure."
    if regimes.slow_seconds_per_row > 0.0:
        yield f"Slow growth: {duration(regimes.slow_seconds_per_row)} per row."
    else:
        yield "Slow growth: not told from flat."
    if sharp is not None:
        steep = regimes.slow_seconds_per_row + regimes.sharp_seconds_per_row
        yield f"Sharp growth from {_place(sharp)} rows on: {duration(steep)} per row."
    else:
        yield "Sharp growth: not seen, or its place is not sure."


def _place(at: Breakpoint) -> str:
    return f"{at.rows:.0f} ({at.low:.0f} to {at.high:.0f})"


def amount(value: float, unit: str) -> str:
    """With its unit: seconds and bytes in the unit that suits them."""
    if unit == "s":
        return duration(value)
    if unit in ("B", "B/s"):
        return f"{size_of(value)}{unit[1:]}"
    return f"{number(value)} {unit.removesuffix('s') if value == 1.0 else unit}".strip()


def number(value: float) -> str:
    """Whole above 100, else three digits."""
    return f"{value:.0f}" if abs(value) >= 100.0 or value == round(value) else f"{value:.3g}"


def duration(seconds: float) -> str:
    for unit, length in (("s", _SECOND), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= length:
            return f"{seconds / length:.4g} {unit}"
    return "0 s" if seconds == 0.0 else f"{seconds / 1e-9:.3g} ns"


def size_of(size: float) -> str:
    if size < _KIB:
        return f"{size:.4g} B"
    power = min(int(math.log(size, _KIB)), 4)
    return f"{size / _KIB**power:.4g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def interval(value: Value) -> str:
    if value.low is None and value.high is None:
        return ""
    low, high = value.ends
    return f"{amount(low, value.unit)} to {amount(high, value.unit)}"


def yes_or_no(answer: bool | None) -> str:
    return "-" if answer is None else "yes" if answer else "no"


def verdict(healthy: bool | None) -> str:
    return "not known" if healthy is None else "yes" if healthy else "NO"


def broken(found: Recommendation) -> bool:
    """Whether there is anything that --fail-on-warnings is about."""
    return bool(found.warnings) or any(check.healthy is False for check in found.gc)


def spark_properties(found: Recommendation) -> str:
    """For spark-submit --properties-file, which takes names that begin with spark.; the rest is in comments."""
    lines = [comment(found.headline), *(f"{name} {value}" for name, value in found.spark_conf.items())]
    if found.source_options:
        lines += ["# In the application, as options of its source, and its trigger:"]
        lines += [f"#   {name} {value}" for name, value in found.source_options.items()]
    return "\n".join(lines) + "\n"


def sized_document(found: Recommendation) -> dict[str, Any]:
    limit = found.bottleneck
    return {
        "headline": found.headline,
        "goal": found.goal.value,
        "read": list(found.read),
        "bottleneck": {
            "resource": None if limit.resource is None else limit.resource.value,
            "stage": limit.stage,
            "evidence": limit.evidence,
            "origin": limit.origin.value,
            "remedy": limit.remedy,
        },
        "firstRule": [
            {
                "stage": each.stage,
                "readyUpstream": each.ready_upstream,
                "roomDownstream": each.room_downstream,
                "origin": each.origin.value,
                "evidence": each.evidence,
            }
            for each in found.first_rule
        ],
        "variables": [_variable(each) for each in found.table.variables.values()],
        "regimes": _regimes(found),
        "runTimes": [
            {"cores": each.cores, "seconds": _digits(each.seconds), "leastSeconds": _digits(each.least_seconds)}
            for each in found.run_times
        ],
        "sparkConf": dict(found.spark_conf),
        "before": {name: found.before[name] for name in found.spark_conf if name in found.before},
        "sourceOptions": dict(found.source_options),
        "jvmOptions": list(found.jvm_options),
        "gc": [
            {"rule": each.rule, "healthy": each.healthy, "evidence": each.evidence, "remedy": each.remedy}
            for each in found.gc
        ],
        "warnings": list(found.warnings),
    }


def _variable(variable: Variable) -> dict[str, Any]:
    value = variable.value
    return {
        "name": variable.name,
        "value": _digits(value.amount),
        "unit": value.unit,
        "origin": value.origin.value,
        "source": value.source,
        "low": None if value.low is None else _digits(value.low),
        "high": None if value.high is None else _digits(value.high),
        "formula": variable.formula,
        "inputs": list(variable.inputs),
        "note": variable.note,
    }


def _regimes(found: Recommendation) -> dict[str, Any] | None:
    regimes, choice = found.table.regimes, found.table.choice
    if regimes is None:
        return None
    if isinstance(regimes, CannotTell):
        return {"reason": regimes.reason, "remedy": regimes.remedy}
    return {
        "batches": regimes.batches,
        "baseSeconds": _digits(regimes.base_seconds),
        "slowSecondsPerRow": _digits(regimes.slow_seconds_per_row),
        "sharpSecondsPerRow": _digits(regimes.sharp_seconds_per_row),
        "flatUntil": _breakpoint(regimes.flat_until),
        "sharpFrom": _breakpoint(regimes.sharp_from),
        "noiseRatio": _digits(regimes.noise_ratio),
        "chosenRows": None if choice is None else _digits(choice.rows),
    }


def _breakpoint(at: Breakpoint | None) -> dict[str, float] | None:
    return None if at is None else {"rows": _digits(at.rows), "low": _digits(at.low), "high": _digits(at.high)}


def _digits(value: float) -> float:
    """Six digits: what follows is noise."""
    return float(f"{value:.6g}")
