"""The reference of all fields in Markdown, generated from the same schemas as the CRDs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ballast.api.crd import KINDS, Kind, schema
from ballast.api.rule import VALIDATIONS
from ballast.api.structural import Schema
from ballast.api.version import API_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER = f"""<!-- Generated from the models in ballast.api by `ballast crds`. Change those, not this file. -->

# Resources

All kinds belong to `{API_VERSION}` and to the category `ballast`: `kubectl get ballast -A`. The same text is in
`kubectl explain`. Durations are written as in Go (`30s`, `2m`, `1h30m`), quantities as in Kubernetes (`500m`, `20Mi`).
A field without a default and without *required* may be left out.
"""


def generate() -> str:
    """The whole page, the same in every run."""
    return "\n".join([_HEADER, *(_section(kind) for kind in KINDS)])


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(generate(), encoding="utf-8")


def is_current(path: Path) -> bool:
    """Whether the file at `path` is what would be generated."""
    return path.is_file() and path.read_text(encoding="utf-8") == generate()


def _section(kind: Kind) -> str:
    whole = schema(kind)
    scope = "namespaced" if kind.namespaced else "cluster-scoped"
    names = ", ".join(f"`{name}`" for name in kind.short_names)
    lines = [f"## {kind.name}", "", whole["description"], "", f"{scope.capitalize()}; short name {names}.", ""]
    for part in ("spec", "status"):
        lines += [f"### {kind.name}: {part}", "", whole["properties"][part]["description"], ""]
        lines += ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
        lines += [_row(*field) for field in _fields(whole["properties"][part], "")]
        lines += _rules(whole["properties"][part])
        lines += [""]
    return "\n".join(lines)


def _fields(node: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    """Every field below `node` in the order of the models: its path, its schema, whether it is required."""
    for name, child in node.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, child, name in node.get("required", ())
        if _is_selector(child):
            continue  # Kubernetes' own, known to readers
        yield from _fields(child, here)
        if "items" in child:
            yield from _fields(child["items"], f"{here}[]")
        if "additionalProperties" in child:
            yield from _fields(child["additionalProperties"], f"{here}.*")


def _row(path: str, node: Schema, required: bool) -> str:
    meaning = " ".join([node["description"], *_bounds(node)])
    cells = [f"`{path}`", _type(node), "*required*" if required else _default(node), meaning]
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _type(node: Schema) -> str:
    if "enum" in node:
        return "one of " + ", ".join(f"`{value}`" for value in node["enum"])
    if "items" in node:
        return f"list of {_type(node['items'])}"
    if "additionalProperties" in node:
        return f"map to {_type(node['additionalProperties'])}"
    return _word(node)


def _word(node: Schema) -> str:
    """The type of a single value in Kubernetes' words."""
    if node.get("x-kubernetes-int-or-string"):
        return "quantity"
    if _is_selector(node):
        return "label selector"
    if node.get("format") == "date-time":
        return "time"
    if node["type"] == "string" and any("duration(" in rule["rule"] for rule in node.get(VALIDATIONS, ())):
        return "duration"
    return str(node["type"])


def _is_selector(node: Schema) -> bool:
    return set(node.get("properties", ())) == {"matchLabels", "matchExpressions"}


def _default(node: Schema) -> str:
    if "default" not in node or isinstance(node["default"], dict):
        return ""
    default = node["default"]
    return f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _bounds(node: Schema) -> Iterator[str]:
    low, high = node.get("minimum"), node.get("maximum")
    if low is not None and high is not None:
        yield f"({'above ' if node.get('exclusiveMinimum') else ''}{_number(low)} to {_number(high)})"
    if "maxItems" in node:
        yield f"(at most {node['maxItems']})"
    if "maxProperties" in node:
        yield f"(at most {node['maxProperties']} keys)"


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1_000_000 else f"{value:.0f}"


def _rules(node: Schema) -> list[str]:
    messages = list(dict.fromkeys(_messages(node)))
    return ["", "What must hold:", "", *(f"- {message}" for message in messages)] if messages else []


def _messages(node: Any) -> Iterator[str]:
    """The remedies of all rules that relate fields to one another."""
    if "properties" in node:
        yield from (rule["message"] for rule in node.get(VALIDATIONS, ()))
    for child in node.get("properties", {}).values():
        yield from _messages(child)
    for name in ("items", "additionalProperties"):
        if name in node:
            yield from _messages(node[name])
