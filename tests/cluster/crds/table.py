"""Tables of good and bad objects, judged by the API server and by the models alike.

Each file holds a `base` object and lists of cases. A case changes the base (`set` by path, `unset` of paths);
a bad one names the `field` that the error must name and what it `says` (for the models `python`, where their
words differ from the API server's own).
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent
KINDS = ("sparktopology", "balancingpolicy", "executormove", "gateswitch")


@dataclass(frozen=True, slots=True)
class Case:
    """One object and what is expected of it."""

    kind: str
    name: str
    object: dict[str, Any]
    before: dict[str, Any]
    field: str
    says: tuple[str, ...]
    python: tuple[str, ...]
    expect: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def cases(section: str) -> list[Case]:
    """All cases of `good`, `bad`, `defaults` or `updates`."""
    return [_case(kind, table["base"], row) for kind in KINDS for table in [_table(kind)] for row in table[section]]


def value_at(obj: Any, path: str) -> Any:
    for step in _steps(path):
        obj = obj[step]
    return obj


def _table(kind: str) -> dict[str, Any]:
    table: dict[str, Any] = {"good": [], "bad": [], "defaults": [], "updates": []}
    return table | dict(yaml.safe_load((FOLDER / f"{kind}.yaml").read_text()))


def _case(kind: str, base: dict[str, Any], row: dict[str, Any]) -> Case:
    before = _changed(base, row.get("from", {}), [])
    return Case(
        kind=kind,
        name=row["case"],
        object=_changed(before, row.get("set", {}), row.get("unset", [])),
        before=before,
        field=row.get("field", ""),
        says=tuple(row.get("says", ())),
        python=tuple(row.get("python", row.get("says", ()))),
        expect=row.get("expect", {}),
    )


def _changed(base: dict[str, Any], changes: dict[str, Any], removals: list[str]) -> dict[str, Any]:
    changed = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = _steps(path)
        holder = _holder(changed, parents)
        if isinstance(last, int) and last == len(holder):
            holder.append(value)
        else:
            holder[last] = copy.deepcopy(value)
    for path in removals:
        *parents, last = _steps(path)
        del _holder(changed, parents)[last]
    return changed


def _holder(obj: Any, steps: list[str | int]) -> Any:
    for step in steps:
        obj = obj.setdefault(step, {}) if isinstance(step, str) else obj[step]
    return obj


def _steps(path: str) -> list[str | int]:
    return [int(index) if index else name for name, index in re.findall(r"([A-Za-z]\w*)|\[(\d+)\]", path)]
