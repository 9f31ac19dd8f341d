from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from ballast.api.move import ExecutorMove, MoveStatus
from ballast.errors import InvalidResource
from ballast.model import MovePhase, Reason, Resources
from ballast.moves import MoveMetrics, MoveReason, MoveState, Replacement
from ballast.moves.record import conditions, outlived, read, status, to_move
from tests.unit.moves.builders import NOW, REQUESTS, approved, arriving, claiming, leaving, proposed, settling


def stored(**changes: Any) -> dict[str, Any]:
    """The object as it was created."""
    return {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "ExecutorMove",
        "metadata": {
            "name": "m1",
            "namespace": "team",
            "generation": 2,
            "creationTimestamp": datetime.fromtimestamp(NOW - 10, UTC).isoformat(),
        },
        "spec": {
            "topologyName": "clicks",
            "component": "ingest",
            "executor": {"pod": "clicks-exec-3", "uid": "uid-3"},
            "sourceNodeName": "hot",
            "targetNodeName": "cold",
            "approved": True,
            "reason": {"strategy": "AvgShedder", "scores": {"from": "90", "to": "30"}},
            "predicted": {"hotAfter": "65", "coldAfter": "55"},
        },
        **changes,
    }


def restarted(move: MoveState) -> MoveState:
    """What another process reads of what this one wrote."""
    return read(stored(status=status(move, stored(), NOW)))


def ended() -> MoveState:
    move = settling(since=200)
    timings = replace(move.timings, ended_at=NOW - 3.25)
    figures = MoveMetrics(66.0, 56.0, 1.1, 2.0)
    return replace(move, phase=MovePhase.FAILED, reason=MoveReason.DID_NOT_HELP, timings=timings, after=figures)


@pytest.mark.parametrize(
    "move",
    [
        proposed(),
        approved(since=1.5),
        leaving(since=0.000123),
        leaving(reason=Reason.DISRUPTION_BUDGET, message="would violate budget", withdrawn=True),
        arriving(attempts=2),
        claiming(reason=MoveReason.DISCARDING, attempts=1),
        settling(since=7),
        ended(),
    ],
    ids=lambda move: f"{move.phase} {move.reason}",
)
def test_a_move_survives_a_restart(move: MoveState) -> None:
    decided = move.orders.decided
    if move.before.gap is None:
        before = replace(move.before, hot_score=decided.hot_score, cold_score=decided.cold_score)
        move = replace(move, before=before)
    assert _microseconds(restarted(move)) == _microseconds(move)


def _microseconds(move: MoveState) -> MoveState:
    times = {field: getattr(move.timings, field) for field in move.timings.__slots__}
    rounded = {field: time if time is None else round(time, 5) for field, time in times.items()}
    return replace(move, timings=replace(move.timings, **rounded))


def test_scores_that_are_not_on_record_are_those_of_the_decision() -> None:
    written = status(leaving(before=MoveMetrics(slowness=1.5)), stored(), NOW)
    assert read(stored(status=written)).before == MoveMetrics(90.0, 30.0, 1.5, None)


def test_a_move_goes_where_its_spec_says_unless_the_status_says_otherwise() -> None:
    assert read(stored()).destination == "cold"
    assert restarted(leaving(target="cold")).destination == "cold"


def test_an_object_without_status_is_a_new_proposal() -> None:
    new = read(stored())
    assert new == MoveState(proposed().orders, before=MoveMetrics(90.0, 30.0))
    assert new.orders.topology == "team/clicks"


def test_an_object_that_is_not_valid_says_which_field() -> None:
    spoiled = stored()
    del spoiled["spec"]["targetNodeName"]
    with pytest.raises(InvalidResource, match=r"spec\.targetNodeName"):
        read(spoiled)


def test_the_status_has_only_fields_that_the_schema_knows() -> None:
    written = status(ended(), stored(), NOW)
    assert MoveStatus.model_validate(written).to_dict() == written
    assert ExecutorMove.parse(stored(status=written)).status.observed_generation == 2


def test_so_many_kinds_of_requests_are_noted_that_the_schema_takes_them() -> None:
    asked = Resources(1 / 3, 1.0, 1.0, tuple((f"example.com/{number}", 1.0) for number in range(10, 99)))
    subject = replace(leaving().subject, requests=asked)
    written = status(leaving(subject=subject), stored(), NOW)["subject"]["requests"]
    assert len(written) == 20
    assert (written["cpu"], written["memory"], written["example.com/10"]) == ("334m", 1, 1)


@pytest.mark.parametrize(
    ("cores", "memory", "written"),
    [
        (2.0, 64 * 2.0**20, {"cpu": 2, "memory": "64Mi"}),
        (0.25, 1408 * 2.0**20, {"cpu": "250m", "memory": "1408Mi"}),
        (1.5, 4 * 2.0**30, {"cpu": "1500m", "memory": "4Gi"}),
        (0.0, 1e9, {"cpu": 0, "memory": 1000000000}),
        (1.0, 1.5, {"cpu": 1, "memory": 2}),
    ],
)
def test_requests_are_written_as_people_write_them(cores: float, memory: float, written: dict[str, str | int]) -> None:
    subject = replace(leaving().subject, requests=Resources(cores, memory, 1.0))
    found = status(leaving(subject=subject), stored(), NOW)["subject"]["requests"]
    assert found == written


