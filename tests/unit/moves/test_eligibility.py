from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ballast.model import Component, Executor, MovesPolicy, Phase, Reason, Topology, Workload
from ballast.moves.eligibility import Case, Evidence, TaskTimes, cause, objections
from tests.builders import NOW, a_topology, an_executor


def _why(
    executor: Executor,
    topology: Topology | None = None,
    evidence: Evidence | None = None,
    *,
    load_cores: float | None = 0.5,
    moves: MovesPolicy | None = None,
) -> Reason | None:
    case = Case(
        executor=executor,
        topology=topology or a_topology(),
        live_executors=6,
        load_cores=load_cores,
        evidence=evidence or Evidence(),
        now=NOW,
    )
    return next((reason for reason, _ in objections(case, moves or MovesPolicy())), None)


def test_an_ordinary_streaming_executor_may_move() -> None:
    assert _why(an_executor("e-1")) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"enforced": False}, Reason.NOT_OPTED_IN),
        ({"labeled": False}, Reason.NOT_OPTED_IN),
        ({"scheduler": "yunikorn"}, Reason.FOREIGN_SCHEDULER),
        ({"gang": "label scheduling.x-k8s.io/pod-group: clicks"}, Reason.GANG),
        ({"phase": Phase.LEAVING}, Reason.NOT_RUNNING),
        ({"graceful": False}, Reason.NO_DECOMMISSIONING),
        ({"allocator_direct": False}, Reason.UNSUPPORTED_ALLOCATOR),
        ({"running_since": NOW - 299}, Reason.TOO_YOUNG),
        ({"running_since": None}, Reason.TOO_YOUNG),
        ({"kueue_managed": True}, Reason.KUEUE_MANAGED),
        ({"state_bytes": 2.0**31}, Reason.LARGE_STATE),
        ({"state_bytes": None}, Reason.UNKNOWN_STATE),
    ],
)
def test_each_rule_refuses_with_a_reason_of_its_own(changes: dict[str, object], reason: Reason) -> None:
    assert _why(an_executor("e-1", **changes)) is reason


def test_an_executor_whose_load_is_not_known_stays() -> None:
    assert _why(an_executor("e-1"), load_cores=None) is Reason.UNKNOWN_LOAD


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        (Workload.STREAMING, None),
        (None, Reason.UNKNOWN_WORKLOAD),
        (Workload.BATCH, Reason.UNSUITED_WORKLOAD),
        (Workload.INTERACTIVE, Reason.UNSUITED_WORKLOAD),
        (Workload.REAL_TIME, Reason.UNSUITED_WORKLOAD),
    ],
)
def test_only_streaming_executors_move(workload: Workload | None, reason: Reason | None) -> None:
    topology = a_topology(Component("ingest", workload=workload))
    assert _why(an_executor("e-1"), topology) is reason


@pytest.mark.parametrize(("workload", "reason"), [(None, Reason.UNKNOWN_TOPOLOGY), (Workload.STREAMING, None)])
def test_an_executor_whose_label_names_no_topology_needs_a_workload(
    workload: Workload | None, reason: Reason | None
) -> None:
    topology = a_topology(Component("ingest", workload=workload), implicit=True)
    assert _why(an_executor("e-1", unknown_topology="click"), topology) is reason


def test_an_application_at_half_its_failure_budget_is_left_alone() -> None:
    assert _why(an_executor("e-1"), a_topology(failed_executors=6)) is Reason.FAILURE_BUDGET
    assert _why(an_executor("e-1"), a_topology(failed_executors=5)) is None


@pytest.mark.parametrize(("failed", "reason"), [(2, None), (3, Reason.FAILURE_BUDGET)])
def test_a_policy_may_leave_an_application_alone_earlier(failed: int, reason: Reason | None) -> None:
    policy = MovesPolicy(max_failure_percent=25)
    assert _why(an_executor("e-1"), a_topology(failed_executors=failed), moves=policy) is reason


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (Evidence(slowness=1.2), None),
        (Evidence(slowness=1.19), Reason.NOTHING_TO_GAIN),
        (Evidence(slowness=1.9, skew=1.6), Reason.DATA_SKEW),
        (Evidence(), None),
    ],
)
def test_the_evidence_decides_where_tasks_or_pressure_are_measured(evidence: Evidence, reason: Reason | None) -> None:
    assert _why(an_executor("e-1"), evidence=evidence) is reason


def test_unknown_state_moves_where_the_policy_allows_it() -> None:
    case = Case(an_executor("e-1", state_bytes=None), a_topology(), 6, 0.5, Evidence(), NOW)
    assert list(objections(case, MovesPolicy(allow_unknown_state=True))) == []


