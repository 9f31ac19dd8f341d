from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ballast.simulation.policies import from_name
from ballast.simulation.recorded.reading import extended
from ballast.simulation.recorded.reading import recording as read
from ballast.simulation.recording import RecordedExecutor, Recording, UnusableRecordingError
from ballast.simulation.scenario import Scenario
from tests.unit.simulation.histories import Row, history, table, time_of
from tests.unit.simulation.recordings import executor, node, recorded, recording

NODE_FAILURE = Path(__file__).parents[4] / "examples" / "scenarios" / "node-failure.yaml"
GIVEN = recording([executor(1, 0, last=3), executor(2, 1, first=4), executor(3, 1)])

HOUR = recording([executor(1, 0, last=59)], steps=60)


def again(rows: list[Row], given: Recording = GIVEN) -> Recording:
    end = time_of(given, given.steps)
    return read(table(rows), pool=given.pool, start_ms=time_of(given, 0), end_ms=end)


def same(one: Recording, other: Recording) -> None:
    order = [[each.name for each in other.executors].index(each.name) for each in one.executors]
    assert (one.start, one.step_seconds, one.nodes) == (other.start, other.step_seconds, other.nodes)
    assert one.executors == tuple(other.executors[index] for index in order)
    for name in ("present", "cordoned", "node_cpu", "node_memory", "scores"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("executor_cpu", "executor_memory"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[:, order], err_msg=name)


def test_a_history_is_read_as_what_it_was_made_of() -> None:
    found = again(history(GIVEN))
    same(found, GIVEN)
    assert found.unknown == ()


def test_the_order_of_rows_does_not_count_nor_do_rows_that_stand_there_twice() -> None:
    rows = history(GIVEN)
    same(again([*reversed(rows), *rows[::3]]), GIVEN)


def test_nodes_and_executors_that_came_and_went_are_found_again() -> None:
    world = Scenario.read(NODE_FAILURE)
    _, given, _ = recorded(world, from_name("None", world))
    same(again(history(given), given), given)


def test_the_operators_passes_are_found_once_each_and_only_those_of_the_window() -> None:
    given = replace(GIVEN, passes=(30.0, 150.0, 270.0))
    before = Row(time_of(given, 0), "pass", None, None, None, None, given.start - 90.0)
    assert again([before, *history(given)], given).passes == given.passes


def test_scores_are_held_against_the_figures_of_the_pass_that_they_are_of() -> None:
    """Steps are of a minute, passes of three, and the figures rise every minute."""
    rising = GIVEN.node_cpu + 0.2 * np.arange(GIVEN.steps)[:, None]
    current, of_pass = 100.0 * rising / 4.0, [step - step % 3 for step in range(GIVEN.steps)]
    passes = tuple(60.0 * step for step in range(0, GIVEN.steps, 3))
    given = replace(GIVEN, node_cpu=rising, scores=current[of_pass], passes=passes)
    assert np.abs(current - given.scores).mean() > 2.0, "step by step, they are far apart"
    assert again(history(given), given).unknown == ()


def without(signal: str) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [row for row in rows if row.signal != signal]


def changed(signal: str, value: float, *, every: int = 1) -> Callable[[list[Row]], list[Row]]:
    """Every so many-th figure of the signal is another one."""

    def spoil(rows: list[Row]) -> list[Row]:
        numbers = [index for index, row in enumerate(rows) if row.signal == signal][::every]
        return [row._replace(value=value) if index in numbers else row for index, row in enumerate(rows)]

    return spoil


def shifted(milliseconds: int, *, every: int) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [
        row._replace(time_ms=row.time_ms + milliseconds) if index % every == 0 else row
        for index, row in enumerate(rows)
    ]


def set_clock(milliseconds: int) -> Callable[[list[Row]], list[Row]]:
    """In the middle, somebody sets the clock that times come from."""
    return lambda rows: [
        row._replace(time_ms=row.time_ms + milliseconds) if row.time_ms >= time_of(GIVEN, 5) else row for row in rows
    ]


def doubled(signal: str, factor: float) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [*rows, *(row._replace(value=row.value * factor) for row in rows if row.signal == signal)]


def torn(rows: list[Row]) -> list[Row]:
    return [*rows, *(row._replace(node="n1") for row in rows if row.pod == "clicks-exec-3")]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (changed("nodeCpu", float("nan"), every=4), "5 figures are negative or no numbers and were left out"),
        (changed("nodeCpu", float("inf"), every=4), "5 figures are negative or no numbers and were left out"),
        (changed("executorCpu", -1.0, every=10), "2 figures are negative or no numbers and were left out"),
        (shifted(7, every=20), "figures are not at the times of the others and were left out"),
        (doubled("executorCpu", 2.0), "40 figures contradict others of the same thing and time"),
        (torn, "1 executors seem to be on several nodes"),
        (changed("nodeScore", 99.0), "the operator's own scores differ from those of the recorded CPU by"),
        (changed("nodeAllocatableCores", 8.0, every=3), "what nodes offer to pods has changed"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_left_out_and_told(spoil: Callable[[list[Row]], list[Row]], words: str) -> None:
    given = replace(GIVEN, scores=100.0 * GIVEN.node_cpu / 4.0)
    found = again(spoil(history(given)), given)
    assert [line for line in found.unknown if words in line], found.unknown
    known = np.isfinite(found.node_cpu)
    np.testing.assert_array_equal(found.node_cpu[known], GIVEN.node_cpu[: found.steps][known])


def test_replicas_that_agree_are_averaged() -> None:
    found = again(doubled("nodeCpu", 1.05)(history(GIVEN)))
    np.testing.assert_allclose(found.node_cpu, GIVEN.node_cpu * 1.025)
    assert found.unknown == ()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (without("nodeCpu"), "no node has figures of its CPU at two times"),
        (
            lambda rows: [row for row in rows if row.time_ms == time_of(GIVEN, 0)],
            "no node has figures of its CPU at two times",
        ),
        (shifted(7, every=3), "are not at the times of the others, which are [0-9.]+ s apart"),
        (set_clock(20_000), "are not at the times of the others, which are 60 s apart"),
        (set_clock(-20_000), "are not at the times of the others, which are 60 s apart"),
        (lambda rows: without("nodeCores")(without("nodeAllocatableCores")(rows)), "both size and CPU are known"),
    ],
)
def test_what_would_give_wrong_figures_is_refused(spoil: Callable[[list[Row]], list[Row]], words: str) -> None:
    with pytest.raises(UnusableRecordingError, match=words):
        again(spoil(history(GIVEN)))


