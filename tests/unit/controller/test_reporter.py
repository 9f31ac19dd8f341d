"""What is written to status, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ballast.api import BalancingPolicy
from ballast.api.policy_status import NodeScore
from ballast.controller.cluster_objects import ClusterObjects, Read
from ballast.controller.context import Context
from ballast.controller.ends import Finding
from ballast.controller.failures import Application, Failed
from ballast.controller.observe import Lists
from ballast.controller.quota import Excess
from ballast.controller.reporter import QUIET_SECONDS, Candidate, Reporter, owner_of
from ballast.controller.status import Outlook
from ballast.errors import BallastError
from ballast.kube import kinds
from ballast.kube.events import EventRecorder
from ballast.model import (
    ConditionReason,
    Constraints,
    Executor,
    Memory,
    MetricsHealth,
    NodeUsage,
    Phase,
    PlacementMode,
    Reason,
    Requirement,
    Snapshot,
    Topology,
)
from ballast.model.snapshot import Attempts
from ballast.planner.plan import plan
from ballast.prometheus import Reading
from ballast.tenancy.door import KEPT_BYTES
from ballast.tenancy.lane import Lane
from tests.apiserver import Answer, ApiServer, Asked, scripted
from tests.builders import NOW, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.lanes import AtOnce, impatient
from tests.testbed.waiting import wait_until
from tests.unit.controller.crowd import topology_resource

JSON = dict[str, Any]
STALLS = Finding("team/clicks", ConditionReason.SELECTOR_MATCHES_DRIVER, "mend it", stalls=True)

AVAILABLE = MetricsHealth(available=True, reason=ConditionReason.AVAILABLE)


class Stage:
    """A policy whose status is kept as the server would keep it."""

    def __init__(self, script: ApiServer, folder: Path) -> None:
        self.now, self.generation, self.status = NOW, 1, dict[str, Any]()
        self.script, self.mode = script, a_policy().placement.mode
        self.spoke_last: str | None = None
        """The policy that wrote the topology's status."""
        self._client = script.client(folder)
        self.restart()

    def restart(self, lane: Lane | None = None) -> None:
        lane = lane or AtOnce()
        events = EventRecorder(self._client, lane, instance="one", clock=self.clock, on_error=_fail)
        self.tried_again: list[float] = []
        self.reporter = Reporter(self._client, lane, events=events, clock=self.clock, try_again=self.tried_again.append)

    def clock(self) -> float:
        return self.now

    def report(
        self,
        *,
        cpu: float = 0.5,
        node: str = "b",
        zone: str = "z1",
        memory: Memory | None = None,
        findings: tuple[Finding, ...] = (),
        topologies: tuple[Topology, ...] = (),
        executors: tuple[Executor, ...] = (),
        metrics: MetricsHealth = AVAILABLE,
        failures: Mapping[Application, Failed] | None = None,
        released_as_is: Mapping[str, Reason] | None = None,
    ) -> float | None:
        """One pass over two nodes, of which the one named `node` is at `cpu`. When to write what had to wait."""
        nodes = (a_node("a", cpu=0.1), a_node(node, zone=zone, usage=NodeUsage(cpu_ratio=cpu)))
        context = self._context(
            a_snapshot(
                *nodes,
                topologies=topologies,
                executors=executors,
                metrics=metrics,
                taken_at=self.now,
                released_as_is=released_as_is or {},
            ),
            findings,
            failures or {},
        )
        decided, after = plan(context.snapshot, context.policy, memory or Memory(), self.now)
        count = len(self.patches())
        self.reporter.begin({"streaming", "other"}, [])
        waiting = [
            self.reporter.report(context, decided, memory or after, renew=True),
            self.reporter.conclude(),
        ]
        for change in self.patches()[count:]:
            self.status = {**self.status, **change}
        return min((at for at in waiting if at is not None), default=None)

    def _context(
        self, snapshot: Snapshot, findings: tuple[Finding, ...], failures: Mapping[Application, Failed]
    ) -> Context:
        raw: JSON = {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming", "uid": "u1", "resourceVersion": "9", "generation": self.generation},
            "spec": {"nodeSelector": {"matchLabels": {"pool": "streaming"}}},
            "status": self.status,
        }
        clicks = topology_resource(status={"policy": self.spoke_last} if self.spoke_last else None)
        seen = Read({"metadata": {"name": "clicks", "namespace": "team", "uid": "u2", "resourceVersion": "3"}}, clicks)
        return Context(
            read=Read(raw, BalancingPolicy.parse(raw)),
            policy=a_policy(placement=replace(a_policy().placement, mode=self.mode)),
            objects=ClusterObjects(Lists((), ()), (), (seen,), ()),
            snapshot=snapshot,
            memory=Memory(),
            reading=Reading(),
            findings=findings,
            pods={},
            failures=failures,
        )

    def events(self) -> list[tuple[str, str, str]]:
        """Reason, note and the name of what each Event is about."""
        posted = [asked.body for asked in self.script.asked if asked.path.startswith("/apis/events.k8s.io")]
        return [(e["reason"], e["note"], e["regarding"]["name"]) for e in posted]

    def patches(self) -> list[JSON]:
        asked = (a for a in self.script.asked if a.method == "PATCH" and "/balancingpolicies/" in a.path)
        return [a.body["status"] for a in asked]