def test_a_long_message_is_cut_to_what_the_schema_takes() -> None:
    assert len(status(leaving(message="x" * 5000), stored(), NOW)["message"]) == 1024


class TestConditions:
    @pytest.mark.parametrize(
        ("move", "ready", "others"),
        [
            (leaving(), None, {"Reconciling"}),
            (leaving(withdrawn=True), None, {"Reconciling", "Withdrawn"}),
            (replace(ended(), phase=MovePhase.SUCCEEDED, reason=MoveReason.HELPED), True, set()),
            (ended(), False, {"Stalled"}),
            (replace(leaving(), phase=MovePhase.EXPIRED), False, set()),
        ],
        ids=["open", "withdrawn", "succeeded", "failed", "expired"],
    )
    def test_follow_kstatus(self, move: MoveState, ready: bool | None, others: set[str]) -> None:
        first, *rest = conditions(move)
        assert (first.type, first.holds) == ("Ready", ready)
        assert {aspect.type for aspect in rest} == others
        assert all(aspect.holds for aspect in rest)

    def test_keep_their_time_while_their_status_stays(self) -> None:
        earlier = stored(status=status(leaving(), stored(), NOW))
        later = status(arriving(), earlier, NOW + 60)
        since = {condition["type"]: condition["lastTransitionTime"] for condition in later["conditions"]}
        assert since["Reconciling"] == earlier["status"]["conditions"][1]["lastTransitionTime"]

    def test_that_hold_no_more_are_gone(self) -> None:
        earlier = stored(status=status(leaving(withdrawn=True), stored(), NOW))
        later = status(arriving(), earlier, NOW)
        assert "Withdrawn" not in {condition["type"] for condition in later["conditions"]}


class TestThePlannersView:
    def test_carries_the_load_that_the_source_is_predicted_to_lose(self) -> None:
        assert to_move(leaving(), source_points_per_core=12.5).load_cores == pytest.approx(2.0)
        assert to_move(leaving(), source_points_per_core=0.0).load_cores == 0.0

    @pytest.mark.parametrize("reason", [None, {"strategy": "Manual", "scores": {"from": "1000000", "to": "0"}}])
    def test_believes_no_prediction_of_a_user(self, reason: dict[str, Any] | None) -> None:
        asked = stored()
        asked["spec"] |= {"reason": reason, "predicted": {"hotAfter": "0", "coldAfter": "1000000"}}
        seen = to_move(read(asked), source_points_per_core=1.0)
        assert (seen.by_hand, seen.load_cores) == (True, 0.0)

    def test_keeps_what_its_executor_requested(self) -> None:
        assert to_move(claiming(), source_points_per_core=100.0).requests == REQUESTS
        assert to_move(approved(), source_points_per_core=100.0).requests is None

    def test_counts_budgets_from_approval(self) -> None:
        assert to_move(approved(since=30), source_points_per_core=100.0).started_at == NOW - 30
        assert to_move(proposed(), source_points_per_core=100.0).started_at == NOW - 10

    @pytest.mark.parametrize("reason", [MoveReason.TARGET_SHRANK, MoveReason.NO_REPLACEMENT, MoveReason.HELPED])
    def test_tells_whether_it_has_no_replacement(self, reason: MoveReason) -> None:
        seen = to_move(replace(ended(), reason=reason), source_points_per_core=1.0)
        assert seen.unreplaced is (reason is not MoveReason.HELPED)

    def test_tells_what_became_of_it(self) -> None:
        seen = to_move(ended(), source_points_per_core=100.0)
        assert (seen.phase, seen.helped, seen.ended_at) == (MovePhase.FAILED, False, NOW - 3.25)
        assert (seen.replacement_uid, seen.arrived_at) == ("uid-7", NOW - 200)


def test_an_ended_move_is_kept_for_its_ttl() -> None:
    assert not outlived(ended(), ttl_seconds=10, now=NOW)
    assert outlived(ended(), ttl_seconds=10, now=NOW + 10)
    assert not outlived(settling(since=9), ttl_seconds=10, now=NOW + 1000)


def test_a_replacement_that_lost_its_place_is_recorded_so() -> None:
    move = claiming(replacement=Replacement("uid-7", "clicks-exec-7", NOW, "mild", pinned=True, displaced=True))
    known = restarted(move).replacement
    assert known is not None
    assert known.displaced


def test_a_replacement_that_is_not_pinned_is_recorded_so() -> None:
    move = claiming(replacement=Replacement("uid-7", "clicks-exec-7", NOW, "mild", pinned=False))
    known = restarted(move).replacement
    assert known is not None
    assert (known.node, known.pinned) == ("mild", False)