def test_a_clock_that_goes_forward_by_whole_steps_leaves_a_gap() -> None:
    rows = set_clock(180_000)(history(GIVEN))
    found = read(table(rows), pool="streaming", start_ms=time_of(GIVEN, 0), end_ms=time_of(GIVEN, 13))
    assert np.isnan(found.node_cpu[5:8]).all()
    np.testing.assert_array_equal(found.node_cpu[8:], GIVEN.node_cpu[5:])


def test_a_clock_that_goes_back_by_whole_steps_leaves_out_what_contradicts_itself() -> None:
    rising = replace(GIVEN, node_cpu=np.arange(1.0, 11.0)[:, None] * [1.0, 2.0])
    found = again(set_clock(-180_000)(history(rising)), rising)
    assert np.isnan(found.node_cpu[2:5]).all()
    np.testing.assert_array_equal(found.node_cpu[:2], rising.node_cpu[:2])
    assert any("figures contradict others of the same thing and time" in line for line in found.unknown)


def test_a_gap_in_everything_leaves_nodes_and_executors_where_they_were() -> None:
    given = recording([executor(1, 0, last=59), executor(2, 1, last=59)], steps=60)
    rows = [row for row in history(given) if not time_of(given, 10) <= row.time_ms < time_of(given, 40)]
    found = again(rows, given)
    assert found.present.all()
    assert [(each.first, each.last) for each in found.executors] == [(0, 59), (0, 59)]
    assert np.isnan(found.node_cpu[10:40]).all()


