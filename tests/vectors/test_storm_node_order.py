"""Storm's order of nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest

from ballast.placement.resource_aware import Availability, Flags, Layout, NodeRule
from tests.reference.storm.node_order import level_shares, node_order, rack_order
from tests.vectors.case import Case
from tests.vectors.closeness import same
from tests.vectors.outcome import Outcome, Record
from tests.vectors.storm_cluster import demands, layout, positions_on, room

RULES = {"COMMON": NodeRule.COMMON, "GENERIC_RAS": NodeRule.GENERIC, "DEFAULT_RAS": NodeRule.DEFAULT}


@dataclass(frozen=True)
class Question:
    layout: Layout
    room: Availability
    requested: Flags
    rule: NodeRule

    def racks(self) -> list[dict[str, Any]]:
        shares = level_shares(self.layout, self.room, 0, requested=self.requested, rule=self.rule)
        return [
            {
                "rack": self.layout.names[0][code],
                "min_percent": float(shares.scarcest_percent[code]),
                "avg_percent": float(shares.mean_percent[code]),
            }
            for code in rack_order(self.layout, self.room, requested=self.requested, rule=self.rule)
        ]

    def order(self) -> list[int]:
        return node_order(self.layout, self.room, requested=self.requested, rule=self.rule)

    def figures(self, level: int, node: int) -> tuple[float, float, float]:
        """What the node's item at the level is compared by, in this order."""
        code = self.layout.members[level].of_row[node]
        shares = level_shares(self.layout, self.room, level, requested=self.requested, rule=self.rule)
        mean, scarcest = float(shares.mean_percent[code]), float(shares.scarcest_percent[code])
        placed = float(self.room.placed[self.layout.members[level].of_row == code].sum())
        return {
            NodeRule.COMMON: (placed, mean, scarcest),
            NodeRule.GENERIC: (placed, mean, mean),
            NodeRule.DEFAULT: (placed, scarcest, mean),
        }[self.rule]

    def holds(self, nodes: Sequence[int]) -> bool:
        """Whether `nodes` is in order when figures that are equal to 1e-12 may come either way."""
        return all(self._may_follow(one, other) for one, other in pairwise(nodes))

    def _may_follow(self, one: int, other: int) -> bool:
        level = next(at for at, items in enumerate(self.layout.members) if items.of_row[one] != items.of_row[other])
        for mine, next_ones in zip(self.figures(level, one), self.figures(level, other), strict=True):
            if not math.isclose(mine, next_ones, rel_tol=1e-12, abs_tol=1e-12):
                return mine > next_ones
        return True


def host_by_host(given: Mapping[str, Any], nodes: Sequence[int]) -> Iterator[tuple[str, set[int]]]:
    for host, of_host in groupby(nodes, key=lambda node: str(given["nodes"][node]["host"])):
        yield host, set(of_host)


def with_favorites(order: Sequence[int], *, favored: Sequence[int], unfavored: Sequence[int]) -> list[int]:
    """Favored nodes in front, unfavored ones last; one that is both is favored."""
    back = [node for node in unfavored if node not in favored]
    return [*favored, *(node for node in order if node not in {*favored, *back}), *back]


def assert_order(case: Case, question: Question, wanted: list[int], record: Record) -> None:
    given = case.raw["given"]
    favored = positions_on(given, case.config.get("topology.scheduler.favored.nodes", ()))
    unfavored = positions_on(given, case.config.get("topology.scheduler.unfavored.nodes", ()))
    ours = with_favorites(question.order(), favored=favored, unfavored=unfavored)
    back = len(ours) - sum(node not in favored for node in unfavored)
    for first, end in ((0, len(favored)), (back, len(ours))):
        assert list(host_by_host(given, ours[first:end])) == list(host_by_host(given, wanted[first:end]))
        if ours[first:end] != wanted[first:end]:
            record(Outcome(case, "one-favored-host"))
    between = slice(len(favored), back)
    if ours[between] != wanted[between]:
        assert set(ours[between]) == set(wanted[between])
        assert question.holds(wanted[between])
        assert question.holds(ours[between])
        record(Outcome(case, "equal-figures"))


@pytest.mark.vectors("storm", "NodeSorterHostProximity")
def test_node_order(case: Case, record: Record) -> None:
    given = case.raw["given"]
    asked, at = demands(given), {node["id"]: position for position, node in enumerate(given["nodes"])}
    where, free, rule = layout(given), room(given), RULES[case.config["node_sort_type"]]
    for want in case.raw["want"]:
        requested = np.asarray(asked[want["executor"]].amounts > 0)
        question = Question(where, free, requested, rule)
        racks = question.racks()
        if not same(racks, want["racks"]):
            by_name = {rack["rack"]: rack for rack in racks}
            wanted = [rack["rack"] for rack in want["racks"]]
            assert same({rack["rack"]: rack for rack in want["racks"]}, by_name)
            inside = [next(at[node["id"]] for node in given["nodes"] if node["rack"] == name) for name in wanted]
            assert question.holds(inside)
            record(Outcome(case, "equal-figures"))
        assert_order(case, question, [at[name] for name in want["nodes"]], record)


def question(*free: float) -> Question:
    """Nodes on hosts of their own in one rack, with so much of one resource free."""
    where = Layout([("rack", f"host{at}", f"node{at}") for at in range(len(free))])
    amounts = Availability(np.array(free)[:, None], np.zeros(len(free), dtype=np.int64), np.array([False]))
    return Question(where, amounts, np.array([True]), NodeRule.COMMON)


def test_nodes_equal_except_for_the_last_bit_may_come_either_way() -> None:
    nearly = question(0.3, 0.1 + 0.2, 0.2)
    assert nearly.holds([0, 1, 2])
    assert nearly.holds([1, 0, 2])


def test_any_other_order_of_nodes_is_wrong() -> None:
    assert not question(0.3, 0.1 + 0.2, 0.2).holds([0, 2, 1])
    assert not question(0.3, 0.3 + 1e-9).holds([0, 1])
