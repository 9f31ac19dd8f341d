from __future__ import annotations

import math

import pytest

from ballast.grouping.shuffle import Loads, RemoteLoad, connection_load, queue_capacity, queue_load


@pytest.mark.parametrize(("configured", "slots"), [(1, 1), (4, 4), (5, 8), (325, 512), (1024, 1024), (1025, 2048)])
def test_a_queue_has_the_next_power_of_two_in_slots(configured: int, slots: int) -> None:
    assert queue_capacity(configured) == slots


def test_a_queue_is_as_loaded_as_it_is_full() -> None:
    assert queue_load(waiting_messages=128, capacity_messages=512) == 0.25


@pytest.mark.parametrize(("pending", "load"), [(0, 0.0), (512, 0.5), (1024, 1.0), (4096, 1.0)])
def test_a_connection_is_full_from_1024_messages_on(pending: int, load: float) -> None:
    assert connection_load(pending) == load


def test_the_busier_of_queue_and_connection_counts() -> None:
    loads = Loads(remote={1: RemoteLoad(queue=0.2, connection=0.7), 2: RemoteLoad(queue=0.9, connection=0.7)})
    assert [loads.of(1), loads.of(2)] == [0.7, 0.9]


def test_what_is_measured_here_wins_over_a_report() -> None:
    assert Loads(local={1: 0.1}, remote={1: RemoteLoad(queue=0.9)}).of(1) == 0.1


def test_a_target_that_nobody_knows_counts_as_full() -> None:
    assert Loads(local={1: 0.1}).of(2) == 1.0


@pytest.mark.parametrize("figure", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_no_number_counts_as_full(figure: float) -> None:
    remote = {2: RemoteLoad(queue=figure, connection=0.2), 3: RemoteLoad(queue=0.2, connection=figure)}
    loads = Loads(local={1: figure}, remote=remote)
    assert [loads.of(target) for target in (1, 2, 3)] == [1.0, 1.0, 1.0]
