from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.model import MovePhase, MovesMode, MovesPolicy, Phase, Pin, Reason, Refusal
from ballast.moves import (
    ClearNomination,
    DeleteUnscheduled,
    Effect,
    Emit,
    Evict,
    Facts,
    MoveMetrics,
    MoveReason,
    MoveState,
    PinReplacement,
    ReleaseUnpinned,
    Replacement,
    Revalidation,
    Step,
    Subject,
    advance,
    turned_away,
)
from ballast.moves.arriving import MAX_ATTEMPTS
from ballast.moves.machine import ABANDONED_SECONDS
from tests.unit.moves.builders import (
    NOW,
    REQUESTS,
    SETTINGS,
    after,
    approved,
    arriving,
    before,
    claiming,
    executor,
    leaving,
    newcomer,
    proposed,
    rival,
    settling,
    sibling,
)


def step(move: MoveState, facts: Facts, settings: MovesPolicy = SETTINGS) -> Step:
    return advance(move, facts, settings, NOW)


def refused(reason: Reason) -> Facts:
    return before(revalidation=Revalidation(Refusal("clicks-exec-3", reason, "because")))


GONE_BY_ITSELF = (MovePhase.EXPIRED, MoveReason.EXECUTOR_GONE)


@pytest.mark.parametrize(
    ("move", "facts", "phase", "reason"),
    [
        pytest.param(proposed(), before(), MovePhase.APPROVED, MoveReason.CLEARED, id="an approved proposal begins"),
        pytest.param(
            proposed(approved=False),
            before(),
            MovePhase.PROPOSED,
            MoveReason.AWAITING_APPROVAL,
            id="a proposal waits for approval",
        ),
        pytest.param(
            proposed(approved=False, created_at=NOW - 3600),
            before(),
            MovePhase.EXPIRED,
            MoveReason.APPROVAL_TIMEOUT,
            id="a proposal that nobody approves expires",
        ),
        pytest.param(proposed(), after(), *GONE_BY_ITSELF, id="an executor that is gone needs no move"),
        *(
            pytest.param(
                move,
                after(stranger=Refusal("clicks-driver", Reason.DRIVER, "it is a driver")),
                MovePhase.REFUSED,
                Reason.DRIVER,
                id=f"a driver never moves, {move.phase}",
            )
            for move in (proposed(), proposed(approved=False), approved())
        ),
        *(
            pytest.param(
                move,
                before(stranger=Refusal("clicks-exec-3", Reason.MISDESCRIBED, "its uid is that of another pod")),
                MovePhase.REFUSED,
                Reason.MISDESCRIBED,
                id=f"a move of two pods at once, {move.phase}",
            )
            for move in (proposed(), proposed(approved=False), approved())
        ),
        pytest.param(
            leaving(),
            before(stranger=Refusal("clicks-exec-3", Reason.MISDESCRIBED, "its uid is that of another pod")),
            MovePhase.LEAVING,
            Reason.MISDESCRIBED,
            id="a move of two pods at once evicts nothing",
        ),
        pytest.param(
            approved(), before(executor=executor(Phase.LEAVING)), *GONE_BY_ITSELF, id="nor one that is going by itself"
        ),
        pytest.param(approved(), before(), MovePhase.LEAVING, MoveReason.EVICTING, id="a cleared move leaves"),
        pytest.param(
            approved(), refused(Reason.DATA_SKEW), MovePhase.REFUSED, Reason.DATA_SKEW, id="the arbiter's last word"
        ),
        pytest.param(
            approved(), refused(Reason.NO_METRICS), MovePhase.APPROVED, Reason.NO_METRICS, id="metrics may come back"
        ),
        pytest.param(
            approved(since=120),
            refused(Reason.NO_METRICS),
            MovePhase.REFUSED,
            Reason.NO_METRICS,
            id="but are not waited for longer than leaveTimeout",
        ),
        pytest.param(
            approved(),
            before(revalidation=Revalidation(destination="hot")),
            MovePhase.REFUSED,
            Reason.NO_DESTINATION,
            id="no move to where it is",
        ),
        pytest.param(
            leaving(),
            before(executor=executor(Phase.LEAVING)),
            MovePhase.LEAVING,
            MoveReason.TERMINATING,
            id="once being deleted there is no way back",
        ),
        pytest.param(leaving(), after(), MovePhase.ARRIVING, MoveReason.AWAITING_REPLACEMENT, id="it has left"),
        pytest.param(
            leaving(),
            before(executor=executor(Phase.ENDED, exit_code=143)),
            MovePhase.ARRIVING,
            MoveReason.AWAITING_REPLACEMENT,
            id="it has ended, however badly",
        ),
        pytest.param(
            leaving(since=121),
            before(executor=executor(Phase.LEAVING)),
            MovePhase.FAILED,
            MoveReason.LEAVE_TIMEOUT,
            id="it hangs in termination",
        ),
        pytest.param(
            leaving(),
            before(eviction_refused="would violate budget"),
            MovePhase.LEAVING,
            Reason.DISRUPTION_BUDGET,
            id="a disruption budget blocks",
        ),
        pytest.param(
            arriving(since=181),
            after(),
            MovePhase.SUCCEEDED,
            MoveReason.TARGET_SHRANK,
            id="no replacement is a normal end",
        ),
        pytest.param(
            arriving(since=181),
            after(expected_executors=2),
            MovePhase.SUCCEEDED,
            MoveReason.NO_REPLACEMENT,
            id="even where one was expected",
        ),
        pytest.param(
            arriving(),
            after(application_ended=True),
            MovePhase.SUCCEEDED,
            MoveReason.APPLICATION_ENDED,
            id="the application ended while it was on its way",
        ),
        pytest.param(
            claiming(),
            after(newcomer(Phase.RUNNING, node="cold")),
            MovePhase.SETTLING,
            MoveReason.MEASURING,
            id="the replacement runs",
        ),
        pytest.param(
            claiming(), after(), MovePhase.ARRIVING, MoveReason.AWAITING_REPLACEMENT, id="the replacement died early"
        ),
        pytest.param(
            claiming(since=181),
            after(newcomer(Phase.PENDING, node="cold")),
            MovePhase.FAILED,
            MoveReason.REPLACEMENT_NOT_RUNNING,
            id="the replacement never starts",
        ),
        pytest.param(
            claiming(since=181),
            after(newcomer()),
            MovePhase.FAILED,
            MoveReason.REPLACEMENT_NOT_RUNNING,
            id="it is always another gated one, or one that can't be released",
        ),
        pytest.param(
            settling(since=181), after(), MovePhase.FAILED, MoveReason.REPLACEMENT_LOST, id="the replacement was lost"
        ),
        pytest.param(
            settling(since=181, node="hot"),
            after(newcomer(Phase.RUNNING, node="hot")),
            MovePhase.FAILED,
            MoveReason.RETURNED_TO_SOURCE,
            id="it came back to where it was",
        ),
    ],
)
def test_a_move_goes_on_as_the_facts_tell(move: MoveState, facts: Facts, phase: MovePhase, reason: str) -> None:
    found = step(move, facts)
    assert (found.move.phase, found.move.reason) == (phase, reason)
    assert found.changed
    assert found.effect is None, "what is about to be done is on record before it is done"


