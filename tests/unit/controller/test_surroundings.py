from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ballast.api.labels import LabelSelector
from ballast.controller.surroundings import Surroundings
from ballast.kube.pods import Pod, PodReader
from tests.unit.kube.builders import driver, pod

PODS = 1_000


class Tried:
    """Counts how often selectors are tried on a pod."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        matches = LabelSelector.matches

        def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
            self.count += 1
            return matches(selector, labels)

        monkeypatch.setattr(LabelSelector, "matches", counted)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    return Tried(monkeypatch)


def around(*pods: dict[str, Any]) -> Surroundings:
    reader = PodReader()
    by_namespace: dict[str, list[Pod]] = {}
    for each in pods:
        read = reader.read(each)
        by_namespace.setdefault(read.namespace, []).append(read)
    return Surroundings(by_namespace, lambda node: (node,), levels=1, external_namespaces=frozenset())


def brokers(namespace: str = "kafka") -> list[dict[str, Any]]:
    return [
        pod(f"pod-{number}", namespace=namespace, node="node-1", labels={"app": f"app-{number // 10}", "tier": "data"})
        for number in range(PODS)
    ]


def selecting(number: int) -> LabelSelector:
    """Of every pod, each number in other words."""
    other = {"key": "app", "operator": "NotIn", "values": [f"no-such-{number}"]}
    return LabelSelector.model_validate({"matchLabels": {"tier": "data"}, "matchExpressions": [other]})


def test_selectors_are_tried_on_the_pods_with_the_rarest_of_their_labels(tried: Tried) -> None:
    found = around(*brokers()).anchors(LabelSelector(match_labels={"tier": "data", "app": "app-7"}), "kafka")
    assert [anchor.node for anchor in found] == ["node-1"]
    assert tried.count == 10


def test_topologies_that_select_the_same_look_for_it_once(tried: Tried) -> None:
    place = around(*brokers())
    assert len({place.anchors(selecting(0), "kafka") for _ in range(5)}) == 1
    assert tried.count == PODS


def test_the_driver_is_the_first_by_name_of_the_applications_that_is_on_a_known_node() -> None:
    place = around(
        driver("spark-2", namespace="team", node="node-2"),
        driver("spark-1", namespace="team", node="node-1"),
        driver("spark-0", namespace="team", node=None),
        driver("spark-3", namespace="other", node="node-3"),
    )
    found = place.driver("team", ["spark-2", "spark-1", "spark-0"])
    assert found is not None
    assert found.node == "node-1"
    assert place.driver("team", ["spark-3"]) is None
