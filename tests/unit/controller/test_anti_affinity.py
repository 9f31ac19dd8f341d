from __future__ import annotations

import pytest

from ballast.controller.anti_affinity import AntiAffinity
from ballast.kube.anti_affinity import UNREAD, AntiAffinityTerm
from ballast.kube.nodes import NodeReader
from ballast.kube.pods import PodReader
from ballast.model import Requirement
from tests.unit.kube.builders import executor, node

NODES = [NodeReader().read(node("node-1"))]
HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize("selecting", [True, False], ids=["by selector", "by name"])
def test_terms_are_tried_once_on_executors_that_differ_in_labels_no_term_asks_for(
    monkeypatch: pytest.MonkeyPatch, *, selecting: bool
) -> None:
    """A thousand applications cost no more than one."""
    tried = 0
    concerns = AntiAffinityTerm.concerns

    def counted(term: AntiAffinityTerm, *about: object) -> bool:
        nonlocal tried
        tried += 1
        return concerns(term, *about)  # type: ignore[arg-type]

    monkeypatch.setattr(AntiAffinityTerm, "concerns", counted)
    named = frozenset[str]() if selecting else frozenset({"analytics"})
    chosen = () if selecting else None
    terms = [AntiAffinityTerm(named, chosen, (Requirement("n", "In", (str(number),)),), HOST) for number in range(100)]
    away = AntiAffinity((), {("tenant", term): ("node-1",) for term in terms}, NODES, {"analytics": {}})
    reader = PodReader()
    demands = {
        away.demands(reader.read(executor(1, labels={"n": n, "batch": str(batch)})))
        for n in "12"
        for batch in range(50)
    }
    assert demands == {(Requirement(HOST, "NotIn", ("node-1",)),)}
    assert away.demands(reader.read(executor(1, labels={"n": "none"}))) == ()
    assert tried == 300
    assert not away.unsure


def test_executors_may_be_kept_away_by_a_term_that_is_not_read() -> None:
    assert AntiAffinity((), {("tenant", UNREAD): ("node-1",)}, NODES, {}).unsure