PLACED = PinReplacement("clicks-exec-7", "uid-7", "cold", Pin.ZONE)
UNPINNED = ReleaseUnpinned("clicks-exec-7", "uid-7")
DISCARDED = DeleteUnscheduled("clicks-exec-7", "uid-7")
CLEARED = ClearNomination("clicks-exec-7", "uid-7")
STUCK = newcomer(Phase.PENDING, pinned=True, unschedulable_since=NOW - 20)


@pytest.mark.parametrize(
    ("move", "facts", "effect"),
    [
        pytest.param(leaving(), before(), Evict("clicks-exec-3", "uid-3"), id="the executor is evicted"),
        pytest.param(
            leaving(reason=Reason.DISRUPTION_BUDGET),
            before(eviction_refused="would violate budget"),
            Evict("clicks-exec-3", "uid-3"),
            id="and again when a budget blocked it",
        ),
        pytest.param(leaving(reason=MoveReason.TERMINATING), before(), None, id="never again once it was seen to go"),
        pytest.param(leaving(), refused(Reason.STALE_METRICS), None, id="not while the arbiter hesitates"),
        pytest.param(claiming(), after(newcomer()), PLACED, id="the replacement is pinned"),
        pytest.param(claiming(), after(newcomer(gate_since=None)), None, id="not while another controller holds it"),
        pytest.param(
            claiming(),
            after(newcomer(), revalidation=Revalidation(Refusal("x", Reason.NO_ROOM))),
            UNPINNED,
            id="released when no node takes it",
        ),
        pytest.param(claiming(), after(newcomer(), pin_refused="empty term"), UNPINNED, id="or it can't be pinned"),
        pytest.param(claiming(claimed=11), after(newcomer(gate_since=NOW - 11)), UNPINNED, id="or was held too long"),
        pytest.param(
            claiming(attempts=MAX_ATTEMPTS),
            after(newcomer()),
            replace(PLACED, pin=Pin.NONE),
            id="its place is preferred if others could not run there several times",
        ),
        pytest.param(
            claiming(reason=MoveReason.DISCARDING), after(STUCK), DISCARDED, id="an unschedulable one is deleted"
        ),
        pytest.param(
            claiming(reason=MoveReason.STARTING),
            after(newcomer(Phase.PENDING, pinned=True, unschedulable_since=NOW - 1)),
            None,
            id="not at once",
        ),
        pytest.param(
            claiming(),
            after(newcomer(Phase.PENDING, unschedulable_since=NOW - 100)),
            None,
            id="one without a pin is left to the scheduler",
        ),
        pytest.param(
            claiming(reason=MoveReason.STARTING),
            after(newcomer(Phase.PENDING, pinned=True, nominated=True, unschedulable_since=NOW - 5)),
            CLEARED,
            id="a nomination ends once nothing schedules it",
        ),
        pytest.param(
            claiming(reason=MoveReason.STARTING),
            after(newcomer(Phase.PENDING, nominated=True, unschedulable_since=NOW - 100)),
            CLEARED,
            id="also without a pin",
        ),
        pytest.param(
            claiming(reason=MoveReason.STARTING, attempts=MAX_ATTEMPTS),
            after(newcomer(Phase.PENDING, pinned=True, nominated=True, unschedulable_since=NOW - 100)),
            CLEARED,
            id="and after the last attempt",
        ),
        pytest.param(
            claiming(reason=MoveReason.STARTING),
            after(newcomer(Phase.PENDING, pinned=True, nominated=True)),
            None,
            id="not before the scheduler has looked at it",
        ),
        pytest.param(settling(since=10), after(newcomer(Phase.RUNNING, node="cold")), None, id="settling takes time"),
    ],
)
def test_a_move_acts_as_the_facts_ask_for(move: MoveState, facts: Facts, effect: Effect | None) -> None:
    found = step(move, facts)
    assert found.effect == effect
    assert not found.changed