def test_a_node_of_which_nothing_is_heard_for_long_is_gone_and_its_executors_with_it() -> None:
    given = recording([executor(1, 0, last=59), executor(2, 1, last=59)], steps=60)
    rows = [
        row for row in history(given) if row.node != "n2" or not time_of(given, 10) <= row.time_ms < time_of(given, 40)
    ]
    found = again(rows, given)
    assert found.present[:, 1].tolist() == [True] * 10 + [False] * 30 + [True] * 20
    assert [(each.name, each.first, each.last) for each in found.executors] == [
        ("clicks-exec-1", 0, 59), ("clicks-exec-2", 0, 9), ("clicks-exec-2", 40, 59),
    ]  # fmt: skip
    assert "1 of 2 nodes were not there all the time" in found.unknown


@pytest.mark.parametrize("heard_of", [True, False], ids=["of its executors there is", "nor of its executors"])
def test_executors_of_a_node_that_is_back_are_back_and_counted(heard_of: bool) -> None:
    members = [executor(number, at, last=239) for number, at in ((1, 0), (2, 1), (3, 2))]
    given = recording(members, steps=240, nodes=(node("n1"), node("n2"), node("n3")), cpu={2: 2.5})
    silent = range(time_of(given, 30), time_of(given, 45))
    rows = [
        row
        for row in history(given)
        if row.node != "n2" or row.time_ms not in silent or (heard_of and row.pod is not None)
    ]
    found = again(rows, given)
    assert [(each.name, each.first, each.last) for each in found.executors] == [
        ("clicks-exec-1", 0, 239), ("clicks-exec-2", 0, 29), ("clicks-exec-2", 45, 239), ("clicks-exec-3", 0, 239),
    ]  # fmt: skip
    np.testing.assert_array_equal(np.flatnonzero(found.executor_cpu[:, 1] == 2.5), np.arange(30))
    np.testing.assert_array_equal(np.flatnonzero(found.executor_cpu[:, 2] == 2.5), np.arange(45, 240))
    assert (
        "1 executors were on nodes of which nothing was known for a time: they are gone for that time, and begin again "
        "after it"
    ) in found.unknown


def test_a_name_that_is_used_again_on_another_node_is_another_executor() -> None:
    first, second = executor(1, 0, last=3), executor(1, 1, first=5, application="restarted", request_cores=2.0)
    figures = np.full((10, 2), np.nan)
    figures[:4, 0], figures[5:, 1] = 1.5, 3.0
    given = replace(recording([first, second]), executor_cpu=figures)
    found = again(history(given), given)
    assert found.executors == (first, second)
    np.testing.assert_array_equal(found.executor_cpu, figures)
    assert found.unknown == ()


def test_executors_are_left_out_only_while_they_seem_to_be_on_several_nodes() -> None:
    """Without the API server's view, the old one lingers while the new one is there already."""
    given = recording([executor(1, 0, last=5), executor(1, 1, first=4)])
    found = again(history(given), given)
    assert [(each.node, each.first, each.last) for each in found.executors] == [(0, 0, 3), (1, 6, 9)]
    torn = "1 executors seem to be on several nodes at a time: they are load of these nodes alone then"
    assert found.unknown == (torn,)


def test_one_that_seemed_to_be_elsewhere_too_for_a_time_is_load_of_the_nodes_alone_for_that_time() -> None:
    given = recording([executor(1, 0), executor(1, 1, first=4, last=5)])
    found = again(history(given), given)
    assert [(each.node, each.first, each.last) for each in found.executors] == [(0, 0, 3), (0, 6, 9)]
    assert np.isnan(found.executor_cpu[4:6]).all()
    assert [line for line in found.unknown if "executors" in line] == [
        "1 executors seem to be on several nodes at a time: they are load of these nodes alone then"
    ]


