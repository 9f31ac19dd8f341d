"""Where the nodes of a pool are, as arrays.

A place contains those nearer than it: two racks of one name in two zones are two racks. Nodes without a label of a
level share one unnamed place there, apart from the named ones: what is not known is taken to be far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ballast.model import Anchor, Levels, Location, Node
from ballast.model.arrays import BoolArray, FloatArray, IntArray


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

    def distances_to(self, ends: Sequence[Anchor], weights: FloatArray) -> FloatArray:
        """(rows, nodes): Σ of weight × distance over the fixed ends. `weights`: (rows, ends).

        A user may name as many ends as there are nodes: so none is compared with each node. What counts is how much
        weight is in the same places as a node, level by level.
        """
        result = np.zeros((len(weights), len(self.nodes)))
        labels = self._labels_of(ends)
        for known_ends, some_ends in _by_known_levels(labels):
            for known_nodes, some_nodes in _by_known_levels(self.labels):
                part, here = labels[:, some_ends], self.labels[:, some_nodes]
                levels = np.flatnonzero(known_ends & known_nodes)
                result[:, some_nodes] += self._apart(levels, part, here, weights[:, some_ends])
        return result

    def _labels_of(self, ends: Sequence[Anchor]) -> IntArray:
        """(levels, ends): codes as in `labels`; -2 for a value that no node has."""
        depth = self.last + 1
        places = [(*self._anchor_location(end), *(None for _ in range(depth)))[:depth] for end in ends]
        codes = [
            [-1 if place[level] is None else self.values[level].get(place[level] or "", -2) for place in places]
            for level in range(depth)
        ]
        return np.array(codes, dtype=np.int64).reshape(depth, len(ends))

    def _apart(self, levels: IntArray, ends: IntArray, nodes: IntArray, weights: FloatArray) -> FloatArray:
        """The same for ends and nodes that have a label of each of these levels, which are far to near, and no other.

        `ends`, `nodes`: their labels.
        """
        count = ends.shape[1]
        result = np.zeros((len(weights), nodes.shape[1]))
        place = np.zeros(count + nodes.shape[1], dtype=np.int64)
        alike = _sums(place, weights)
        for level in levels.tolist():
            label = np.concatenate([ends[level], nodes[level]])
            _, place = np.unique(np.stack([place, label]), axis=1, return_inverse=True)
            within = _sums(place.ravel(), weights)
            result += self.levels.ordered[level].distance * (alike - within)
            alike = within
        return result

    def _anchor_location(self, anchor: Anchor) -> Location:
        if anchor.node is not None and anchor.node in self.index:
            return self.nodes[self.index[anchor.node]].location
        return anchor.location


def _by_known_levels(labels: IntArray) -> list[tuple[BoolArray, IntArray]]:
    """(levels,): which levels have a label, and the columns that have labels of these alone."""
    known, kind = np.unique(labels != -1, axis=1, return_inverse=True)
    return [(known[:, each], np.flatnonzero(kind.ravel() == each)) for each in range(known.shape[1])]


def _sums(place: IntArray, weights: FloatArray) -> FloatArray:
    """(rows, nodes): the weight of the ends in each node's place. `place`: of the ends, then of the nodes.

    Of equal sets of ends in equal order the sums are equal to the last bit.
    """
    ends, nodes = np.split(place, [weights.shape[1]])
    size = int(place.max(initial=0)) + 1
    return np.stack([np.bincount(ends, weights=row, minlength=size)[nodes] for row in weights])


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
