"""charts/ballast/README.md: all values, with defaults and the comments of values.yaml. `make generate` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from tests.charts.rendering import CHART

FILE = CHART / "README.md"


@dataclass(frozen=True, slots=True)
class Value:
    path: str
    default: str
    meaning: str

    @property
    def row(self) -> str:
        return f"| `{self.path}` | `{self.default}` | {self.meaning} |"


def values() -> list[Value]:
    """Each leaf of values.yaml, in its order, with the comment above it."""
    text = (CHART / "values.yaml").read_text()
    whole = yaml.compose(text)
    assert isinstance(whole, yaml.MappingNode)
    return list(_leaves(whole, text.splitlines(), ()))


def _leaves(node: yaml.MappingNode, lines: list[str], path: tuple[str, ...]) -> Iterator[Value]:
    for key, value in node.value:
        here = (*path, key.value)
        meaning = _comment_above(lines, key.start_mark.line)
        if isinstance(value, yaml.MappingNode) and value.value and not value.flow_style:
            leaves = list(_leaves(value, lines, here))
            # What is said of a section is said with its first value.
            first = leaves[0]
            yield Value(first.path, first.default, " ".join(filter(None, [meaning, first.meaning])))
            yield from leaves[1:]
        else:
            yield Value(".".join(here), _shown(value), meaning)


def _shown(node: yaml.Node) -> str:
    return json.dumps(yaml.safe_load(yaml.serialize(node)))


def _comment_above(lines: list[str], line: int) -> str:
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].lstrip().removeprefix("#").strip())
    return " ".join(found).replace("|", "\\|")


def rendered() -> str:
    """What belongs into the file: its own introduction, and the table below its last heading."""
    introduction = FILE.read_text().split("\n## Values\n")[0]
    rows = "\n".join(value.row for value in values())
    note = (
        "Generated from values.yaml by `make generate`. A key that is not here is refused, except `global`, `enabled`"
    )
    return (
        f"{introduction}\n## Values\n\n{note} and\nkeys that begin with `x-`.\n\n"
        f"| Value | Default | Meaning |\n|---|---|---|\n{rows}\n"
    )


def write() -> None:
    """Make the file current."""
    FILE.write_text(rendered())