def test_a_nomination_that_fails_is_looked_at_again_when_it_is_to_be_cleared() -> None:
    waiting = newcomer(Phase.PENDING, pinned=True, nominated=True, unschedulable_since=NOW - 1)
    assert step(claiming(reason=MoveReason.STARTING), after(waiting)).wake_at == NOW + 4


LOST = {"revalidation": Revalidation(destination="other")}
"""The destination has no room any more."""


@pytest.mark.parametrize(
    ("pod", "facts", "words"),
    [
        ({"node": "cold", "pinned": True}, LOST, "runs on cold; judged"),
        ({"node": "mild", "pinned": True}, LOST, "runs on mild instead of cold, whose room another pod took; judged"),
        ({"node": "mild", "pinned": True}, {}, "runs on mild instead of cold; judged"),
        ({"node": "mild", "pinned": False}, LOST, "runs on mild instead of cold; judged"),
    ],
)
def test_a_replacement_on_another_node_has_lost_its_place_if_there_is_no_room_there_any_more(
    pod: dict[str, Any], facts: dict[str, Any], words: str
) -> None:
    found = step(claiming(), after(newcomer(Phase.RUNNING, **pod), **facts)).move
    assert words in found.message
    assert found.replacement is not None
    assert found.replacement.displaced is ("another pod" in words)


