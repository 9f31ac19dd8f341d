"""Series of a tenant's pod about a node, or that no query expects; test_promises.py has those about other pods."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ballast.cli.discover import QUERIES as DISCOVER
from ballast.prometheus import Endpoint, Prometheus, Queries, Reading
from ballast.sizing.executor_metrics import QUERIES as SIZE
from ballast.sizing.executor_metrics import WINDOW_SECONDS
from tests.cluster.forged_metrics import APPLICATION, OWN, RATE, SEEN, STATE, Scene, forging, values

pytestmark = pytest.mark.cluster


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with forging(tmp_path) as found:
        yield found


def test_a_tenants_pod_can_not_export_the_values_of_a_node(scene: Scene) -> None:
    scene.awaited("the node's own memory", lambda reading: memory(reading) == 0.25)
    scene.attacker.values = {
        'container_memory_working_set_bytes{id="/",node="n"}': 8.0 * (1 << 30),
        f'{STATE}{{application_id="{APPLICATION}"}}': 1.0,
    }
    attacked = scene.awaited("the forged series to be seen", lambda reading: bool(reading.dropped))
    assert memory(attacked) == 0.25


@pytest.mark.soak
def test_series_that_name_an_application_twice_end_no_query(scene: Scene) -> None:
    """They name it in a label and in their own name."""
    named = "metrics_spark_" + 32 * "a"
    scene.attacker.values = {
        f"{name.replace('metrics_orders', named)}{{{labels}}}": 1.0
        for name in (*SEEN, RATE)
        for labels in ("", 'application_id="spark-2"', f'application_id="spark-{32 * "a"}"', 'query="q"')
    }
    for signal in ("stateBytes", "batchMilliseconds"):
        scene.await_answer(signal, lambda found: len(found) == 3)
    scene.awaited("the victim's own values", lambda reading: values(reading) == OWN)
    for asked in (SIZE, DISCOVER):
        _, failures = Prometheus(Endpoint(scene.url)).ask(Queries.of_each_namespace(asked), WINDOW_SECONDS)
        assert failures == {}


def memory(reading: Reading) -> float | None:
    return reading.nodes["n"].memory_ratio if "n" in reading.nodes else None
