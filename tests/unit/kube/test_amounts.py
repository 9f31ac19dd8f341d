from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.amounts import AmountReader
from ballast.model import Resources
from tests.unit.kube.builders import container, node, pod

GI = float(1 << 30)


def requests(**spec: Any) -> Resources:
    return AmountReader().requests(pod(**spec))


def cpu(amount: str, **more: Any) -> dict[str, Any]:
    return container(cpu=amount, memory="0", **more)


@pytest.mark.parametrize(
    ("spec", "cores"),
    [
        pytest.param({"containers": [cpu("1"), cpu("500m", name="log")]}, 1.5, id="containers add up"),
        pytest.param(
            {"containers": [cpu("1")], "initContainers": [cpu("3", name="init")]}, 3, id="the largest init container"
        ),
        pytest.param(
            {"containers": [cpu("2")], "initContainers": [cpu("1", name="init")]}, 2, id="a small init container"
        ),
        pytest.param(
            {
                "containers": [cpu("1")],
                "initContainers": [cpu("1", name="a"), cpu("2", name="b")],
            },
            2,
            id="init containers run one after the other",
        ),
        pytest.param(
            {"containers": [cpu("1")], "initContainers": [cpu("500m", name="proxy", restartPolicy="Always")]},
            1.5,
            id="a sidecar stays",
        ),
        pytest.param(
            {
                "containers": [cpu("1")],
                "initContainers": [cpu("1", name="proxy", restartPolicy="Always"), cpu("2", name="init")],
            },
            3,
            id="an init container next to the sidecar started before it",
        ),
        pytest.param(
            {
                "containers": [cpu("1")],
                "initContainers": [cpu("2", name="init"), cpu("500m", name="proxy", restartPolicy="Always")],
            },
            2,
            id="a sidecar started later is not next to an earlier init container",
        ),
        pytest.param({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}, 1.25, id="overhead"),
        pytest.param(
            {"containers": [cpu("1"), cpu("1", name="b")], "resources": {"requests": {"cpu": "4"}}},
            4,
            id="an amount for the whole pod",
        ),
        pytest.param({"containers": [{"name": "bare"}]}, 0, id="nothing asked for"),
    ],
)
def test_a_pod_asks_for(spec: dict[str, Any], cores: float) -> None:
    assert requests(**spec).cpu_cores == pytest.approx(cores)


def test_a_pod_counts_as_one_pod_and_devices_go_by_name() -> None:
    asked = {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "2", "ephemeral-storage": "1Gi"}
    found = requests(containers=[{"name": "c", "resources": {"requests": asked}}])
    assert found == Resources(1.0, 2 * GI, 1.0, (("ephemeral-storage", GI), ("nvidia.com/gpu", 2.0)))