@pytest.mark.parametrize(("node", "score"), [("cold", 10.0), ("mild", 85.0)])
def test_a_replacement_is_judged_by_the_node_that_it_runs_on(node: str, score: float) -> None:
    """From one hot node to another, the gap seemed to have narrowed by all that the destination was colder."""
    move = replace(claiming(), before=MoveMetrics(hot_score=90.0, cold_score=10.0))
    found = step(move, after(newcomer(Phase.RUNNING, node=node, pinned=True), scores={"cold": 12.0, "mild": 85.0}))
    assert found.move.before == MoveMetrics(hot_score=90.0, cold_score=score)


@pytest.mark.parametrize(
    ("node", "words"),
    [
        ("mild", "clicks-exec-7 runs on mild instead of cold, whose room another pod took; the gap"),
        ("hot", "clicks-exec-7 came back to hot instead of cold, whose room another pod took"),
    ],
)
def test_the_outcome_tells_that_the_place_was_lost(node: str, words: str) -> None:
    move = settling(since=361, node=node)
    assert move.replacement is not None
    move = replace(move, replacement=replace(move.replacement, displaced=True))
    found = step(move, after(newcomer(Phase.RUNNING, node=node)))
    assert found.move.phase.ended
    assert found.move.message.startswith(words)


def test_an_ended_move_stays_as_it_is() -> None:
    ended = replace(leaving(), phase=MovePhase.REFUSED)
    assert step(ended, before()).move is ended


@pytest.mark.parametrize("mode", [MovesMode.DISABLED, MovesMode.RECOMMEND])
def test_nothing_leaves_where_the_policy_only_looks_on(mode: MovesMode) -> None:
    found = step(approved(), before(), replace(SETTINGS, mode=mode))
    assert (found.move.phase, found.move.reason) == (MovePhase.REFUSED, Reason.MOVES_DISABLED)


@pytest.mark.parametrize("facts", [before(), before(eviction_refused="budget"), refused(Reason.STALE_METRICS)])
def test_a_move_that_is_still_held_up_is_withdrawn_when_the_policy_is_switched_off(facts: Facts) -> None:
    off = replace(SETTINGS, mode=MovesMode.DISABLED)
    first = step(leaving(reason=Reason.DISRUPTION_BUDGET), facts, off)
    assert (first.move.phase, first.move.withdrawn, first.effect) == (MovePhase.LEAVING, True, None)
    second = step(first.move, facts, off)
    assert (second.move.phase, second.move.reason) == (MovePhase.REFUSED, Reason.MOVES_DISABLED)


def test_one_that_has_begun_to_go_is_carried_to_its_end_all_the_same() -> None:
    off = replace(SETTINGS, mode=MovesMode.DISABLED)
    gone = step(leaving(reason=MoveReason.TERMINATING), after(), off)
    assert gone.move.phase is MovePhase.ARRIVING
    assert step(claiming(), after(newcomer()), off).effect == PLACED


