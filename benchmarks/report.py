"""What every benchmark writes and prints: one JSON file, one table."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

FOLDER = Path("build/bench")


@dataclass(frozen=True, slots=True)
class Baseline:
    what: str
    value: float


@dataclass(frozen=True, slots=True)
class Aim:
    """`value` at most (or at least) this; compared with the ratio where `of_ratio`."""

    bound: float
    at_least: bool = False
    of_ratio: bool = False

    def words(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}{' × baseline' if self.of_ratio else ''}"


@dataclass(frozen=True, slots=True)
class Result:
    case: str
    metric: str
    value: float
    unit: str
    baseline: Baseline | None = None
    aim: Aim | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline.value if self.baseline and self.baseline.value else None

    @property
    def met(self) -> bool | None:
        if self.aim is None:
            return None
        judged = self.ratio if self.aim.of_ratio else self.value
        if judged is None:
            return False
        return judged >= self.aim.bound if self.aim.at_least else judged <= self.aim.bound

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "metric": self.metric,
            "value": self.value,
            "unit": self.unit,
            "baseline": {"what": self.baseline.what, "value": self.baseline.value} if self.baseline else None,
            "ratio": self.ratio,
            "aim": self.aim.words() if self.aim else None,
            "met": self.met,
        }


def machine() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "memoryBytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "loadBefore": round(os.getloadavg()[0], 2),
    }


def result_file(name: str) -> Path:
    """Where `write` puts the results of the benchmark with that name."""
    return FOLDER / f"{name}.json"


def write(name: str, results: Sequence[Result], *, before: dict[str, Any]) -> Path:
    """Write build/bench/<name>.json and print the table. `before`: `machine()` as it was before the run."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = result_file(name)
    document = {"name": name, "machine": before, "cases": [result.as_json() for result in results]}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _print(name, results)
    return path


def _print(name: str, results: Sequence[Result]) -> None:
    table = Table(title=name, box=None, title_justify="left")
    for column in ("case", "metric", "value", "unit", "baseline", "ratio", "aim", "met"):
        table.add_column(column, justify="right" if column in ("value", "ratio") else "left", no_wrap=column != "case")
    for result in results:
        table.add_row(
            result.case,
            result.metric,
            f"{result.value:,.3g}",
            result.unit,
            f"{result.baseline.what} {result.baseline.value:,.3g}" if result.baseline else "",
            f"{result.ratio:.2f}" if result.ratio is not None else "",
            result.aim.words() if result.aim else "",
            {True: "yes", False: "no", None: ""}[result.met],
        )
    Console(width=160).print(table)
