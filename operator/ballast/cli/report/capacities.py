"""Capacity and load of a topology's executors, as `explain` shows them."""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from ballast.cli.output import heading, percent, rounded, table
from ballast.cli.report.place import Naming
from ballast.model import Node
from ballast.planner.capacity import UNEVEN_REMEDIES, WORDS, Capacities


def capacity_report(found: Capacities, nodes: tuple[Node, ...], *, wide: bool = False) -> list[RenderableType]:
    """What to print for people, from top to bottom."""
    naming = Naming.of(nodes, whole=wide)
    rows = [
        [
            each.executor.component,
            each.executor.name,
            naming.short(each.executor.node or ""),
            percent(each.capacity),
            percent(each.load),
            each.combination.value,
        ]
        for each in found.standings
    ]
    columns = ["component", "executor", "node", "capacity", "load", "combination"]
    parts: list[RenderableType] = [
        Text(found.topology, style="bold"),
        table(columns, rows, right=["capacity", "load"], cut=["component", "executor", "node"]),
    ]
    for combination in found.combinations:
        words = WORDS[combination]
        parts += [heading(combination.value), Text(words.meaning, overflow="fold"), *_bullets(words.remedies)]
    if found.uneven:
        parts.append(heading("Uneven"))
        parts.append(
            Text(
                f"Some executors of {', '.join(found.uneven)} have a high capacity, and others hardly any.",
                overflow="fold",
            )
        )
        parts += _bullets(UNEVEN_REMEDIES)
    return parts


def _bullets(remedies: tuple[str, ...]) -> list[RenderableType]:
    return [Text(f"- {remedy}", overflow="fold") for remedy in remedies]


def capacity_document(found: Capacities) -> dict[str, Any]:
    return {
        "topology": found.topology,
        "executors": [
            {
                "executor": each.executor.key,
                "component": each.executor.component,
                "node": each.executor.node,
                "capacity": rounded(each.capacity),
                "load": rounded(each.load),
                "combination": each.combination.value,
            }
            for each in found.standings
        ],
        "explanations": [
            {
                "combination": each.value,
                "meaning": WORDS[each].meaning,
                "remedies": list(WORDS[each].remedies),
            }
            for each in found.combinations
        ],
        "uneven": {"components": list(found.uneven), "remedies": list(UNEVEN_REMEDIES) if found.uneven else []},
    }
