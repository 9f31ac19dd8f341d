import pytest

from ballast.model import Component, Executor, MovesPolicy, Phase, Reason, Topology, Workload
from ballast.moves.eligibility import Case, Evidence, objections
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
