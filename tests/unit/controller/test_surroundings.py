"""Junk floods: topologies and pods by the thousand do not make a pass long."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from ballast.api.labels import LabelSelector
from ballast.controller.surroundings import MOST_TRIED, Surroundings, TooManyTriedError
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


def flood(place: Surroundings, asking: str, numbers: Iterator[int]) -> Callable[[int], object]:
    return lambda _: place.anchors(selecting(next(numbers)), "kafka", asking=asking)


def refused(ask: Callable[[int], object]) -> int:
    """How many of twice as many questions, each about all pods, as may be asked."""
    count = 0
    for number in range(2 * MOST_TRIED // PODS):
        try:
            ask(number)
        except TooManyTriedError:
            count += 1
    return count


def test_selectors_are_tried_on_the_pods_with_the_rarest_of_their_labels(tried: Tried) -> None:
    found = around(*brokers()).anchors(
        LabelSelector(match_labels={"tier": "data", "app": "app-7"}), "kafka", asking="team"
    )
    assert [anchor.node for anchor in found] == ["node-1"]
    assert tried.count == 10


def test_topologies_that_select_the_same_look_for_it_once(tried: Tried) -> None:
    place = around(*brokers())
    assert len({place.anchors(selecting(0), "kafka", asking=f"team-{number}") for number in range(5)}) == 1
    assert tried.count == PODS


def test_a_flood_of_selectors_is_bounded_and_leaves_other_namespaces_theirs(tried: Tried) -> None:
    place = around(*brokers())
    assert refused(lambda number: place.anchors(selecting(number), "kafka", asking="junk")) > 0
    assert 0.9 * MOST_TRIED < tried.count <= MOST_TRIED
    assert place.anchors(selecting(-1), "kafka", asking="team")


def test_a_flood_from_many_namespaces_is_bounded_as_well_and_leaves_others_a_part(tried: Tried) -> None:
    """One user may have many namespaces."""
    place, asked = around(*brokers()), itertools.count()
    for number in range(12):
        assert refused(flood(place, f"junk-{number}", asked)) > 0
    assert tried.count <= 7 * MOST_TRIED
    assert place.anchors(selecting(-1), "kafka", asking="team")


def test_a_flood_of_drivers_and_of_selectors_that_might_match_them_is_bounded(tried: Tried) -> None:
    place = around(*(driver(f"spark-{number}", namespace="junk", labels={"tier": "data"}) for number in range(PODS)))
    nowhere = {"key": "app", "operator": "Exists"}
    selector = LabelSelector.model_validate({"matchLabels": {"tier": "data"}, "matchExpressions": [nowhere]})
    assert refused(lambda _: place.selected_driver(selector, "junk")) > 0
    assert tried.count <= MOST_TRIED


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