def test_an_executor_of_no_known_topology_has_no_known_workload() -> None:
    case = Case(an_executor("e-1"), None, 6, 0.5, Evidence(), NOW)
    assert [reason for reason, _ in objections(case, MovesPolicy())] == [Reason.UNKNOWN_WORKLOAD]


MOVES = MovesPolicy()


def compared(
    executor: Executor, *others: Executor, target: str | None = None, scores: Mapping[str, float] | None = None
) -> Evidence:
    return TaskTimes([executor, *others], scores or {}).evidence(executor, target, pressure_ratio=None)


def on(node: str, *seconds: float, **changes: object) -> list[Executor]:
    return [an_executor(f"{node}-{i}", node=node, task_seconds=each, **changes) for i, each in enumerate(seconds)]


SLOW = an_executor("e-1", node="hot", task_seconds=3.0, task_bytes=100.0)


class TestTheReference:
    def test_it_is_the_destinations_executors_where_there_are_any(self) -> None:
        found = compared(SLOW, *on("mild", 1.0, 1.0, 1.0), *on("cold", 2.0), target="cold")
        assert (found.slowness, found.reference) == (1.5, "the destination's executors")

    def test_otherwise_it_is_the_fastest_quarter(self) -> None:
        found = compared(SLOW, *on("mild", 1.0, 2.0, 2.0, 3.0), target="cold")
        assert (found.slowness, found.reference) == (3.0, "the fastest quarter")

    def test_it_is_a_finite_number_whatever_a_driver_exports(self) -> None:
        others = on("cold", 5e-324, 5e-324)
        assert compared(SLOW, *others).slowness == 1e6
        assert TaskTimes([SLOW, *others], {}).slownesses[SLOW.uid] == 1e6

    def test_it_is_the_fastest_quarter_even_if_most_executors_are_slow(self) -> None:
        slow = [*on("hot", 3.0, 3.0), *on("hotter", 3.0, 3.0, 3.0, 3.0, 3.0, 3.0)]
        assert compared(SLOW, *slow, *on("cold", 1.0, 1.0, 1.0)).slowness == 3.0

    def test_one_lucky_executor_in_twelve_is_not_the_reference(self) -> None:
        assert compared(SLOW, *on("cold", 0.1, *[2.0] * 11)).slowness == 1.5

    def test_executors_on_its_own_node_tell_nothing_about_the_node(self) -> None:
        assert compared(SLOW, *on("hot", 1.0, 1.0)).slowness is None
        assert compared(SLOW, *on("hot", 1.0, 1.0), *on("mild", 2.0)).slowness == 1.5

    @pytest.mark.parametrize(
        "changes",
        [{"application": "spark-other"}, {"resource_profile": "1"}, {"namespace": "other"}, {"phase": Phase.LEAVING}],
    )
    def test_other_applications_profiles_and_phases_do_not_count(self, changes: dict[str, object]) -> None:
        assert compared(SLOW, *on("cold", 1.0, **changes)).slowness is None

    def test_an_executor_without_task_metrics_has_none_to_compare(self) -> None:
        assert compared(an_executor("e-1", node="hot"), *on("cold", 1.0, 1.0)).slowness is None

    def test_tasks_that_take_no_time_divide_nothing(self) -> None:
        times = TaskTimes([SLOW, *on("cold", 0.0)], {})
        assert times.slownesses == {"uid-cold-0": 0.0}
        assert compared(SLOW, *on("cold", 0.0)).slowness is None

    def test_throttling_counts_by_how_much_it_exceeds_the_references(self) -> None:
        """The executor's own CPU limit goes along with a move, and so does the throttling that it causes anywhere."""
        reference = on("cold", 3.0)[0]
        found = compared(_throttled(SLOW, 0.5), _throttled(reference, 0.45))
        assert found.throttling_ratio == pytest.approx(0.05)

    def test_a_move_is_judged_by_the_fastest_quarter_before_and_after(self) -> None:
        others = on("mild", 2.0, 2.0)
        assert TaskTimes([SLOW, *others], {}).slownesses["uid-e-1"] == 1.5
        arrived = an_executor("e-9", node="cold", task_seconds=1.0)
        assert TaskTimes([arrived, *others], {}).slownesses["uid-e-9"] == 0.5

    @pytest.mark.parametrize(
        ("target", "scores", "comparable"),
        [
            pytest.param("new", {"hot": 75.0, "mild": 75.0, "new": 0.0}, False, id="as hot as its own node"),
            pytest.param(None, {"hot": 75.0, "mild": 75.0, "new": 0.0}, False, id="no node chosen yet"),
            pytest.param("new", {"hot": 75.0, "mild": 30.0, "new": 0.0}, True, id="nearer to the destination"),
            pytest.param("mild", {"hot": 75.0, "mild": 75.0, "new": 0.0}, True, id="on the destination itself"),
            pytest.param("new", {"hot": 75.0, "new": 0.0}, True, id="of unknown score"),
        ],
    )
    def test_it_is_comparable_where_its_node_is_like_the_destination(
        self,
        target: str | None,
        scores: dict[str, float],
        comparable: bool,
    ) -> None:
        assert compared(SLOW, *on("mild", 3.0), target=target, scores=scores).comparable is comparable


