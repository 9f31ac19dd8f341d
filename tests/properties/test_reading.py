"""Whatever a history holds: it is refused, or what is read of it stands in it."""

from __future__ import annotations

import contextlib

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from ballast.simulation.recorded.reading import recording
from ballast.simulation.recording import Recording, UnusableRecordingError
from ballast.simulation.replay import replay
from tests.examples import examples
from tests.unit.simulation.histories import Row, table
from tests.unit.simulation.small_world import EAGER, by_spec, scenario

START_MS = 1_767_571_200_000
STEPS = 8
END_MS = START_MS + STEPS * 60_000
SIGNALS = (
    "nodeCpu", "nodeCpu", "nodeMemory", "nodeCores", "nodeAllocatableCores", "nodeAllocatableMemory", "nodeScore",
    "nodeUnschedulable",
    "placement", "placement", "executorCpu", "executorMemory", "executorNetwork", "executorRequestCores",
    "executorApplication", "decisions", "somethingElse",
)  # fmt: skip

values = st.one_of(
    st.sampled_from([0.0, 1.0, 2.0, 2.1, 3.0]), st.sampled_from([float("nan"), float("inf"), -1.0, -0.0, 1e300])
)
times = st.one_of(
    st.integers(-1, STEPS).map(lambda step: START_MS + step * 60_000),
    st.sampled_from([START_MS + 1, START_MS + 59_999]),
)
row = st.builds(
    Row,
    time_ms=times,
    signal=st.sampled_from(SIGNALS),
    node=st.sampled_from(["n1", "n2", "n3", None]),
    namespace=st.sampled_from(["team", "team", None]),
    pod=st.sampled_from(["a-exec-1", "a-exec-2", "b-exec-1", None]),
    detail=st.sampled_from([None, "", "move", "spark-1"]),
    value=values,
)


@st.composite
def histories(draw: st.DrawFn) -> list[Row]:
    """A history with something of everything in it, and then anything at all, in any order."""
    nodes = draw(st.lists(st.sampled_from(["n1", "n2"]), unique=True, min_size=1))
    sound = [
        Row(START_MS + step * 60_000, signal, name, None, None, None, value)
        for name in nodes
        for step in range(STEPS)
        for signal, value in (("nodeCpu", 1.5), ("nodeCores", 4.0))
        if draw(st.integers(0, 9)) > 0
    ]
    first, last = draw(st.integers(0, 3)), draw(st.integers(4, STEPS - 1))
    sound += [
        Row(START_MS + step * 60_000, signal, nodes[0], "team", "a-exec-1", None, 1.0)
        for step in range(first, last)
        for signal in ("placement", "executorCpu")
    ]
    return draw(st.permutations([*sound, *draw(st.lists(row, max_size=20))]))


def read(rows: list[Row]) -> Recording | None:
    with contextlib.suppress(UnusableRecordingError):
        return recording(table(rows), pool="any", start_ms=START_MS, end_ms=END_MS)
    return None


@examples(150)
@given(histories())
def test_every_figure_of_a_node_stands_in_the_history_or_between_two_that_do(rows: list[Row]) -> None:
    found = read(rows)
    assume(found is not None)
    assert found is not None
    assert (found.start * 1000, found.steps) >= (START_MS, 1)
    assert found.start + found.duration_seconds < END_MS / 1000
    for step, index in np.argwhere(np.isfinite(found.node_cpu)).tolist():
        at = round((found.start + step * found.step_seconds) * 1000)
        there = [r.value for r in rows if (r.time_ms, r.signal, r.node) == (at, "nodeCpu", found.nodes[index].name)]
        sound = [value for value in there if np.isfinite(value) and value >= 0]
        assert min(sound) <= found.node_cpu[step, index] <= max(sound)


@examples(150)
@given(histories())
def test_what_is_read_can_be_replayed_and_nothing_moved_gives_its_scores(rows: list[Row]) -> None:
    found = read(rows)
    assume(found is not None)
    assert found is not None
    still = {**EAGER, "moves": {**EAGER["moves"], "mode": "Disabled", "settle": "10m"}}
    trace = replay(found, by_spec({**still, "interval": "1m"}, scenario(), name="any")).trace
    sizes = np.array([node.cores for node in found.nodes])
    rows_at = np.array([found.step_at(time) for time in trace.times])
    np.testing.assert_allclose(trace.scores, (100.0 * found.node_cpu / sizes)[rows_at], rtol=1e-9)