def _fail(error: Exception) -> None:
    raise error


@pytest.fixture
def stage(tmp_path: Path) -> Any:
    with scripted(Answer()) as script:
        yield Stage(script, tmp_path)


def test_the_first_pass_is_told_at_once(stage: Stage) -> None:
    stage.report()
    (status,) = stage.patches()
    assert status["observedGeneration"] == 1
    assert status["nodes"]["total"] == 2


def condition(status: JSON, kind: str) -> tuple[str, str, str] | None:
    found = (c for c in status.get("conditions") or () if c["type"] == kind)
    return next(((c["status"], c["reason"], c["message"]) for c in found), None)


def test_executors_that_are_not_placed_are_a_condition_with_counts_by_cause(stage: Stage) -> None:
    stage.mode = PlacementMode.ENFORCE
    foreign = [an_executor(f"e-{n}", node="a", scheduler="volcano") for n in range(3)]
    late = [an_executor(f"f-{n}", node="a") for n in range(2)]
    stage.report(executors=(*foreign, *late), released_as_is={each.uid: Reason.GATE_TIMEOUT for each in late})
    status, reason, message = condition(stage.status, "ExecutorsPlaced") or ("", "", "")
    assert (status, reason) == ("False", "ForeignScheduler")
    assert message.startswith("5 executors that opted in are not placed: 3 ForeignScheduler, 2 ReleasedAsIs; team/e-0:")
    stage.report(executors=())
    assert condition(stage.status, "ExecutorsPlaced") is None


def overruled(name: str) -> Executor:
    """Tied to its zone, though its pod prefers to be spread over zones."""
    zone = "topology.kubernetes.io/zone"
    tie = Constraints(affinity_terms=((Requirement(zone, "In", ("z1",)),),))
    return an_executor(name, node="a", pinned=True, placed=True, constraints=tie, soft_spread_keys=(zone,))


def test_the_condition_counts_faults_first_and_other_causes_on_their_own(stage: Stage) -> None:
    stage.mode = PlacementMode.ENFORCE
    waiting = [gated(f"w-{n}", last_gate_since=None, gates=("kueue.x-k8s.io/admission",)) for n in range(30)]
    foreign = an_executor("f-1", node="a", scheduler="volcano")
    stage.report(executors=(foreign, *(overruled(f"o-{n}") for n in range(40)), *waiting), zone="z2")
    _, reason, message = condition(stage.status, "ExecutorsPlaced") or ("", "", "")
    assert reason == "ForeignScheduler"
    assert message.startswith("1 executors that opted in are not placed: 1 ForeignScheduler; team/f-1: its scheduler")
    assert message.endswith(
        "; 30 others need nothing from you: 30 ForeignGate; 40 are placed, though not as asked for: "
        "40 ConstraintsOverruled"
    )


def test_executors_whose_soft_spread_is_overruled_are_placed_and_the_condition_says_how(stage: Stage) -> None:
    stage.mode = PlacementMode.ENFORCE
    stage.report(executors=(overruled("e-1"),), zone="z2")
    status, reason, message = condition(stage.status, "ExecutorsPlaced") or ("", "", "")
    assert (status, reason) == ("True", "ConstraintsOverruled")
    assert "placement.maxExecutorsPerZonePercent" in message


def test_figures_wait_until_the_last_write_is_a_minute_ago(stage: Stage) -> None:
    stage.report(cpu=0.5)
    stage.now += QUIET_SECONDS - 1
    stage.report(cpu=0.55)
    assert len(stage.patches()) == 1
    stage.now += 1
    stage.report(cpu=0.6)
    assert len(stage.patches()) == 2
    assert stage.patches()[1]["nodes"]["hottest"]["score"] == 60


