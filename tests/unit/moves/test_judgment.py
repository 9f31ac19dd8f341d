"""What a move came to: by what the application gained, and by the gap where the application shows no change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import MovePhase, Phase
from ballast.moves import Facts, MoveMetrics, MoveReason, MoveState, Step, advance
from ballast.moves.judgment import Tolerance, slower, verdict
from tests.unit.moves.builders import NOW, SETTINGS, after, newcomer, settling

BEFORE = MoveMetrics(hot_score=90.0, cold_score=30.0, slowness=1.6, batch_p50_seconds=3.0, batch_p95_seconds=4.0)
LEVEL: dict[str, Any] = {"hot_score": 60.0, "cold_score": 60.0}
AS_BEFORE: dict[str, Any] = {"hot_score": 90.0, "cold_score": 30.0}
APART: dict[str, Any] = {"hot_score": 97.0, "cold_score": 30.0}
TURNED: dict[str, Any] = {"hot_score": 25.0, "cold_score": 95.0}
FASTER: dict[str, Any] = {"slowness": 1.0, "batch_p50_seconds": 2.3, "batch_p95_seconds": 3.0}
THE_SAME: dict[str, Any] = {"slowness": 1.62, "batch_p50_seconds": 3.0, "batch_p95_seconds": 3.9}
SLOWER: dict[str, Any] = {"slowness": 2.0, "batch_p50_seconds": 3.5, "batch_p95_seconds": 5.0}


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        pytest.param({**LEVEL, **FASTER}, MoveReason.HELPED, id="all is better"),
        pytest.param(
            {**AS_BEFORE, **FASTER}, MoveReason.HELPED, id="the application is faster, the gap as wide as before"
        ),
        pytest.param(FASTER, MoveReason.HELPED, id="the application is faster, and the gap is not known"),
        pytest.param({**APART, **FASTER}, MoveReason.INCONCLUSIVE, id="faster, but the gap is wider"),
        pytest.param({**TURNED, **FASTER}, MoveReason.INCONCLUSIVE, id="faster, but the gap has turned around"),
        pytest.param(
            {**LEVEL, **FASTER, "batch_p95_seconds": 5.2}, MoveReason.INCONCLUSIVE, id="median better, p95 worse"
        ),
        pytest.param(
            {**LEVEL, **FASTER, "slowness": 2.0}, MoveReason.INCONCLUSIVE, id="batches better, slowness worse"
        ),
        pytest.param({**LEVEL, **SLOWER}, MoveReason.DID_NOT_HELP, id="the application is slower on level nodes"),
        pytest.param(
            {**LEVEL, **THE_SAME, "slowness": 2.0}, MoveReason.DID_NOT_HELP, id="slower tasks, all else the same"
        ),
        pytest.param({**LEVEL, **THE_SAME}, MoveReason.HELPED, id="the same application on level nodes"),
        pytest.param({**AS_BEFORE, **THE_SAME}, MoveReason.DID_NOT_HELP, id="nothing has changed"),
        pytest.param({**APART, **THE_SAME}, MoveReason.DID_NOT_HELP, id="the same, with a wider gap"),
        pytest.param(THE_SAME, MoveReason.INCONCLUSIVE, id="the same, and the gap is not known"),
        pytest.param(LEVEL, MoveReason.NOT_JUDGED, id="no batch since, and the gap is narrower"),
        pytest.param(AS_BEFORE, MoveReason.NOT_JUDGED, id="no batch since, and the gap is as wide as before"),
        pytest.param({**LEVEL, "slowness": 1.0}, MoveReason.NOT_JUDGED, id="faster tasks, and no batch since"),
        pytest.param({"hot_score": 60.0}, MoveReason.NOT_JUDGED, id="one score alone is no gap"),
        pytest.param({}, MoveReason.NOT_JUDGED, id="nothing is known"),
    ],
)
def test_the_application_decides_and_the_gap_where_it_shows_no_change(
    measured: dict[str, Any], expected: MoveReason
) -> None:
    assert verdict(BEFORE, MoveMetrics(**measured)) is expected


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        pytest.param(LEVEL, MoveReason.HELPED, id="narrower"),
        pytest.param(AS_BEFORE, MoveReason.DID_NOT_HELP, id="as wide as before"),
        pytest.param(TURNED, MoveReason.DID_NOT_HELP, id="turned around"),
        pytest.param(
            {"hot_score": 50.0, "cold_score": 60.0}, MoveReason.HELPED, id="the cold node is a little hotter now"
        ),
        pytest.param({**LEVEL, "batch_p50_seconds": 2.0}, MoveReason.NOT_JUDGED, id="narrower, and input came back"),
        pytest.param({**AS_BEFORE, "slowness": 1.2}, MoveReason.NOT_JUDGED, id="as wide, and it has tasks again"),
    ],
)
def test_the_gap_alone_decides_where_the_application_is_not_measured_on_either_side(
    measured: dict[str, Any], expected: MoveReason
) -> None:
    assert verdict(MoveMetrics(**AS_BEFORE), MoveMetrics(**measured)) is expected


def test_what_was_not_known_before_can_not_have_changed() -> None:
    assert verdict(MoveMetrics(), MoveMetrics(**LEVEL, **FASTER)) is MoveReason.NOT_JUDGED


def test_a_closed_gap_is_not_outweighed_by_a_millisecond() -> None:
    before = MoveMetrics(hot_score=90.0, cold_score=30.0, batch_p95_seconds=0.700)
    assert verdict(before, MoveMetrics(**LEVEL, batch_p95_seconds=0.701)) is MoveReason.HELPED


@pytest.mark.parametrize(
    ("p95", "expected"),
    [(4.21, True), (4.19, False), (3.79, False)],
)
def test_changes_within_the_tolerance_are_noise(p95: float, *, expected: bool) -> None:
    assert slower(BEFORE, MoveMetrics(batch_p95_seconds=p95)) is expected


def test_the_tolerance_is_a_parameter() -> None:
    measured = MoveMetrics(batch_p95_seconds=4.1)
    assert not slower(BEFORE, measured)
    assert slower(BEFORE, measured, Tolerance(ratio=0.01))
    narrower = replace(BEFORE, hot_score=88.5)
    assert verdict(BEFORE, narrower) is MoveReason.DID_NOT_HELP
    assert verdict(BEFORE, narrower, tolerance=Tolerance(ratio=0.01, gap_points=1.0)) is MoveReason.HELPED


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        pytest.param(None, MoveReason.HELPED, id="nothing was predicted"),
        pytest.param(20.0, MoveReason.HELPED, id="half of it"),
        pytest.param(30.0, MoveReason.HELPED, id="a third of it"),
        pytest.param(31.0, MoveReason.DID_NOT_HELP, id="less than a third of it"),
        pytest.param(-10.0, MoveReason.HELPED, id="more than was predicted"),
    ],
)
def test_a_gap_counts_as_narrower_by_a_third_of_what_was_predicted(
    predicted: float | None, expected: MoveReason
) -> None:
    narrower = replace(BEFORE, hot_score=80.0)
    assert verdict(BEFORE, narrower, predicted_points=predicted) is expected


def test_an_application_that_is_faster_needs_no_narrower_gap() -> None:
    narrower = replace(BEFORE, hot_score=85.0, slowness=1.0)
    assert verdict(BEFORE, narrower, predicted_points=60.0) is MoveReason.HELPED


def test_a_gap_that_widened_is_worse_whatever_was_predicted() -> None:
    wider = replace(BEFORE, hot_score=97.0, slowness=1.0)
    assert verdict(BEFORE, wider, predicted_points=60.0) is MoveReason.INCONCLUSIVE


def judge(since: float, measured: Facts) -> Step:
    return advance(replace(settling(since=since), before=BEFORE), measured, SETTINGS, NOW)


def facts(figures: dict[str, Any]) -> Facts:
    return after(
        newcomer(Phase.RUNNING, node="cold"),
        scores={node: figures[key] for node, key in (("hot", "hot_score"), ("cold", "cold_score")) if key in figures},
        slowness={"uid-7": figures["slowness"]} if "slowness" in figures else {},
        batch_p50_seconds=figures.get("batch_p50_seconds"),
        batch_p95_seconds=figures.get("batch_p95_seconds"),
    )


CATCHING_UP = {**LEVEL, **FASTER, "batch_p95_seconds": 10.99}


@pytest.mark.parametrize(
    ("since", "measured", "phase", "reason"),
    [
        pytest.param(
            179, {**LEVEL, **FASTER}, MovePhase.SETTLING, MoveReason.MEASURING, id="not before it has settled"
        ),
        pytest.param(180, {**LEVEL, **FASTER}, MovePhase.SUCCEEDED, MoveReason.HELPED, id="better"),
        pytest.param(180, {**AS_BEFORE, **THE_SAME}, MovePhase.FAILED, MoveReason.DID_NOT_HELP, id="unchanged"),
        pytest.param(180, CATCHING_UP, MovePhase.SETTLING, MoveReason.MEASURING, id="catching up with what waited"),
        pytest.param(300, {**LEVEL, **FASTER}, MovePhase.SUCCEEDED, MoveReason.HELPED, id="caught up"),
        pytest.param(360, CATCHING_UP, MovePhase.SUCCEEDED, MoveReason.INCONCLUSIVE, id="never caught up"),
        pytest.param(180, {**LEVEL, **SLOWER}, MovePhase.SETTLING, MoveReason.MEASURING, id="perhaps still compiling"),
        pytest.param(360, {**LEVEL, **SLOWER}, MovePhase.FAILED, MoveReason.DID_NOT_HELP, id="slower for good"),
        pytest.param(359, {}, MovePhase.SETTLING, MoveReason.MEASURING, id="metrics may come back"),
        pytest.param(360, {}, MovePhase.SUCCEEDED, MoveReason.NOT_JUDGED, id="but are not waited for longer"),
    ],
)
def test_a_move_is_judged_once_the_application_has_caught_up(
    since: float, measured: dict[str, Any], phase: MovePhase, reason: MoveReason
) -> None:
    step = judge(since, facts(measured))
    assert (step.move.phase, step.move.reason) == (phase, reason)
    assert step.changed is phase.ended
    assert (step.wake_at is None) is phase.ended


@pytest.mark.parametrize(
    ("measured", "helped"),
    [({**LEVEL, **FASTER}, True), ({**AS_BEFORE, **THE_SAME}, False), (THE_SAME, None)],
)
def test_only_a_clear_outcome_counts_as_help_or_failure(measured: dict[str, Any], *, helped: bool | None) -> None:
    assert judge(360, facts(measured)).move.helped is helped


@pytest.mark.parametrize(("by_hand", "helped"), [(False, False), (True, True)])
def test_what_the_author_of_a_move_by_hand_predicted_is_no_measure(*, by_hand: bool, helped: bool) -> None:
    move = settling(since=360)
    wide, level = MoveMetrics(hot_score=1000.0, cold_score=0.0), MoveMetrics(hot_score=500.0, cold_score=500.0)
    orders = replace(move.orders, by_hand=by_hand, decided=wide, predicted=level)
    found = advance(replace(move, orders=orders, before=BEFORE), facts({**LEVEL, **THE_SAME}), SETTINGS, NOW).move
    assert found.helped is helped


def test_a_move_of_an_application_that_has_ended_is_not_judged() -> None:
    found = judge(10, replace(facts({}), application_ended=True)).move
    assert (found.phase, found.reason, found.helped) == (MovePhase.SUCCEEDED, MoveReason.APPLICATION_ENDED, None)


def test_one_that_came_back_to_its_source_has_failed_however_the_scores_are() -> None:
    move: MoveState = settling(since=180, node="hot")
    found = advance(move, facts({**LEVEL, **FASTER}), SETTINGS, NOW).move
    assert (found.phase, found.reason, found.helped) == (MovePhase.FAILED, MoveReason.RETURNED_TO_SOURCE, False)


def test_the_message_tells_that_no_batch_was_processed_since() -> None:
    told = judge(360, facts(LEVEL)).move
    assert told.reason is MoveReason.NOT_JUDGED
    assert told.message.startswith("the application was measured on one side of the move alone; the gap went from 60.0")


def test_the_message_tells_the_measurements_next_to_the_prediction() -> None:
    told = judge(180, facts({"hot_score": 66.0, "cold_score": 76.0, **FASTER})).move.message
    assert "the gap went from 60.0 to -10.0 points (+50.0, predicted 50.0)" in told
    assert "slowness from 1.60 to 1.00" in told
    assert "median batch from 3.00 to 2.30 s" in told
    assert "batch p95 from 4.00 to 3.00 s" in told