def test_leaving_records_what_the_move_will_be_judged_by_and_recognised_by() -> None:
    left = step(approved(), before(revalidation=Revalidation(destination="mild"))).move
    assert left.destination == "mild"
    assert left.before == MoveMetrics(hot_score=91.0, cold_score=50.0, slowness=1.6, batch_p95_seconds=4.0)
    assert left.subject == Subject("spark-1", "0", "3", REQUESTS)


class TestWithdrawing:
    def test_needs_a_second_look_at_new_facts(self) -> None:
        first = step(leaving(since=120, reason=Reason.DISRUPTION_BUDGET), before(eviction_refused="budget"))
        assert (first.move.phase, first.move.withdrawn, first.look_again) == (MovePhase.LEAVING, True, True)
        second = step(first.move, before())
        assert (second.move.phase, second.move.reason) == (MovePhase.REFUSED, Reason.DISRUPTION_BUDGET)

    def test_is_undone_by_an_eviction_that_had_taken_effect(self) -> None:
        withdrawn = leaving(since=120, reason=MoveReason.NOT_EVICTED, withdrawn=True)
        found = step(withdrawn, before(executor=executor(Phase.LEAVING, deadline=NOW + 20))).move
        assert (found.phase, found.reason, found.withdrawn) == (MovePhase.LEAVING, MoveReason.TERMINATING, False)

    def test_follows_an_objection_that_came_after_clearance(self) -> None:
        found = step(leaving(), refused(Reason.VOLUME_PINNED)).move
        assert (found.withdrawn, found.reason) == (True, Reason.VOLUME_PINNED)


@pytest.mark.parametrize(
    ("known", "facts", "reason", "message"),
    [
        ({}, {"eviction_refused": "needs 3"}, Reason.DISRUPTION_BUDGET, "not evicted within 120 s: needs 3; a Pod"),
        ({}, {"eviction_failed": "forbidden"}, MoveReason.NOT_EVICTED, "not evicted within 120 s: forbidden"),
        ({}, {}, MoveReason.NOT_EVICTED, "not evicted within 120 s"),
        (
            {"reason": Reason.DISRUPTION_BUDGET, "message": "needs 3"},
            {},
            Reason.DISRUPTION_BUDGET,
            "not evicted within 120 s: needs 3",
        ),
    ],
    ids=["a disruption budget", "another refusal", "no answer", "an answer to the process before this one"],
)
def test_an_eviction_that_is_given_up_tells_the_last_answer(
    known: dict[str, Any], facts: dict[str, Any], reason: str, message: str
) -> None:
    found = step(leaving(since=120, **known), before(**facts)).move
    assert (found.withdrawn, found.reason) == (True, reason)
    assert found.message.startswith(message)


def test_what_the_server_said_is_noted_once() -> None:
    told = step(leaving(), before(eviction_failed="forbidden"))
    assert (told.move.reason, told.effect) == (MoveReason.NOT_EVICTED, None)
    assert step(told.move, before(eviction_failed="forbidden")).effect is not None


def test_a_longer_grace_period_than_leave_timeout_is_waited_for() -> None:
    going = before(executor=executor(Phase.LEAVING, deadline=NOW + 60))
    found = step(leaving(since=200, reason=MoveReason.TERMINATING), going)
    assert not found.changed
    assert found.wake_at == NOW + 70


def test_a_grace_period_of_years_is_waited_for_five_times_leave_timeout() -> None:
    going = before(executor=executor(Phase.LEAVING, deadline=NOW + 1e9))
    assert step(leaving(since=200, reason=MoveReason.TERMINATING), going).wake_at == NOW - 200 + 600
    over = step(leaving(since=600, reason=MoveReason.TERMINATING), going).move
    assert (over.phase, over.reason) == (MovePhase.FAILED, MoveReason.LEAVE_TIMEOUT)


