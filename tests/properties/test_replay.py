"""What holds of every replay, whatever was recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ballast.model import Phase
from ballast.model.arrays import BoolArray, FloatArray
from ballast.simulation.recorded.executors import Arrivals
from ballast.simulation.recorded.slots import slots
from ballast.simulation.recording import RecordedExecutor, RecordedNode, Recording
from ballast.simulation.replay import Replay, replay
from tests.examples import examples
from tests.unit.simulation.recordings import GIB, Witness, recorded
from tests.unit.simulation.small_world import EAGER, by_spec, policy, scenario

cores = st.floats(0, 12).map(lambda value: round(value, 6))


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """Nodes and executors that come and go, some figures missing, some nodes busier than they are large."""
    steps, count = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    stays = [_stay(draw, 0, steps - 1) for _ in range(count)]
    present = np.zeros((steps, count), dtype=bool)
    for node, (first, last) in enumerate(stays):
        present[first : last + 1, node] = True
    members = tuple(_executor(draw, number, stays) for number in range(draw(st.integers(0, 8))))
    executor_cpu = np.full((steps, len(members)), np.nan)
    for index, each in enumerate(members):
        for step in range(each.first, each.last + 1):
            executor_cpu[step, index] = draw(st.one_of(st.just(np.nan), cores))
    figures = np.array([[draw(st.one_of(st.just(np.nan), cores)) for _ in range(count)] for _ in range(steps)])
    node_cpu = np.where(present, figures, np.nan)
    sizes = [draw(st.sampled_from([2.0, 4.0, 8.0])) for _ in range(count)]
    return Recording(
        pool="any",
        start=1_767_571_200.0,
        step_seconds=draw(st.sampled_from([15.0, 60.0, 300.0])),
        nodes=tuple(RecordedNode(f"n{i}", size, 16 * GIB, size + 1) for i, size in enumerate(sizes)),
        executors=members,
        present=present,
        node_cpu=node_cpu,
        node_memory=_memory(draw, present) if draw(st.booleans()) else np.full(node_cpu.shape, np.nan),
        scores=np.full(node_cpu.shape, np.nan),
        executor_cpu=executor_cpu,
        executor_memory=np.full(executor_cpu.shape, np.nan),
    )


def _memory(draw: st.DrawFn, present: BoolArray) -> FloatArray:
    """Bytes, of 16 GiB."""
    shares = st.one_of(st.just(np.nan), st.floats(0, 1).map(lambda value: round(value, 6)))
    drawn = np.array([[draw(shares) for _ in row] for row in present])
    return np.where(present, 16 * GIB * drawn, np.nan)


def _stay(draw: st.DrawFn, earliest: int, latest: int) -> tuple[int, int]:
    first = draw(st.integers(earliest, latest))
    return first, draw(st.integers(first, latest))


def _executor(draw: st.DrawFn, number: int, stays: list[tuple[int, int]]) -> RecordedExecutor:
    node = draw(st.integers(0, len(stays) - 1))
    first, last = _stay(draw, *stays[node])
    application = draw(st.sampled_from(["one", "two"]))
    return RecordedExecutor("team", f"{application}-exec-{number}", application, node, first, last, 0.5)


def spec(recording: Recording, mode: str) -> dict[str, Any]:
    return {
        **EAGER,
        "interval": f"{recording.step_seconds:g}s",
        "shedding": {"strategy": "AvgShedder", "avgShedder": {"minHotScore": 0, "lowHits": 1, "lowThreshold": 5}},
        "moves": {**EAGER["moves"], "mode": mode, "minExecutorAge": "0s", "settle": "10m"},
    }


@examples(40)
@given(recordings())
def test_a_policy_that_moves_nothing_gives_the_recorded_scores(recording: Recording) -> None:
    trace = replay(recording, by_spec(spec(recording, "Disabled"), scenario(), name="any")).trace
    sizes = np.array([node.cores for node in recording.nodes])
    assert trace.times.tolist() == [step * recording.step_seconds for step in range(recording.steps)]
    np.testing.assert_allclose(trace.scores, 100.0 * recording.node_cpu / sizes, rtol=1e-12)
    assert trace.moves == ()


@examples(40)
@given(st.integers(0, 2**16), st.floats(0.05, 1.0))
def test_a_run_that_moved_nothing_is_replayed_with_the_scores_that_it_had(seed: int, deviation: float) -> None:
    noise = {"kind": "Noise", "deviation": deviation}
    bundles = {"name": "bundle", "copies": 10, "runsOn": {"node-0": 8, "node-1": 2}}
    world = scenario(duration="10m", seed=seed, applications=[{**bundles, "load": {"cores": 1, "vary": [noise]}}])
    still = policy(mode="Disabled")
    trace, history, _ = recorded(world, still)
    again = replay(history, still).trace
    np.testing.assert_array_equal(again.times, trace.times)
    assert np.isfinite(trace.scores).any()
    np.testing.assert_allclose(again.scores, trace.scores, rtol=1e-9)


def as_the_operator_scores(recording: Recording, *, cpu: float, memory: float) -> FloatArray:
    """Percent, by the weights: the larger of both, where the pool has memory's figures at all in that step."""
    used = cpu * recording.node_cpu / np.array([node.cores for node in recording.nodes])
    filled = memory * recording.node_memory / np.array([node.memory_bytes for node in recording.nodes])
    both = np.isfinite(used) & np.isfinite(filled)
    with_memory = both.any(axis=1, keepdims=True)
    return 100.0 * np.where(with_memory, np.where(both, np.maximum(used, filled), np.nan), used)


