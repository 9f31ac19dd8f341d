from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from ballast.controller.anti_affinity import MOST_TRIED, AntiAffinity
from ballast.kube.anti_affinity import AntiAffinityTerm
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Requirement
from tests.unit.kube.builders import executor, node

NODES = [NodeReader().read(node("node-1"))]
HOST = "kubernetes.io/hostname"


class _Counted(Mapping[AntiAffinityTerm, set[str]]):
    """Terms, and how many of them were looked at."""

    def __init__(self, terms: Mapping[AntiAffinityTerm, set[str]]) -> None:
        self._terms, self.taken = terms, 0

    def __getitem__(self, key: AntiAffinityTerm) -> set[str]:
        return self._terms[key]

    def __len__(self) -> int:
        return len(self._terms)

    def __iter__(self) -> Iterator[AntiAffinityTerm]:
        for term in self._terms:
            self.taken += 1
            yield term


@pytest.mark.parametrize("selecting", [True, False], ids=["by selector", "by name"])
def test_terms_that_are_not_tried_any_more_cost_nothing(*, selecting: bool) -> None:
    """A user may create 40 000 of them, and executors to try them on: others are gated meanwhile."""
    named = frozenset[str]() if selecting else frozenset({"analytics"})
    chosen = () if selecting else None
    terms = [AntiAffinityTerm(named, chosen, (Requirement("n", "In", (str(number),)),), HOST) for number in range(1000)]
    away = AntiAffinity((), {("tenant", term): ("node-1",) for term in terms}, NODES, {"analytics": {}})
    table = away._by_selector if selecting else away._by_name["analytics"]
    counted = table["tenant"] = _Counted(table["tenant"])  # type: ignore[assignment]
    reader = PodReader()
    executors = [reader.read(executor(1, labels={"n": str(each)})) for each in range(100)]
    found = [away.demands(each) for each in executors]
    assert [away.unsure(each) for each in executors] == [False] * 20 + [True] * 80, "these are placed by preference"
    assert found == [(Requirement(HOST, "NotIn", ("node-1",)),)] * 20 + [()] * 80
    assert counted.taken == MOST_TRIED


def test_terms_of_many_namespaces_are_tried_four_times_as_often_as_those_of_one() -> None:
    """One user may have many namespaces. Each of the others may still use half of its equal part."""
    others, count = 40, 1000
    away = AntiAffinity(
        (),
        {
            (f"tenant-{number}", AntiAffinityTerm(frozenset(), (), (Requirement("n", "In", (str(each),)),), HOST)): (
                "node-1",
            )
            for number in range(others)
            for each in range(count)
        },
        NODES,
        {"analytics": {}},
    )
    counted = away._by_selector
    for name, terms in counted.items():
        counted[name] = _Counted(terms)  # type: ignore[assignment]
    reader = PodReader()
    for each in range(100):
        away.demands(reader.read(executor(1, labels={"n": str(each)})))
    tried = [terms.taken for terms in counted.values()]  # type: ignore[attr-defined]
    assert min(tried) >= 4 * MOST_TRIED // (2 * others)
    assert sum(tried) <= 4 * MOST_TRIED + others * count