def _throttled(executor: Executor, ratio: float) -> Executor:
    assert executor.usage is not None
    return replace(executor, usage=replace(executor.usage, throttled_ratio=ratio))


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param(Evidence(slowness=1.2), id="slow"),
        pytest.param(Evidence(slowness=1.2, skew=1.0), id="slow at equal bytes"),
        pytest.param(Evidence(slowness=1.92, skew=1.6), id="slower than its tasks are large"),
        pytest.param(Evidence(slowness=1.2, skew=0.5), id="slow with little data"),
        pytest.param(Evidence(slowness=1.0, pressure_ratio=0.1), id="the node is under pressure"),
        pytest.param(Evidence(slowness=1.0, throttling_ratio=0.1), id="throttled here and not elsewhere"),
        pytest.param(Evidence(slowness=1.0, pressure_ratio=0.0, score=90.0), id="the node is saturated"),
        pytest.param(Evidence(), id="nothing is measured"),
        pytest.param(Evidence(slowness=1.0, comparable=False), id="compared with executors on nodes as hot"),
        pytest.param(Evidence(score=60.0), id="only the score is known"),
    ],
)
def test_a_move_needs_one_piece_of_evidence(evidence: Evidence) -> None:
    assert evidence.objection(MOVES) is None


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (
            Evidence(slowness=1.05, score=72.0, reference="the destination's executors"),
            (
                "105% of the seconds per task of the destination's executors (minSlownessPercent 120); node pressure "
                "unknown; score 72 below saturationScore 90"
            ),
        ),
        (
            Evidence(pressure_ratio=0.02, score=72.4),
            "seconds per task unknown; node pressure 2% (minPressurePercent 10); score 72 below saturationScore 90",
        ),
        (
            Evidence(slowness=1.0, comparable=False, pressure_ratio=0.0),
            (
                "100% of the seconds per task of the fastest quarter, which is on nodes as hot "
                "(minSlownessPercent 120); node pressure 0% (minPressurePercent 10); score unknown"
            ),
        ),
        (
            Evidence(slowness=1.4, skew=1.3, throttling_ratio=-0.05),
            (
                "140% of the seconds per task of the fastest quarter at 130% of its bytes (minSlownessPercent 120); "
                "node pressure unknown; throttled -5% against the fastest quarter (minPressurePercent 10); "
                "score unknown"
            ),
        ),
    ],
)
def test_without_evidence_the_refusal_names_what_was_measured_and_what_is_missing(
    evidence: Evidence, words: str
) -> None:
    assert evidence.objection(MOVES) == (Reason.NOTHING_TO_GAIN, words)


def test_larger_tasks_are_skewed_data_even_on_a_saturated_node() -> None:
    found = Evidence(slowness=1.9, skew=1.6, pressure_ratio=0.5, score=99.0).objection(MOVES)
    assert found is not None
    assert (found[0], found[1][:46]) == (Reason.DATA_SKEW, "its tasks carry 1.60 times the bytes of the fa")


def test_with_a_saturation_of_zero_a_gap_is_evidence_enough() -> None:
    assert Evidence(slowness=0.5, pressure_ratio=0.0, score=1.0).objection(MovesPolicy(saturation_score=0.0)) is None


@pytest.mark.parametrize(
    ("slowness", "pressure_ratio", "words"),
    [
        (1.6, None, "its tasks take 1.60 times as long as those of the fastest quarter"),
        (None, 0.34, "something waits for CPU on its node 34% of the time"),
        (None, None, "by the scores alone: there are no task metrics and no pressure metrics"),
    ],
)
def test_a_move_tells_what_was_measured(slowness: float | None, pressure_ratio: float | None, words: str) -> None:
    assert cause(slowness=slowness, pressure_ratio=pressure_ratio) == words