@examples(40)
@given(recordings(), st.sampled_from([50, 100, 200]))
def test_so_does_one_that_goes_by_memory_too(recording: Recording, weight: int) -> None:
    weighted = {
        **spec(recording, "Disabled"),
        "metrics": {**EAGER.get("metrics", {}), "weights": {"memoryPercent": weight}},
    }
    trace = replay(recording, by_spec(weighted, scenario(), name="any")).trace
    expected = as_the_operator_scores(recording, cpu=1.0, memory=weight / 100)
    np.testing.assert_allclose(trace.scores, expected, rtol=1e-12)


@examples(40)
@given(recordings())
def test_a_policy_that_moves_nothing_sees_every_executor_where_it_was(recording: Recording) -> None:
    witness = Witness()
    replay(recording, by_spec(spec(recording, "Disabled"), scenario(), name="any"), planner=witness)
    chain = slots(recording)
    for step, snapshot in enumerate(witness.seen):
        there = chain.occupant[step][chain.occupant[step] >= 0]
        expected = {(recording.executors[i].name, recording.nodes[recording.executors[i].node].name) for i in there}
        assert {(each.name, each.node) for each in snapshot.executors} == expected
        used = {each.name: each.usage.cpu_cores if each.usage else None for each in snapshot.executors}
        silent = np.isnan(recording.node_cpu[step]).all()
        figures = {recording.executors[i].name: recording.executor_cpu[step, i] for i in there}
        assert used == {name: None if silent or np.isnan(cpu) else cpu for name, cpu in figures.items()}


@examples(40)
@given(recordings(), st.sampled_from(Arrivals))
def test_no_executor_is_doubled_or_lost_whatever_is_moved(recording: Recording, arrivals: Arrivals) -> None:
    witness = Witness()
    policy = by_spec(spec(recording, "Enforce"), scenario(), name="any")
    first = replay(recording, policy, how=Replay(arrivals=arrivals), planner=witness).trace
    chain = slots(recording)
    begins = [min(e.first for e, s in zip(recording.executors, chain.slot_of, strict=True) if s == slot)
              for slot in range(chain.count)]  # fmt: skip
    ends = [max(e.last for e, s in zip(recording.executors, chain.slot_of, strict=True) if s == slot)
            for slot in range(chain.count)]  # fmt: skip
    for snapshot in witness.seen:
        step = recording.step_at(snapshot.taken_at - recording.start)
        lanes = [int(each.uid.partition(".")[0]) for each in snapshot.executors]
        assert len(lanes) == len(set(lanes))
        assert all(begins[lane] <= step <= ends[lane] for lane in lanes)
        listed = {node.name for node in snapshot.nodes}
        assert all(each.node in listed for each in snapshot.executors if each.phase is Phase.RUNNING)
    second = replay(recording, policy, how=Replay(arrivals=arrivals)).trace
    assert first.moves == second.moves
    np.testing.assert_array_equal(first.scores, second.scores)
