"""What holds of routing and of the shuffle grouping whatever the targets, their places and their loads."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ballast.enums import Scope
from ballast.grouping.fair import fair
from ballast.grouping.place import Place, reach
from tests.reference.storm.shuffle import Loads, Shuffle

names = st.sampled_from("abc")
places = st.builds(Place, names, process=st.integers(1, 2), rack=st.none() | names, zone=st.none() | names)
zoneless = st.builds(Place, names, process=st.integers(1, 2), rack=st.none() | names)
target_places = st.lists(st.none() | places, min_size=1, max_size=8)
measured = st.floats(0, 1) | st.sampled_from([math.nan, math.inf, -math.inf])
rounds_of_loads = st.lists(st.lists(measured, min_size=8, max_size=8), max_size=12)


def made(source: Place, targets: list[Place | None], seed: int = 0) -> Shuffle:
    return Shuffle(source, range(len(targets)), targets, random=np.random.default_rng(seed))


def refresh(shuffle: Shuffle, loads: list[float]) -> None:
    shuffle.refresh(Loads(local=dict(enumerate(loads))))


@given(places, target_places, rounds_of_loads)
def test_only_targets_within_the_scope_are_chosen(
    source: Place, targets: list[Place | None], rounds: list[list[float]]
) -> None:
    shuffle, around = made(source, targets), reach(source, targets)
    for loads in rounds:
        refresh(shuffle, loads)
        assert set(shuffle.choose(shuffle.route.ring.size)) <= set(around.within[shuffle.route.scope])


@given(places, target_places, rounds_of_loads)
def test_the_scope_moves_one_step_at_a_time(
    source: Place, targets: list[Place | None], rounds: list[list[float]]
) -> None:
    shuffle, around = made(source, targets), reach(source, targets)
    for loads in rounds:
        before = around.scopes.index(shuffle.route.scope)
        refresh(shuffle, loads)
        assert abs(around.scopes.index(shuffle.route.scope) - before) <= 1


@given(zoneless, st.lists(st.none() | places, min_size=1, max_size=8))
def test_a_sender_without_a_zone_has_the_four_scopes_of_storm(source: Place, targets: list[Place | None]) -> None:
    around = reach(source, targets)
    assert around.scopes == (Scope.PROCESS, Scope.NODE, Scope.RACK, Scope.CLUSTER)
    assert around.within[Scope.CLUSTER].size == len(targets)


@given(places, target_places, rounds_of_loads)
def test_weights_stay_between_nothing_and_a_hundred(
    source: Place, targets: list[Place | None], rounds: list[list[float]]
) -> None:
    shuffle = made(source, targets)
    for loads in rounds:
        refresh(shuffle, loads)
        assert shuffle.route.weights.min() >= 0
        assert shuffle.route.weights.max() <= 100


@given(places, target_places, rounds_of_loads)
def test_someone_in_scope_always_has_weight(
    source: Place, targets: list[Place | None], rounds: list[list[float]]
) -> None:
    shuffle, around = made(source, targets), reach(source, targets)
    for loads in rounds:
        refresh(shuffle, loads)
        assert shuffle.route.weights[around.within[shuffle.route.scope]].max() > 0


@given(places, target_places, st.lists(st.integers(0, 2500), max_size=5))
def test_many_choices_are_what_single_ones_would_have_been(
    source: Place, targets: list[Place | None], amounts: list[int]
) -> None:
    one_by_one, at_once = made(source, targets), made(source, targets)
    for amount in amounts:
        chosen = at_once.choose(amount)
        assert chosen.dtype == np.int32
        assert chosen.tolist() == [one_by_one.choose_one() for _ in range(amount)]


@given(places, target_places, rounds_of_loads)
def test_the_same_randomness_gives_the_same_ring(
    source: Place, targets: list[Place | None], rounds: list[list[float]]
) -> None:
    one, other = made(source, targets, seed=7), made(source, targets, seed=7)
    for loads in rounds:
        refresh(one, loads)
        refresh(other, loads)
    assert (one.route.ring == other.route.ring).all()


zone_names = st.sampled_from(["a", "b", "c", ""])
counts = st.dictionaries(zone_names, st.floats(0.1, 10), min_size=1)
rooms = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.floats(0.05, 1)), min_size=1, max_size=8)


@given(counts, rooms)
def test_as_much_stays_in_its_zone_as_any_even_load_allows(
    senders: dict[str, float], targets: list[tuple[str | None, float]]
) -> None:
    """Against a linear program: from each zone to each target, with the least that leaves the zone."""
    zones, room = [zone for zone, _ in targets], np.array([each for _, each in targets])
    room /= room.sum()
    supply = np.array(list(senders.values())) / sum(senders.values())
    rows = np.array([fair(own, senders, zones, room) for own in senders])
    away = np.array([[own != zone for zone in zones] for own in senders], dtype=float)
    sums = np.vstack([np.kron(np.eye(supply.size), np.ones(room.size)), np.tile(np.eye(room.size), supply.size)])
    best = linprog(away.ravel(), A_eq=sums, b_eq=np.concatenate([supply, room]))
    assert rows.min() >= 0.0
    assert (supply @ rows).tolist() == pytest.approx(room.tolist())
    assert float((supply[:, None] * rows * away).sum()) == pytest.approx(best.fun, abs=1e-6)