class TestRecognizing:
    def test_a_move_claims_the_executor_that_came_after_it_left(self) -> None:
        found = step(arriving(), after(newcomer())).move
        assert found.replacement == Replacement("uid-7", "clicks-exec-7", NOW)

    def test_executors_from_before_are_none(self) -> None:
        assert not step(arriving(), after(sibling(9, created_at=NOW - 60))).changed

    def test_a_clock_that_lags_a_little_is_borne(self) -> None:
        assert step(arriving(), after(newcomer(created_at=NOW - 13))).changed

    def test_the_move_that_began_to_leave_first_takes_the_first(self) -> None:
        first = newcomer()
        second = newcomer(uid="uid-8", name="clicks-exec-8", executor_id="8", created_at=NOW - 3)
        found = step(arriving(), after(second, first, rivals=(rival(leaving_at=NOW - 20),))).move
        assert found.replacement is not None
        assert found.replacement.uid == "uid-8"

    def test_what_another_move_has_claimed_is_taken(self) -> None:
        taken = rival(waiting=False, replacement_uid="uid-7", claimed_at=NOW - 1)
        assert not step(arriving(), after(newcomer(), rivals=(taken,))).changed

    @pytest.mark.parametrize(
        ("claimed_at", "settled", "kept"), [(NOW - 2, False, False), (NOW, False, True), (NOW, True, False)]
    )
    def test_of_two_claims_the_earlier_holds_and_a_settled_one_always(
        self, claimed_at: float, *, settled: bool, kept: bool
    ) -> None:
        other = rival(waiting=False, replacement_uid="uid-7", claimed_at=claimed_at, settled=settled)
        found = step(claiming(), after(newcomer(), rivals=(other,)))
        assert (found.move.replacement is not None) is kept


class TestPlacingAnew:
    def test_is_counted_before_it_is_done(self) -> None:
        found = step(claiming(reason=MoveReason.STARTING), after(STUCK))
        assert (found.move.reason, found.move.attempts, found.effect) == (MoveReason.DISCARDING, 1, None)

    def test_is_called_off_when_the_pod_was_bound_after_all(self) -> None:
        found = step(claiming(reason=MoveReason.DISCARDING), after(newcomer(Phase.PENDING, node="cold", pinned=True)))
        assert (found.move.reason, found.effect) == (MoveReason.STARTING, None)

    def test_gives_every_attempt_its_own_time(self) -> None:
        assert not step(arriving(since=181, attempts=1), after()).changed

    def test_goes_to_the_node_that_has_room_now(self) -> None:
        found = step(claiming(), after(newcomer(), revalidation=Revalidation(destination="mild"))).move
        assert found.destination == "mild"
        assert found.before.cold_score == 50.0


def test_every_transition_is_an_event_about_the_pod_concerned() -> None:
    left = step(approved(), before()).actions
    assert left == (
        Emit(
            "Evicting",
            "Leaving: clicks-exec-3 leaves hot for cold",
            warning=False,
            pod="clicks-exec-3",
            pod_uid="uid-3",
        ),
    )
    (arrived,) = step(claiming(), after(newcomer(Phase.RUNNING, node="cold"))).actions
    assert isinstance(arrived, Emit)
    assert (arrived.pod, arrived.warning) == ("clicks-exec-7", False)
    (ended,) = step(leaving(since=121), before(executor=executor(Phase.LEAVING))).actions
    assert isinstance(ended, Emit)
    assert ended.warning


@pytest.mark.parametrize("approved", [False, True])
def test_a_proposal_ends_once_its_node_stays(*, approved: bool) -> None:
    stays = Revalidation(Refusal("e-1", Reason.NODE_STAYS, "hot has no taint any more"))
    step = advance(proposed(approved=approved), replace(before(), revalidation=stays), SETTINGS, NOW)
    assert (step.move.phase, step.move.reason) == (MovePhase.REFUSED, Reason.NODE_STAYS)