def test_what_had_to_wait_says_when_it_may_be_written(stage: Stage) -> None:
    same = Memory()
    assert stage.report(memory=same) is None
    stage.now += 10.0
    assert stage.report(memory=same) is None
    assert stage.report(memory=same, cpu=0.55) == NOW + QUIET_SECONDS
    stage.now = NOW + QUIET_SECONDS
    assert stage.report(memory=same, cpu=0.55) is None
    assert len(stage.patches()) == 2


def test_a_clock_that_is_set_back_silences_nobody(stage: Stage) -> None:
    stage.report(cpu=0.5)
    stage.now -= 3600.0
    stage.report(cpu=0.55)
    assert len(stage.patches()) == 2


def test_where_nothing_changes_nothing_is_written(stage: Stage) -> None:
    stage.report()
    stage.now += 10 * QUIET_SECONDS
    stage.report()
    assert all("nodes" not in each for each in stage.patches()[1:])


def test_another_generation_is_told_at_once(stage: Stage) -> None:
    stage.report()
    stage.generation = 2
    stage.report()
    assert [each.get("observedGeneration") for each in stage.patches()] == [1, 2]


def test_another_verdict_is_told_at_once(stage: Stage) -> None:
    stage.report(cpu=0.15)
    stage.report(cpu=0.95)
    assert len(stage.patches()) == 2


def test_an_attempt_is_told_at_once_lest_it_be_made_for_ever(stage: Stage) -> None:
    stage.report()
    stage.report(memory=Memory(attempts=(Attempts("team/clicks", "ingest", 1, NOW),)))
    assert stage.patches()[1]["attempts"][0]["count"] == 1


def test_an_executor_that_failed_is_told_at_once_lest_it_be_forgotten(stage: Stage) -> None:
    stage.report()
    stage.report(failures={("team", "spark-1"): Failed(frozenset({7}))})
    (failed,) = stage.patches()[1]["failures"]
    assert failed == {"namespace": "team", "application": "spark-1", "count": 1, "executors": [7]}


def test_executors_that_fail_all_the_time_bring_a_write_every_few_seconds(stage: Stage) -> None:
    """A kubelet may reject a user's pods, which are made again at once: each reconcile sees new failures."""
    seconds = 60
    for number in range(5 * seconds):
        stage.now = NOW + number / 5
        stage.report(failures={("team", "spark-1"): Failed(frozenset({number}), number)})
    writes = len(stage.patches())
    assert writes <= 10 + seconds / 5
    stage.now += 5.0
    due = stage.report(failures={("team", "spark-1"): Failed(frozenset({999}), 999)})
    assert (due, len(stage.patches())) == (None, writes + 1)
    soon = stage.report(failures={("team", "spark-1"): Failed(frozenset({1000}), 1000)})
    assert soon is not None
    assert stage.now < soon <= stage.now + 5.0


def test_what_an_older_crd_drops_is_not_told_again_and_again(stage: Stage) -> None:
    for _ in range(3):
        stage.report(failures={("team", "spark-1"): Failed(frozenset({7}))})
        stage.status.pop("failures", None)
    assert len(stage.patches()) == 1
    stage.report(failures={("team", "spark-1"): Failed(frozenset({7, 8}))})
    assert stage.patches()[1]["failures"][0]["count"] == 2


@pytest.mark.parametrize(("status", "again"), [(409, [1.0]), (404, [])])
def test_a_status_that_somebody_else_wrote_comes_again_soon_and_one_that_is_gone_with_the_next_pass(
    tmp_path: Path, status: int, again: list[float]
) -> None:
    theirs = Answer(body={"metadata": {"uid": "another"}})
    with scripted(Answer(status, {"message": "changed"}), *([theirs] if again else []), Answer()) as script:
        stage = Stage(script, tmp_path)
        stage.report()
        assert stage.tried_again == again
        stage.status = {}
        stage.report()
        assert len(stage.patches()) == 2


def test_a_score_beyond_what_a_status_may_hold_is_shown_as_the_most_that_it_may(stage: Stage) -> None:
    stage.report(cpu=1e30)
    assert stage.patches()[0]["nodes"]["hottest"]["score"] == 1_000_000


def test_a_status_that_is_not_valid_is_a_condition_and_keeps_no_other_from_being_written(stage: Stage) -> None:
    stage.report(topologies=(a_topology(),), node="b" * 300)
    (status,) = stage.patches()
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "StatusNotValid")
    assert "NodeScore.name: String should have at most 253 characters" in ready["message"]
    (written,) = (a.body["status"] for a in stage.script.asked if "/sparktopologies/" in a.path)
    assert next(c["status"] for c in written["conditions"] if c["type"] == "Ready") == "True"


