"""What executors exchange, as weights."""

from __future__ import annotations

import numpy as np
import pytest

from ballast.model import Anchor, Component, Stream
from ballast.placement.workload import traffic
from tests.builders import a_topology

PARTS = ("ingest", "sessions")


def test_what_nobody_declared_weighs_like_the_mean_of_what_was_declared() -> None:
    topology = a_topology(
        Component("ingest", exchange_bytes_per_second=10.0),
        Component("sessions"),
        streams=(Stream("ingest", "sessions", bytes_per_second=30.0),),
    )
    assert traffic(topology, PARTS).between.tolist() == [[10.0, 30.0], [30.0, 20.0]]


def test_where_nothing_was_declared_everything_weighs_one() -> None:
    topology = a_topology(Component("ingest"), Component("sessions"), streams=(Stream("ingest", "sessions"),))
    assert traffic(topology, PARTS).between.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_a_declared_nothing_weighs_nothing() -> None:
    topology = a_topology(Component("ingest", exchange_bytes_per_second=0.0))
    assert traffic(topology, ("ingest",)).total == 0.0


def test_a_component_that_the_topology_does_not_know_exchanges_among_its_own() -> None:
    assert traffic(a_topology(), ("stray",)).between.tolist() == [[1.0]]


def test_external_traffic_is_shared_out_over_its_anchors() -> None:
    near, far = Anchor(("a", None, None), 0.75), Anchor(("b", None, None), 0.25)
    kafka = Component("kafka", external=True, anchors=(near, far))
    topology = a_topology(kafka, Component("ingest"), streams=(Stream("kafka", "ingest", bytes_per_second=8.0),))
    flows = traffic(topology, ("ingest",))
    assert flows.pulls == ((0, near, 6.0), (0, far, 2.0))
    assert flows.total == 16.0


def test_what_flows_out_pulls_as_what_flows_in() -> None:
    there = Anchor(("a", None, None), 1.0)
    sink = Component("sink", external=True, anchors=(there,))
    topology = a_topology(sink, Component("ingest"), streams=(Stream("ingest", "sink", bytes_per_second=8.0),))
    assert traffic(topology, ("ingest",)).pulls == ((0, there, 8.0),)


def test_rates_are_known_only_when_all_of_them_are() -> None:
    declared = Component("ingest", exchange_bytes_per_second=1.0)
    assert traffic(a_topology(declared), ("ingest",)).known
    assert not traffic(a_topology(), ("ingest",)).known


@pytest.mark.parametrize("split", [(4, 0), (3, 1), (2, 2)])
def test_pairs_in_two_places_carry_what_the_shares_leave(split: tuple[int, int]) -> None:
    weight = float(traffic(a_topology(), ("ingest",)).per_pair(np.array([4.0]))[0, 0])
    crossing = weight * split[0] * split[1]
    assert crossing == pytest.approx(1 - sum((part / 4) ** 2 for part in split))