def test_while_a_container_is_resized_in_place_the_larger_amount_counts() -> None:
    shrinking = pod(
        containers=[container(memory="1Gi")],
        status={
            "containerStatuses": [
                {"name": "spark-kubernetes-executor", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
            ]
        },
    )
    assert AmountReader().requests(shrinking).memory_bytes == 2 * GI


@pytest.mark.parametrize(
    ("status", "cores"),
    [
        pytest.param({}, 10_000.0, id="not decided yet"),
        pytest.param({"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}, 10_000.0, id="later"),
        pytest.param({"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}, 1.0, id="never"),
        pytest.param({"resize": "Infeasible"}, 1.0, id="never, before 1.33"),
    ],
)
def test_a_resize_that_its_node_can_never_give_does_not_count(status: dict[str, Any], cores: float) -> None:
    """kube-scheduler counts likewise. A user may ask for any amount, and would make the node look full."""
    given = {"name": "spark-kubernetes-executor", "resources": {"requests": {"cpu": "1"}}}
    reader = AmountReader()
    asking = container()
    asking["resources"] = {"requests": {"cpu": "10000"}}
    resized = pod(containers=[asking], status={"containerStatuses": [given], **status})
    reader.requests(pod(containers=[asking], status={"containerStatuses": [given]}))
    assert reader.requests(resized).cpu_cores == cores


@pytest.mark.parametrize(
    ("status", "cores"),
    [
        pytest.param({}, 10_000.0, id="before pods are resized as a whole"),
        pytest.param({"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}, 10_000.0, id="later"),
        pytest.param({"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}, 2.0, id="never"),
    ],
)
def test_a_resize_of_the_whole_pod_that_its_node_can_never_give_does_not_count(
    status: dict[str, Any], cores: float
) -> None:
    reader = AmountReader()
    spec: dict[str, Any] = {"containers": [cpu("1")], "resources": {"requests": {"cpu": "10000"}}}
    given = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2", "ephemeral-storage": "1Gi"}}
    reader.requests(pod(**spec, status=given))
    found = reader.requests(pod(**spec, status={**given, **status}))
    assert found == Resources(cores, 0.0, 1.0)


def test_while_a_whole_pod_is_resized_in_place_the_larger_amount_counts() -> None:
    spec: dict[str, Any] = {"containers": [cpu("100m")], "resources": {"requests": {"cpu": "100m"}}}
    assert AmountReader().requests(pod(**spec)).cpu_cores == pytest.approx(0.1)
    allocated = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}
    assert AmountReader().requests(pod(**spec, status=allocated)).cpu_cores == 3.0


@pytest.mark.parametrize(
    ("amounts", "found"),
    [
        pytest.param({"cpu": "1e30"}, Resources(0.0, GI, 1.0), id="CPU"),
        pytest.param({"cpu": "9300000000000000"}, Resources(0.0, GI, 1.0), id="CPU, in thousandths"),
        pytest.param({"cpu": "9200000000000000"}, Resources(9.2e15, GI, 1.0), id="what can be counted"),
        pytest.param({"memory": "1e30"}, Resources(1.0, 0.0, 1.0), id="memory"),
        pytest.param({"example.com/gpu": "1e30"}, Resources(1.0, GI, 1.0), id="any other"),
    ],
)
def test_what_is_too_large_for_kube_scheduler_to_count_counts_for_nothing_once_it_is_bound(
    amounts: dict[str, str], found: Resources
) -> None:
    """kube-scheduler binds it, and a pod of any user that costs nothing would make its node look full for good."""
    reader = AmountReader()
    asking = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi", **amounts}}}
    assert not reader.requests(pod(containers=[asking])).fits_in(Resources(1e6, 1e6 * GI, 1.0))
    assert reader.requests(pod(containers=[asking], node="node-1")) == found


def test_pods_of_one_template_share_one_value() -> None:
    reader = AmountReader()
    assert reader.requests(pod("a")) is reader.requests(pod("b"))


def test_allocatable_is_what_the_node_offers() -> None:
    offered = AmountReader().allocatable(node(allocatable={"cpu": "3920m", "memory": "8Gi", "pods": "110", "gpu": "1"}))
    assert offered == Resources(3.92, 8 * GI, 110.0, (("gpu", 1.0),))


def with_sidecars(count: int) -> dict[str, Any]:
    kinds = [f"example.com/{number}" for number in range(count)]
    sidecars = [{"name": kind, "restartPolicy": "Always", "resources": {"requests": {kind: "1"}}} for kind in kinds]
    return {"containers": [cpu("1")], "initContainers": [*sidecars, cpu("3", name="init")]}


def calls_to_read(spec: dict[str, Any]) -> int:
    events: list[str] = []
    sys.setprofile(lambda _frame, event, _argument: events.append(event))
    try:
        requests(**spec)
    finally:
        sys.setprofile(None)
    return len(events)


def test_sidecars_with_resources_of_their_own_are_read_in_linear_time() -> None:
    """A pod of one user with 8 000 of them took 8 s of each replica's watch of pods, at each of its changes."""
    found = requests(**with_sidecars(400))
    assert (found.cpu_cores, len(found.extended)) == (3.0, 400)
    assert calls_to_read(with_sidecars(400)) < 3 * calls_to_read(with_sidecars(200))


@given(st.lists(st.integers(0, 8), min_size=1, max_size=4), st.lists(st.tuples(st.integers(0, 8), st.booleans())))
def test_what_is_reserved_covers_every_moment_of_the_pod(app: list[int], inits: list[tuple[int, bool]]) -> None:
    spec = {
        "containers": [cpu(str(n), name=f"c{i}") for i, n in enumerate(app)],
        "initContainers": [
            cpu(str(n), name=f"i{i}", **({"restartPolicy": "Always"} if sidecar else {}))
            for i, (n, sidecar) in enumerate(inits)
        ],
    }
    moments, beside = [], 0
    for amount, sidecar in inits:
        moments.append(beside + amount)
        beside += amount if sidecar else 0
    assert requests(**spec).cpu_cores == max([*moments, beside + sum(app)])
