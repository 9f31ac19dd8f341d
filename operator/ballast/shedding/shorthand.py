"""A few figures per node as a short text, for a status that has to stay small.

Node names are replaced by eight characters of their digest, so the figures can be read back only by someone who knows
the nodes; those of nodes that have left are forgotten in doing so.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from hashlib import blake2b

Figures = Mapping[str, tuple[float, ...]]


def written(figures: Figures, *, extra: float = 0) -> str:
    """JSON of the figures by node, to six digits, and of one figure beside them."""
    nodes = {_short(name): [_rounded(value) for value in values] for name, values in sorted(figures.items())}
    return json.dumps({"extra": extra, "nodes": nodes}, separators=(",", ":"))


def read(text: str, names: Iterable[str], *, width: int) -> tuple[dict[str, tuple[float, ...]], float]:
    """The figures of the named nodes, `width` each, and the one beside them; nothing where the text is not ours."""
    try:
        found = json.loads(text)
        nodes = {str(key): tuple(map(float, values)) for key, values in found["nodes"].items()}
        extra = float(found["extra"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}, 0.0
    shorts = {name: _short(name) for name in names}
    return {name: nodes[short] for name, short in shorts.items() if len(nodes.get(short, ())) == width}, extra


def _short(name: str) -> str:
    return urlsafe_b64encode(blake2b(name.encode(), digest_size=6).digest()).decode()


def _rounded(value: float) -> float:
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() else rounded
