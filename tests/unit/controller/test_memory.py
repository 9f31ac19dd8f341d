from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.policy_status import PolicyStatus
from ballast.api.topology import SparkTopology
from ballast.controller.memory import (
    _MOST_UNPACKED_BYTES,
    _packed,
    _unpacked,
    application_status,
    attempts_status,
    bounded_placement,
    hits_status,
    recalled,
    state_status,
    topology_placement,
)
from ballast.model import Attempts, Memory, NodeHits

DECLARED = "team/clicks"

word = st.text("abcdefghij-", min_size=1, max_size=20)
seconds = st.integers(0, 4_000_000_000).map(float)
counts = st.dictionaries(word, st.integers(1, 99), min_size=1, max_size=5).map(lambda d: tuple(sorted(d.items())))
places = st.dictionaries(st.tuples(st.sampled_from([DECLARED, "team/spark-1", "b/spark-2"]), word), counts, max_size=8)
attempts = st.dictionaries(st.tuples(word, word), st.tuples(st.integers(1, 9), seconds), max_size=8)


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    return Memory(
        shedding=tuple(sorted(draw(st.dictionaries(word, st.text(max_size=200), max_size=3)).items())),
        placements=tuple((topology, component, at) for (topology, component), at in sorted(draw(places).items())),
        placement_state=tuple(sorted(draw(st.dictionaries(word, st.text(max_size=200), max_size=1)).items())),
        attempts=tuple(Attempts(*key, *rest) for key, rest in sorted(draw(attempts).items())),
    )


def stored(memory: Memory) -> Memory:
    """What another process makes of what this one left in status."""
    policy = PolicyStatus(
        applications=application_status(memory, frozenset({DECLARED})),
        attempts=attempts_status(memory),
        state=state_status(memory),
    )
    topology = SparkTopology.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "SparkTopology",
            "metadata": {"name": "clicks", "namespace": "team"},
            "spec": {"components": [{"name": "ingest"}]},
            "status": {"placement": topology_placement(memory, DECLARED)},
        }
    )
    written = json.loads(json.dumps(policy.to_dict()))
    return recalled(PolicyStatus.model_validate(written), [topology])


@given(memories())
def test_what_is_remembered_survives_a_restart(memory: Memory) -> None:
    after = stored(memory)
    assert after.placements == memory.placements
    assert after.attempts == memory.attempts
    assert after.shedding == tuple((name, text) for name, text in memory.shedding if text)
    assert after.placement_state == tuple((name, text) for name, text in memory.placement_state if text)


def test_how_far_components_may_spread_is_read_from_their_topologys_status() -> None:
    topology = SparkTopology.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "SparkTopology",
            "metadata": {"name": "clicks", "namespace": "team"},
            "spec": {"components": [{"name": "ingest"}, {"name": "sessions"}]},
            "status": {"components": [{"name": "ingest", "scope": "Rack"}, {"name": "sessions"}]},
        }
    )
    assert recalled(PolicyStatus(), [topology]).scopes == ((DECLARED, "ingest", "Rack"),)


def test_state_that_cannot_be_read_starts_again() -> None:
    assert recalled(PolicyStatus(state={"AvgShedder": "not base64 of zlib"}), []).shedding == ()


def test_state_that_unpacks_to_more_than_any_state_starts_again() -> None:
    bomb = _packed("0" * (20 * _MOST_UNPACKED_BYTES))
    assert len(bomb) < 1 << 16
    assert _unpacked(bomb) == ""
    assert _unpacked(_packed("0" * (_MOST_UNPACKED_BYTES - 1))) != ""


def test_of_too_many_hits_the_highest_are_kept() -> None:
    kept = hits_status({f"n{i:03}": NodeHits(low=i) for i in range(500)})
    assert min(each.low for each in kept) == 500 - len(kept)
    assert [each.node for each in kept] == sorted(each.node for each in kept)


def test_of_too_many_places_those_with_the_most_executors_are_kept() -> None:
    counts = tuple((f"node-{i:04}", 1 + i % 7) for i in range(5000))
    kept = topology_placement(Memory(placements=((DECLARED, "ingest", counts),)), DECLARED)["ingest"]
    assert 100 < len(kept) < 5000
    assert min(kept.values()) >= max(count for node, count in counts if node not in kept)
    assert len(json.dumps(kept, separators=(",", ":"))) < 41_000


@pytest.mark.parametrize("most_bytes", [20_000, 40_000])
def test_a_placement_keeps_to_its_bytes_however_long_the_names_of_its_components(most_bytes: int) -> None:
    counts = [(f"node-{number:04}", 1) for number in range(100)]
    kept = bounded_placement({f"{'c' * 59}-{number:03}": counts for number in range(100)}, most_bytes=most_bytes)
    assert all(kept.values())
    assert len(json.dumps(kept, separators=(",", ":"))) <= most_bytes


def test_state_that_is_more_than_a_status_may_hold_is_left_out_and_other_state_is_kept() -> None:
    noise = Random(1).randbytes(200_000).hex()
    kept = state_status(Memory(shedding=(("Large", noise), ("Small", "{}"))))
    assert kept.keys() == {"Small"}


def test_since_when_nodes_are_about_to_go_survives_a_restart() -> None:
    memory = Memory(notices=(("node-1", "aws-node-termination-handler/spot-itn", 1000.5),), shedding=(("Small", "{}"),))
    assert recalled(PolicyStatus(state=state_status(memory)), []) == memory
    broken = state_status(Memory(shedding=(("Notices", "no JSON"),)))
    assert recalled(PolicyStatus(state=broken), []).notices == ()