def test_a_pool_whose_nodes_all_changed_is_told_of() -> None:
    given = recording([executor(1, 0, last=24), executor(2, 1, first=35, last=59)], steps=60)
    first, last = time_of(given, 25), time_of(given, 35)
    rows = [row for row in history(given) if (row.time_ms < first if row.node == "n1" else row.time_ms >= last)]
    found = again(rows, given)
    assert found.present[:25, 0].all()
    assert found.present[35:, 1].all()
    assert not (found.present[:, 0] & found.present[:, 1]).any()
    assert "at no time were all nodes there: what is said of the pool is said of those that were" in found.unknown


def test_executors_on_nodes_that_nobody_knows_are_left_out() -> None:
    rows = [row for row in history(GIVEN) if row.node != "n2" or row.namespace is not None]
    found = again(rows)
    assert [each.name for each in found.executors] == ["clicks-exec-1"]
    assert "2 executors were on nodes of which nothing was known meanwhile, and were left out" in found.unknown


def test_a_history_without_executors_is_one_of_nodes_alone() -> None:
    found = again([row for row in history(GIVEN) if row.namespace is None])
    assert found.executors == ()
    np.testing.assert_array_equal(found.node_cpu, GIVEN.node_cpu)


def decisions(given: Recording, totals: dict[int, float]) -> list[Row]:
    return [Row(time_of(given, step), "decisions", None, None, None, "move", total) for step, total in totals.items()]


@pytest.mark.parametrize(
    ("totals", "moved", "lost"),
    [
        ({}, [False, False, False], 0),
        ({0: 3, 2: 3, 9: 3}, [False, False, False], 0),
        ({0: 3, 3: 4, 9: 4}, [False, True, False], 0),
        ({0: 3, 3: 1, 9: 1}, [False, True, False], 0),
        ({0: 3, 3: 5, 9: 5}, [False, True, False], 1),
        ({0: 3, 8: 4, 9: 4}, [False, False, False], 1),
    ],
    ids=["nobody counts", "none decided", "one decided", "the operator began again", "two decided", "too late"],
)
def test_a_replacement_that_begins_elsewhere_right_after_a_decision_was_moved(
    totals: dict[int, float], moved: list[bool], lost: int
) -> None:
    found = again([*history(GIVEN), *decisions(GIVEN, totals)])
    executors: tuple[RecordedExecutor, ...] = found.executors
    assert [each.moved for each in executors] == moved
    assert sum("left no trace" in line for line in found.unknown) == lost


def test_without_the_api_servers_view_executors_are_told_apart_by_their_names() -> None:
    rows = [row for row in history(GIVEN) if not row.signal.startswith(("executorApplication", "executorRequest"))]
    found = again(rows)
    assert {each.application for each in found.executors} == {"clicks"}
    assert found.executors[0].request_cores is None
    assert found.lingering_seconds == 300.0


def silent(first: int, last: int) -> Recording:
    """Nothing is known of any node in these steps."""
    cpu = HOUR.node_cpu.copy()
    cpu[first:last] = np.nan
    return replace(HOUR, node_cpu=cpu)


def test_a_recording_of_its_whole_window_has_nothing_to_tell() -> None:
    assert extended(HOUR, window_seconds=3600.0) is HOUR


@pytest.mark.parametrize(
    ("given", "window_seconds", "known"),
    [(HOUR, 4500.0, "1 of 1.25 hours"), (silent(10, 20), 3600.0, "0.833 of 1 hours")],
    ids=["it ends early", "it has a gap"],
)
def test_what_is_missing_of_a_window_is_told(given: Recording, window_seconds: float, known: str) -> None:
    (sentence,) = extended(given, window_seconds=window_seconds).unknown
    assert sentence.startswith(f"of streaming 2026-01-05 there are figures of {known}: what adds up over time")


@pytest.mark.parametrize(
    ("given", "window_seconds"), [(HOUR, 86_400.0), (silent(0, 16), 3600.0)], ids=["a stub", "an outage"]
)
def test_a_recording_of_too_little_of_its_window_is_refused(given: Recording, window_seconds: float) -> None:
    with pytest.raises(UnusableRecordingError, match=r"^there are figures of \S+ of \S+ hours, less than 75%$"):
        extended(given, window_seconds=window_seconds)
