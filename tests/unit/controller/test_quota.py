from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from ballast.controller.pod_index import PodIndex
from ballast.controller.quota import Excess, Within, first_of_each, pods_within
from ballast.kube import kinds
from ballast.kube.actions import release_patch
from ballast.kube.pods import Pod, PodReader, held
from ballast.model import Level, Levels, Phase, Pin, Placement
from ballast.tenancy.door import ENDED, EXECUTORS, KEPT_BYTES, SHAPES
from tests.unit.kube.builders import CREATED, GATE, driver, executor, expression, pinned_by_us, pod, required

LEVELS = Levels((Level("topology.kubernetes.io/zone", 2.0), Level("rack", 1.5), Level("kubernetes.io/hostname", 1.0)))
TEN_KIBIBYTES = required({"matchExpressions": [expression("type", *(f"instance-{n:03}.4xlarge" for n in range(450)))]})


def read(raw: Iterable[dict[str, Any]]) -> list[Pod]:
    reader = PodReader()
    return [reader.read(each) for each in raw]


def by_watch(pods: Sequence[Pod]) -> Within[Pod]:
    index = PodIndex(notify=lambda: None, gated=lambda: None, failed=lambda _: None)
    for each in pods:
        index.changed(None, index.slim(each))
    return pods_within(index.single(), index.crowded())


WITHIN = pytest.mark.parametrize("within", [pods_within, by_watch], ids=["by list", "by watch"])


def wide(number: int) -> dict[str, Any]:
    """An executor of a shape of its own."""
    return executor(number, node="node-1", nodeSelector={"n": str(number)})


@WITHIN
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
    assert not any(each.is_preempted_by(1) for each in found.inside), "Spark's own are spared, those outside too"


def released(raw: dict[str, Any], pin: Pin, *place: str | None, node: str) -> dict[str, Any]:
    """As the API server has it once Ballast has released it to the place."""
    gated = held({**raw, "spec": {**raw["spec"], "schedulingGates": [GATE]}})
    assert gated is not None
    written = release_patch(gated, Placement("analytics/e", "uid", node, place, pin), LEVELS).node_affinity
    assert written is not None
    metadata = {**raw["metadata"], "managedFields": [pinned_by_us(CREATED)]}
    return {
        **raw,
        "metadata": metadata,
        "spec": {**raw["spec"], "nodeName": node, "affinity": {"nodeAffinity": written}},
    }


def assert_all_known(found: Within[Pod]) -> None:
    assert not found.outside
    assert not any(each.constraints.unread or each.beyond for each in found.inside)


@WITHIN
@pytest.mark.parametrize("labeled", [True, False], ids=["by its host label", "by its name"])
@pytest.mark.parametrize(
    "template", [{}, {"affinity": TEN_KIBIBYTES}], ids=["demanding nothing", "demanding one of 450 instance types"]
)
def test_executors_of_one_template_pinned_to_200_nodes_have_the_shape_of_those_that_are_gated(
    within: Any, template: Mapping[str, Any], *, labeled: bool
) -> None:
    nodes = [f"node-{number}" for number in range(200)]
    pinned = [
        released(executor(number, **template), Pin.NODE, "a", None, node if labeled else None, node=node)
        for number, node in enumerate(nodes)
    ]
    assert_all_known(within(read([*pinned, executor(200, gates=[GATE], **template)])))
    others = [executor(300 + n, gates=[GATE], nodeSelector={"n": str(n)}) for n in range(SHAPES.each)]
    assert [limit for _, limit in within(read([*pinned, *others])).outside] == [SHAPES], "one shape is taken"


@WITHIN
@pytest.mark.parametrize("pin", [Pin.ZONE, Pin.RACK])
def test_executors_of_60_applications_pinned_in_three_zones_come_in_next_to_their_gated_ones(
    within: Any, pin: Pin
) -> None:
    templates: list[dict[str, Any]] = [{"nodeSelector": {"application": str(number)}} for number in range(60)]
    pinned = [
        released(executor(number, **template), pin, zone, f"{zone}-1", "node-1", node="node-1")
        for number, (template, zone) in enumerate(product(templates, "abc"))
    ]
    gated = [executor(1_000 + number, gates=[GATE], **template) for number, template in enumerate(templates)]
    assert_all_known(within(read([*pinned, *gated])))


@WITHIN
def test_pinned_executors_of_too_many_templates_are_turned_away_as_gated_ones_are(within: Any) -> None:
    templates: list[dict[str, Any]] = [
        {"affinity": required({"matchExpressions": [expression(f"n-{number}", operator="Exists")]})}
        for number in range(SHAPES.each + 2)
    ]
    pinned = [
        released(executor(number, **template), Pin.ZONE, "a", None, "node-1", node="node-1")
        for number, template in enumerate(templates)
    ]
    assert [limit for _, limit in within(read(pinned)).outside] == [SHAPES, SHAPES]


@WITHIN
def test_what_an_author_demands_of_one_value_counts_until_ballast_has_pinned_the_executor(within: Any) -> None:
    gated = [
        executor(number, gates=[GATE], affinity=required({"matchExpressions": [expression("n", str(number))]}))
        for number in range(SHAPES.each + 2)
    ]
    assert [limit for _, limit in within(read(gated)).outside] == [SHAPES, SHAPES]


@WITHIN
def test_executors_of_one_long_template_have_one_shape_though_each_was_read_anew(within: Any) -> None:
    """What readers share is forgotten from time to time."""
    gated = [executor(number, gates=[GATE], affinity=TEN_KIBIBYTES) for number in range(400)]
    found = within([each for raw in gated for each in read([raw])])
    assert len({id(each.constraints) for each in found.inside}) == 400
    assert_all_known(found)
    assert not any(each.held is None or each.held.unread for each in found.inside)


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