def test_a_topologys_status_that_is_not_valid_is_a_condition_of_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = lambda *_: NodeScore(name="n" * 300, score=1.0)  # noqa: E731
    monkeypatch.setattr("ballast.controller.reporter.topology_status", broken)
    stage.report(topologies=(a_topology(),))
    (written,) = (a.body["status"] for a in stage.script.asked if "/sparktopologies/" in a.path)
    assert [(c["type"], c["status"], c["reason"]) for c in written["conditions"]] == [
        ("Ready", "False", "StatusNotValid")
    ]


def test_a_query_that_may_not_run_is_a_condition_of_its_topology(stage: Stage) -> None:
    stage.report(
        findings=(Finding("team/clicks", ConditionReason.QUERY_NOT_ALLOWED, "ask for it"),), topologies=(a_topology(),)
    )
    (written,) = (a.body["status"] for a in stage.script.asked if "/sparktopologies/" in a.path)
    verdicts = {c["type"]: (c["status"], c["reason"]) for c in written["conditions"]}
    assert verdicts["MetricsAvailable"] == ("False", "QueryNotAllowed")


@pytest.mark.parametrize("reason", [ConditionReason.EXTERNAL_NAMESPACE_NOT_ALLOWED, ConditionReason.EXTERNAL_NOT_FOUND])
def test_an_external_component_that_is_not_seen_is_a_condition_of_its_topology(
    stage: Stage, reason: ConditionReason
) -> None:
    stage.report(findings=(Finding("team/clicks", reason, "ask for it"),), topologies=(a_topology(),))
    (written,) = (a.body["status"] for a in stage.script.asked if "/sparktopologies/" in a.path)
    verdicts = {c["type"]: (c["status"], c["reason"], c["message"]) for c in written["conditions"]}
    assert verdicts["ExternalFound"] == ("False", reason, "ask for it")
    assert verdicts["Ready"][0] == "True"


@pytest.mark.parametrize(
    ("executor", "spoke_last", "owner"),
    [
        pytest.param(an_executor("e-1", node="a"), "other", True, id="it runs on the policy's nodes"),
        pytest.param(gated("e-1"), "other", True, id="the policy holds it"),
        pytest.param(an_executor("e-1", node="far"), "other", False, id="it runs in another pool"),
        pytest.param(an_executor("e-1", node=None, phase=Phase.PENDING), "other", False, id="another let it go"),
        pytest.param(an_executor("e-1", node=None, phase=Phase.PENDING), "streaming", True, id="the policy let it go"),
        pytest.param(an_executor("e-1", node="far"), None, True, id="nobody has spoken yet"),
        pytest.param(an_executor("e-1", node="far"), "deleted", True, id="who spoke last is gone"),
    ],
)
def test_a_policy_owner_of_a_topology_that_is_its_own(
    stage: Stage, executor: Executor, spoke_last: str | None, *, owner: bool
) -> None:
    stage.spoke_last = spoke_last
    stage.report(topologies=(a_topology(),), executors=(executor,))
    told = [asked for asked in stage.script.asked if asked.method == "PATCH" and "/sparktopologies/" in asked.path]
    assert bool(told) is owner


def test_what_is_gone_is_forgotten(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    broken = BallastError("SparkTopology team/odd is not valid")
    stage.report(topologies=(a_topology(),))
    for _ in range(3):
        stage.reporter.begin({"streaming"}, [broken])
    assert len(stage.reporter) == 6
    assert [record.message for record in caplog.records].count(f"left alone: {broken}") == 1
    stage.now += QUIET_SECONDS
    stage.reporter.begin(set(), [])
    assert len(stage.reporter) == 0


def test_objects_beyond_the_quota_of_their_namespace_have_an_event_and_a_line_in_the_log(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    excess = Excess(kinds.SPARK_TOPOLOGY, "tenant", "long-4", "u4", KEPT_BYTES)
    for _ in range(3):
        stage.reporter.begin({"streaming"}, [], excesses=[excess])
    assert stage.events()[0] == ("QuotaExceeded", str(excess), "long-4")
    assert [record.message for record in caplog.records].count(f"left alone: {excess}") == 1


def test_a_round_does_not_forget_what_was_just_written(stage: Stage) -> None:
    stage.report(cpu=0.5)
    stage.now += QUIET_SECONDS - 1
    stage.reporter.begin({"streaming"}, [])
    stage.report(cpu=0.55)
    assert len(stage.patches()) == 1


def test_findings_become_events_on_their_topology(stage: Stage) -> None:
    stage.report(findings=(Finding("team/clicks", ConditionReason.UNKNOWN_COMPONENT, "add it"),))
    assert stage.events() == [("UnknownComponent", "add it", "clicks")]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (ConditionReason.UNREACHABLE, True),
        (ConditionReason.SECRET_NOT_READ, True),
        (ConditionReason.NO_NODE_METRICS, True),
        (ConditionReason.NOT_CONFIGURED, False),
        (ConditionReason.NO_ANSWER_YET, False),
    ],
)
def test_metrics_that_fail_become_an_event_on_their_policy(
    stage: Stage, reason: ConditionReason, *, told: bool
) -> None:
    stage.report(metrics=MetricsHealth(available=False, reason=reason, message="correct the address"))
    assert stage.events() == ([(reason.value, "correct the address", "streaming")] if told else [])


