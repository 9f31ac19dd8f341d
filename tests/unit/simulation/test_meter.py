from __future__ import annotations

import numpy as np
import pytest

from ballast.simulation.demand import Demand
from ballast.simulation.meter import Reading, Scraper, Window
from tests.unit.simulation.small_world import cluster, policy, scenario


def read(cores: float, *, contention: float = 0.8, pressure: bool = False) -> Reading:
    """One node of twenty cores on which executors want so many."""
    nodes = [{"name": "node", "cores": 20, "contention": contention}]
    spec = scenario(
        nodes=nodes,
        applications=[{"name": "job", "executors": 1, "load": {"cores": cores}, "runsOn": ["node"]}],
        metrics={"pressure": pressure},
    ).spec
    pool = cluster(nodes, executors=1, load={"cores": cores}, runsOn=["node"])
    scraper = Scraper(spec, policy(), pool, Demand(spec, pool.fleet, pool.executor_slots, 1), 1)
    scraper.scrape(0.0)
    return scraper.query(0.0)


@pytest.mark.parametrize(
    ("cores", "contention", "slowdown"),
    [
        pytest.param(0.001, 0.8, 1.0, id="idle"),
        pytest.param(10, 0.5, 1 / 0.75, id="half busy"),
        pytest.param(20, 0.8, 5.0, id="busy"),
        pytest.param(30, 0.8, 7.5, id="cores are missing"),
        pytest.param(20, 0.0, 1.0, id="without contention"),
        pytest.param(30, 0.0, 1.5, id="without contention, cores are missing"),
    ],
)
def test_tasks_are_slower_the_busier_their_node(cores: float, contention: float, slowdown: float) -> None:
    assert read(cores, contention=contention).slowdown[0] == pytest.approx(slowdown, abs=1e-3)


def test_pressure_is_measured_where_the_scenario_asks_for_it() -> None:
    assert read(16).node_pressure is None
    shares = [read(cores, pressure=True).node_pressure for cores in (0.001, 10, 16, 20, 40)]
    found = np.array([each[0] for each in shares if each is not None])
    assert found == pytest.approx([0.0, 0.01, 0.13, 0.45, 1.0], abs=0.01)


def filled(*rows: tuple[float, list[float]]) -> Window:
    window = Window(2, 4)
    for time, values in rows:
        window.add(time, np.array(values))
    return window


def test_a_mean_is_over_the_samples_after_the_beginning_and_up_to_the_end() -> None:
    window = filled((0.0, [9, 9]), (15.0, [1, 2]), (30.0, [3, 4]), (45.0, [99, 99]))
    assert window.mean(0.0, 30.0).tolist() == [2.0, 3.0]


def test_missing_samples_count_for_nothing_and_none_at_all_gives_nan() -> None:
    window = filled((15.0, [1, np.nan]), (30.0, [np.nan, np.nan]))
    means = window.mean(0.0, 30.0)
    assert means[0] == 1.0
    assert np.isnan(means[1])
    assert window.newest(30.0).tolist() == [15.0, -np.inf]


def test_the_oldest_sample_makes_room_for_a_new_one() -> None:
    window = filled(*((15.0 * i, [float(i), 0.0]) for i in range(6)))
    assert window.mean(-1.0, 100.0)[0] == 3.5


def test_what_is_forgotten_is_gone_and_the_rest_stays() -> None:
    window = filled((0.0, [1, 2]))
    window.forget(np.array([True, False]))
    means = window.mean(-1.0, 0.0)
    assert np.isnan(means[0])
    assert means[1] == 2.0