@pytest.mark.parametrize("move", [proposed(created_at=NOW - 60), proposed(created_at=NOW - 60, approved=False)])
def test_a_move_that_no_policy_answers_for_ends_with_the_remedy(move: MoveState) -> None:
    step = turned_away(move, NOW)
    assert step is not None
    assert (step.move.phase, step.move.reason) == (MovePhase.REFUSED, "NoPolicy")
    assert "hot is in no BalancingPolicy's pool" in step.move.message
    assert step.move.timings.ended_at == NOW
    assert len(step.actions) == 1


@pytest.mark.parametrize(
    "move", [proposed(created_at=NOW - 59), leaving(), arriving(), settling(since=9)], ids=lambda move: move.phase
)
def test_it_is_waited_for_a_policy_and_what_has_begun_is_left_for_the_next_one(move: MoveState) -> None:
    assert turned_away(move, NOW + (0 if move.phase is MovePhase.PROPOSED else 9000)) is None


@pytest.mark.parametrize("move", [leaving(), arriving(), settling(since=9)], ids=lambda move: move.phase)
def test_what_has_begun_fails_when_no_policy_has_come_back_for_a_day(move: MoveState) -> None:
    since = move.timings.leaving_at
    assert since is not None
    assert turned_away(move, since + ABANDONED_SECONDS - 1) is None
    step = turned_away(move, since + ABANDONED_SECONDS)
    assert step is not None
    assert (step.move.phase, step.move.reason) == (MovePhase.FAILED, "NoPolicy")
    assert "hot is in no BalancingPolicy's pool" in step.move.message
    assert step.move.timings.ended_at == since + ABANDONED_SECONDS


def test_one_that_was_approved_and_has_not_begun_ends_too() -> None:
    step = turned_away(approved(), NOW + 60)
    assert step is not None
    assert step.move.phase is MovePhase.REFUSED


def on_its_way(*, since: float, **changes: Any) -> Facts:
    """The replacement was pinned, and nothing can schedule it."""
    return after(newcomer(Phase.PENDING, pinned=True, unschedulable_since=NOW - since, **changes))


@pytest.mark.parametrize(("phase", "reason"), [(Phase.GATED, MoveReason.PLACING), (Phase.PENDING, MoveReason.STARTING)])
def test_a_replacement_that_is_recognized_is_placed_while_its_gate_holds_and_awaited_after_that(
    phase: Phase, reason: MoveReason
) -> None:
    found = step(arriving(), after(newcomer(phase))).move
    assert found.replacement is not None
    assert (found.replacement.uid, found.reason) == ("uid-7", reason)


def test_a_replacement_settles_from_when_it_began_to_run_not_from_when_that_was_seen() -> None:
    found = step(claiming(), after(newcomer(Phase.RUNNING, node="cold", running_since=NOW - 2.5))).move
    assert (found.phase, found.timings.settling_at) == (MovePhase.SETTLING, NOW - 2.5)


def test_a_replacement_that_cannot_be_scheduled_is_deleted_and_the_event_names_it() -> None:
    found = step(claiming(), on_its_way(since=3600.0))
    (told,) = (action for action in found.actions if isinstance(action, Emit))
    assert (found.move.reason, found.move.attempts) == (MoveReason.DISCARDING, 1)
    assert told.message == "Arriving: clicks-exec-7 can't be scheduled to cold; it is deleted and placed again"


def test_after_the_last_attempt_a_replacement_is_awaited_to_the_end_and_then_told() -> None:
    last = claiming(attempts=MAX_ATTEMPTS)
    patience = (1 + MAX_ATTEMPTS) * SETTINGS.arrive_timeout_seconds
    waited = step(last, on_its_way(since=3600.0))
    assert (waited.changed, waited.effect, waited.wake_at) == (False, None, NOW - 5 + patience)
    ended = step(claiming(since=patience, attempts=MAX_ATTEMPTS), on_its_way(since=3600.0)).move
    assert (ended.phase, ended.reason) == (MovePhase.FAILED, MoveReason.REPLACEMENT_NOT_RUNNING)
    assert "clicks-exec-7 is Pending" in ended.message
