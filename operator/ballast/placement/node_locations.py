"""Where the nodes of a pool are, as arrays.

A place contains those nearer than it: two racks of one name in two zones are two racks. Nodes without a label of a
level share one unnamed place there, apart from the named ones: what is not known is taken to be far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import Anchor, Levels, Location, Node
from ballast.model.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class NodeLocations:
    nodes: tuple[Node, ...]
    levels: Levels
    index: dict[str, int]
    """Position of a node by its name."""
    codes: IntArray
    """(levels, nodes): the place of each node at each level, far to near; the nearest is the node's host."""
    sizes: tuple[int, ...]
    """Number of places at each level."""
    labels: IntArray
    """(levels, nodes): code of the label's value alone, -1 without one."""
    values: tuple[dict[str, int], ...]
    """Per level the code of each label value."""
    steps: FloatArray
    """(levels,): what differing at a level adds to the distance that the nearer levels make."""

    @property
    def last(self) -> int:
        """Index of the nearest level."""
        return len(self.steps) - 1

    def paths(self) -> list[tuple[str, ...]]:
        """Per node the names of its places, far to near, then its own; a place without a label has an empty one."""
        return [(*_named(_path(node, self.last + 1)), node.name) for node in self.nodes]

    def anchor_distance(self, anchor: Anchor) -> FloatArray:
        """Distance of every node to a fixed end, as `Levels.distance` defines it."""
        result = np.zeros(len(self.nodes))
        place = self._anchor_location(anchor)
        for level in range(min(len(place), self.last + 1) - 1, -1, -1):
            value = place[level]
            if value is None:
                continue
            there = self.values[level].get(value, -2)
            differs = (self.labels[level] != there) & (self.labels[level] >= 0)
            result[differs] = self.levels.ordered[level].distance
        return result

    def _anchor_location(self, anchor: Anchor) -> Location:
        if anchor.node is not None and anchor.node in self.index:
            return self.nodes[self.index[anchor.node]].location
        return anchor.location


def node_locations(nodes: Sequence[Node], levels: Levels) -> NodeLocations:
    """The locations of nodes sorted by name; a policy without levels has one, the node, that costs nothing to leave."""
    ordered = tuple(sorted(nodes, key=lambda node: node.name))
    depth = max(1, len(levels.ordered))
    paths = [_path(node, depth) for node in ordered]
    codes, sizes = _codes(paths, depth)
    labels, values = _labels(ordered, depth)
    return NodeLocations(
        nodes=ordered,
        levels=levels,
        index={node.name: position for position, node in enumerate(ordered)},
        codes=codes,
        sizes=sizes,
        labels=labels,
        values=values,
        steps=np.array(levels.steps) if levels.ordered else np.zeros(depth),
    )


_Path = tuple[str | None, ...]


def _path(node: Node, depth: int) -> _Path:
    path = (*node.location, *(None for _ in range(depth - len(node.location))))[:depth]
    return path if path[-1] is not None else (*path[:-1], node.name)


def _codes(paths: list[_Path], depth: int) -> tuple[IntArray, tuple[int, ...]]:
    """Places in the order of their own names, so that the names of nodes decide nothing about them."""
    codes = np.empty((depth, len(paths)), dtype=np.int64)
    sizes: list[int] = []
    for level in range(depth):
        prefixes = [path[: level + 1] for path in paths]
        known = {place: code for code, place in enumerate(sorted(set(prefixes), key=_named))}
        codes[level] = [known[prefix] for prefix in prefixes]
        sizes.append(len(known))
    return codes, tuple(sizes)


def _named(place: _Path) -> tuple[str, ...]:
    return tuple(part or "" for part in place)


def _labels(nodes: tuple[Node, ...], depth: int) -> tuple[IntArray, tuple[dict[str, int], ...]]:
    labels = np.full((depth, len(nodes)), -1, dtype=np.int64)
    values: list[dict[str, int]] = [{} for _ in range(depth)]
    for position, node in enumerate(nodes):
        for level, label in enumerate(node.location[:depth]):
            if label is not None:
                labels[level, position] = values[level].setdefault(label, len(values[level]))
    return labels, tuple(values)