def candidate(policy: str, in_pool: int, stalls: Finding | None = None) -> Candidate:
    snapshot, settings = a_snapshot(), a_policy(name=policy)
    decided, memory = plan(snapshot, settings, Memory(), NOW)
    return Candidate(Outlook(snapshot, settings, decided, memory, NOW), in_pool, stalls)


@pytest.mark.parametrize(
    ("in_pool", "last", "owner"),
    [
        pytest.param({}, "old", None, id="no policy can report"),
        pytest.param({"old": 1, "new": 9}, "old", "old", id="the last owner has executors in its pool"),
        pytest.param({"old": 9, "new": 1}, "new", "new", id="the last owner, though it is younger"),
        pytest.param({"old": 1, "new": 2}, None, "new", id="the policy with most executors"),
        pytest.param({"old": 2, "new": 2}, None, "old", id="of equals the oldest"),
        pytest.param({"old": 0, "new": 1}, "old", "new", id="the last owner has none any more"),
        pytest.param({"old": 0, "new": 0}, "new", "new", id="the last owner, where no policy has any"),
        pytest.param({"old": 0, "new": 0}, None, "old", id="the oldest, where there was no owner"),
        pytest.param({"old": 0, "new": 0}, "other", None, id="the last owner can report nothing now"),
        pytest.param(
            {"old": 0, "new": 1}, "other", "new", id="another policy, while the last owner can report nothing"
        ),
    ],
)
def test_one_policy_owns_a_topology(in_pool: dict[str, int], last: str | None, owner: str | None) -> None:
    found = owner_of([candidate(policy, count) for policy, count in in_pool.items()], last=last)
    assert (found.policy if found else None) == owner


def test_a_topology_that_stalls_is_told_of_whoever_is_in_pool() -> None:
    found = owner_of([candidate("old", 3), candidate("new", 0, STALLS)], last="old")
    assert found is not None
    assert found.stalls is STALLS


def test_a_topology_that_stalls_says_in_its_status_what_to_mend(stage: Stage) -> None:
    stage.report(findings=(STALLS,), topologies=(a_topology(),))
    (written,) = (a.body["status"] for a in stage.script.asked if "/sparktopologies/" in a.path)
    assert condition(written, "Ready") == ("False", "SelectorMatchesDriver", "mend it")
    assert condition(written, "Stalled") == ("True", "SelectorMatchesDriver", "mend it")


def test_a_finding_about_a_topology_that_is_gone_brings_no_event(stage: Stage) -> None:
    stage.report(findings=(Finding("team/gone", ConditionReason.UNKNOWN_COMPONENT, "add it"),))
    assert stage.events() == []


def test_a_status_that_takes_long_is_not_waited_for_and_not_sent_twice(stage: Stage) -> None:
    """A webhook may take as long as it likes, and executors of others are gated meanwhile."""
    let, asked = Event(), list[Asked]()

    def slowly(each: Asked) -> Answer:
        if "/sparktopologies/" in each.path:
            asked.append(each)
            assert let.wait(30), "this answer was waited for"
        return Answer()

    stage.script.by = slowly
    lane = impatient()
    stage.restart(lane)
    stage.report(findings=(STALLS,), topologies=(a_topology(),))
    wait_until(lambda: asked, what="it is sent")
    assert stage.report(findings=(STALLS,), topologies=(a_topology(),)) == NOW + 1.0
    let.set()
    lane.drain(60.0)
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("status", "again"), [(503, [10.0]), (422, [])], ids=["a server in trouble", "a status that it refuses"]
)
def test_a_status_that_is_not_written_ends_no_reconcile(tmp_path: Path, status: int, again: list[float]) -> None:
    with scripted(Answer(status, {"message": "no"})) as script:
        stage = Stage(script, tmp_path)
        stage.report()
    assert stage.tried_again == again
