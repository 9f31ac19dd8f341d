from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from ballast.controller.pod_index import PodIndex
from ballast.controller.quota import Excess, Within, first_of_each, pods_within
from ballast.kube import kinds
from ballast.kube.pods import Pod, PodReader
from ballast.model import Phase
from ballast.tenancy.door import ENDED, EXECUTORS, KEPT_BYTES, SHAPES
from tests.unit.kube.builders import GATE, driver, executor, pod


def read(raw: Iterable[dict[str, Any]]) -> list[Pod]:
    reader = PodReader()
    return [reader.read(each) for each in raw]


def by_watch(pods: Sequence[Pod]) -> Within[Pod]:
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    for each in pods:
        index.changed(None, index.slim(each))
    return pods_within(index.single(), index.crowded())


def wide(number: int) -> dict[str, Any]:
    """An executor of a shape of its own."""
    return executor(number, node="node-1", nodeSelector={"n": str(number)})


@pytest.mark.parametrize("within", [pods_within, by_watch], ids=["by list", "by watch"])
@pytest.mark.parametrize(
    ("many", "limit"),
    [
        pytest.param(lambda n: executor(n, gates=[GATE]), EXECUTORS, id="gated"),
        pytest.param(lambda n: executor(n, node="node-1", phase="Failed"), ENDED, id="a finalizer keeps them"),
        pytest.param(wide, SHAPES, id="a template with a random label"),
    ],
)
def test_of_one_namespace_so_many_executors_are_known_and_the_others_are_pods_like_any_other(
    within: Any, many: Any, limit: Any
) -> None:
    mine = executor(1, namespace="other", application="mine", gates=[GATE])
    pods = read([*(many(10_000 + number) for number in range(limit.each + 2)), mine])
    found = within(pods)
    assert sorted((each.name, beyond) for each, beyond in found.outside) == [
        (f"spark-1-exec-{10_000 + limit.each + more}", limit) for more in range(2)
    ]
    away = {each.uid for each, _ in found.outside}
    outside = [each for each in found.inside if each.uid in away]
    assert [(each.executor, each.labels, each.beyond) for each in outside] == [(None, {}, f"more than {limit}")] * 2
    assert [each.requests for each in outside] == [each.requests for each in pods if each.uid in away], "room is taken"
    assert [each.phase for each in outside] == [each.phase for each in pods if each.uid in away]
    assert all((each.held is None) is (each.phase is not Phase.GATED) for each in outside), "those are released"
    assert len([each for each in found.inside if each.executor is not None]) == limit.each + 1


def test_drivers_count_and_other_pods_do_not() -> None:
    others = [pod(f"web-{number}", gates=[GATE]) for number in range(10)]
    drivers = [driver(f"spark-{number:05}") for number in range(EXECUTORS.each + 1)]
    found = pods_within(read([*others, *drivers]))
    assert [each.name for each, _ in found.outside] == [f"spark-{EXECUTORS.each:05}-driver"]
    assert not any(each.is_driver for each in found.inside if each.beyond)


def test_one_object_of_each_namespace_and_limit_is_named() -> None:
    def excess(namespace: str, name: str, limit: Any = SHAPES) -> Excess:
        return Excess(kinds.POD, namespace, name, name, limit)

    found = [excess("b", "x"), excess("a", "z"), excess("a", "y"), excess("a", "x", KEPT_BYTES)]
    assert set(first_of_each(found)) == {excess("a", "x", KEPT_BYTES), excess("a", "y"), excess("b", "x")}
