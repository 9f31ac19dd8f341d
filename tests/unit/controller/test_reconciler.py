"""What the server refuses about one object must not keep anybody waiting at a gate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from ballast.api import BalancingPolicy
from ballast.api.topology import SparkTopology
from ballast.controller.actuator import Actuator
from ballast.controller.cluster_objects import ClusterLister, Observer, Read, read_moves
from ballast.controller.cluster_view import ClusterView
from ballast.controller.context import Context
from ballast.controller.ends import Rates
from ballast.controller.metrics_reader import MetricsReader
from ballast.controller.movers import Movers
from ballast.controller.reconciler import Parts, Reconciler
from ballast.controller.reporter import QUIET_SECONDS, Reporter
from ballast.controller.switch import Switch
from ballast.controller.telemetry import Telemetry
from ballast.kube.client import Client
from ballast.kube.document import text
from ballast.kube.errors import Unavailable
from ballast.kube.events import EventRecorder
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import ConditionReason, Memory, MetricsHealth, NodeUsage, Plan, Snapshot
from ballast.moves.record import to_move
from ballast.planner.plan import plan
from ballast.prometheus import Reading
from tests.apiserver import Answer, ApiServer, Asked, Watch, serving
from tests.lanes import AtOnce
from tests.unit.controller.stage import NOW, move
from tests.unit.kube.builders import (
    CREATED,
    GATE,
    NOMINATED_BY_ANOTHER,
    NOMINATED_BY_US,
    container,
    driver,
    executor,
    node,
    pod,
)

JSON = dict[str, Any]
TEAMS = ("ads", "web")
LONG_AGO = "2026-01-01T00:00:00Z"
PATIENCE_SECONDS = 30.0
"""So long that nothing is decided by how fast this machine is."""


@dataclass
class Time:
    now: float

    def __call__(self) -> float:
        return self.now


def policy(team: str, **more: Any) -> JSON:
    spec = {
        "nodeSelector": {"matchLabels": {"team": team}},
        "namespaceSelector": {"matchLabels": {"team": team}},
        "placement": {"mode": "Enforce"},
        "moves": {"mode": "Enforce"},
        **more,
    }
    metadata = {"name": team, "uid": f"uid-{team}", "resourceVersion": "1", "generation": 1}
    return {"metadata": metadata, "spec": spec}


def ordered(team: str) -> JSON:
    """A move of a driver: it ends at the first look, with a status to write."""
    found = move(1)
    found["metadata"] |= {"namespace": team, "name": f"of-{team}"}
    found["spec"] |= {"policyName": team, "executor": {"pod": f"{team}-driver", "uid": f"uid-{team}-driver"}}
    return found


def server_of_teams() -> ApiServer:
    """Each team has a node, a policy, a driver, an executor that is held, and a move that can't be."""
    found = ApiServer()
    found.put("balancingpolicies", *(policy(team) for team in TEAMS))
    found.put("executormoves", *(ordered(team) for team in TEAMS))
    found.put("nodes", *(node(f"node-{team}", labels={"team": team}) for team in TEAMS))
    for team in TEAMS:
        labels = {"team": team, "ballast.dev/gate": "enabled"}
        found.put("namespaces", {"metadata": {"name": team, "labels": labels}})
    found.put("pods", *(executor(1, application=team, namespace=team, gates=[GATE]) for team in TEAMS))
    found.put("pods", *(driver(team, namespace=team, node=f"node-{team}") for team in TEAMS))
    found.put("gateswitches", {"metadata": {"name": "ballast"}, "spec": {"gating": False}})
    return found


@pytest.fixture
def server() -> Iterator[tuple[ApiServer, ApiServer]]:
    with serving(server_of_teams()) as found:
        yield found, found


@contextmanager
def operating(
    script: ApiServer,
    folder: Path,
    *,
    metrics: MetricsReader | None = None,
    telemetry: Telemetry | None = None,
    monotonic: Callable[[], float] = time.monotonic,
    leading: Callable[[], bool] = lambda: True,
    clock: Callable[[], float] = lambda: NOW,
    observer: Callable[[Client], Observer] = ClusterLister,
    release_promised: Callable[[], bool] = lambda: False,
) -> Iterator[Reconciler]:
    client = script.client(folder)
    lane = AtOnce()
    events = EventRecorder(client, lane, instance="one", clock=clock, on_error=_fail)
    telemetry = telemetry or Telemetry(CollectorRegistry())
    parts = Parts(
        observer=observer(client),
        metrics=metrics or MetricsReader(client, namespace="ballast-system"),
        movers=Movers(client, lane, events=events, telemetry=telemetry, clock=clock),
        actuator=Actuator(client, lane, events=events, telemetry=telemetry, clock=clock),
        reporter=Reporter(client, lane, events=events, clock=clock),
        switch=Switch(client, name="ballast", identity="one", clock=clock, monotonic=clock),
        telemetry=telemetry,
    )
    reconciler = Reconciler(
        parts,
        clock=clock,
        monotonic=monotonic,
        leading=leading,
        release_promised=release_promised,
        patience_seconds=PATIENCE_SECONDS,
    )
    try:
        yield reconciler
    finally:
        reconciler.close()
        client.close()


def one_round(script: ApiServer, folder: Path) -> float | None:
    with operating(script, folder) as reconciler:
        return reconciler.run()


def _fail(error: Exception) -> None:
    raise error


def released(script: ApiServer) -> dict[str, bool]:
    """Executors that were let go: whether they were tied to a place."""
    patches = [asked for asked in script.writes if (asked.method, *asked.place[::3]) == ("PATCH", "pods", "")]
    return {asked.place.name: any("affinity" in change["path"] for change in asked.body) for asked in patches}


BOTH = {"ads-exec-1": True, "web-exec-1": True}
FORBIDDEN = Answer(403, {"reason": "Forbidden", "message": "exceeded quota"})
INVALID = Answer(422, {"reason": "Invalid", "message": "too long"})


@pytest.mark.parametrize(
    ("ending", "answer"),
    [
        ("", Answer()),
        ("/gateswitches/ballast", FORBIDDEN),
        ("/balancingpolicies/ads/status", INVALID),
        ("/executormoves/of-ads/status", FORBIDDEN),
        ("/executormoves/of-ads/status", INVALID),
    ],
)
def test_everybody_is_placed_whatever_cannot_be_written(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, ending: str, answer: Answer
) -> None:
    found, script = server
    if ending:
        found.refusals[ending] = answer
    assert one_round(script, tmp_path) is not None
    assert released(script) == BOTH
    told = [asked.path for asked in script.writes if "/executormoves/of-web/status" in asked.path]
    assert told, "the other team's move was not looked at"


@pytest.mark.parametrize("confirmed", [True, False])
def test_who_is_placed_does_not_wait_while_it_is_read_again_whether_others_opted_in(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, confirmed: bool
) -> None:
    """A tenant's pods that carry the gate although nothing opted them in would make every release wait for lists."""
    found, script = server
    stranger = executor(1, application="stranger", namespace="ads", gates=[GATE])
    stranger["metadata"]["annotations"] = {"ballast.dev/gate": "disabled"}
    found.lists["pods"].append(stranger)
    before = list[dict[str, bool]]()

    class Lister(ClusterLister):
        def confirm(self) -> bool:
            before.append(released(script))
            return confirmed

    with operating(script, tmp_path, observer=Lister) as reconciler:
        due = reconciler.run()
    assert before == [{"ads-exec-1": True}]
    assert released(script) == BOTH | ({"stranger-exec-1": False} if confirmed else {})
    assert confirmed or due == NOW + 1.0


def test_an_executor_that_was_released_while_it_was_planned_is_not_released_again(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """The answer to the pass before came late: 530 of 986 executors were asked for twice."""
    found, script = server
    answered = {pod["metadata"]["uid"] for pod in found.lists["pods"] if pod["metadata"]["namespace"] == "ads"}

    class Lister(ClusterLister):
        def released(self, uids: Iterable[str]) -> frozenset[str]:
            return frozenset(uids) & answered

    with operating(script, tmp_path, observer=Lister) as reconciler:
        reconciler.run()
    assert list(released(script)) == ["web-exec-1"]


@pytest.mark.parametrize("recommending", TEAMS)
def test_who_only_recommends_takes_nobody_from_who_enforces(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, recommending: str
) -> None:
    """Both policies are about all namespaces, each with its own node, and the executors would run on either."""
    found, script = server
    for each in found.lists["balancingpolicies"]:
        del each["spec"]["namespaceSelector"]
        if each["metadata"]["name"] == recommending:
            each["spec"]["placement"]["mode"] = "Recommend"
    one_round(script, tmp_path)
    assert released(script) == BOTH
    patches = [asked.path for asked in script.writes if "/pods/" in asked.path]
    assert len(patches) == len(BOTH), "somebody was released twice"


def test_an_executor_of_no_policy_is_not_released_before_it_is_read_again_that_none_has_come(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["pods"] = [executor(1, application="stray", namespace="stray", gates=[GATE])]
    answers = [False, True]

    class Lister(ClusterLister):
        def confirm(self) -> bool:
            return answers.pop(0)

    with operating(script, tmp_path, observer=Lister) as reconciler:
        assert reconciler.run() == NOW + 1.0
        assert released(script) == {}
        reconciler.run()
        assert released(script) == {"stray-exec-1": False}


def test_a_user_who_changes_an_object_all_the_time_keeps_no_reconcile_from_its_end(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """The user also has a gated pod that nothing opted in: the change may have opted it in."""
    found, script = server
    found.lists["pods"].append(executor(1, application="stray", namespace="stray", gates=[GATE]))
    found.lists["sparktopologies"] = [topology("web", 0)]
    orphaned = ordered("ads")
    orphaned["metadata"] |= {"name": "orphaned", "uid": "uid-orphaned"}
    orphaned["spec"] |= {"policyName": "gone", "sourceNodeName": "gone", "targetNodeName": "nowhere"}
    orphaned["metadata"]["creationTimestamp"] = LONG_AGO
    found.lists["executormoves"].append(orphaned)

    class Lister(ClusterLister):
        def confirm(self) -> bool:
            return False

    with operating(script, tmp_path, observer=Lister) as reconciler:
        reconciler.run()
    assert topologies_told(script) == ["web/t0"]
    assert [asked for asked in script.writes if "/executormoves/orphaned/status" in asked.path]
    assert released(script) == BOTH


@pytest.mark.parametrize(
    ("changes", "cleared"),
    [
        pytest.param({}, True, id="no executor any more"),
        pytest.param({"gates": [GATE], "deleted": True}, True, id="gated, and being deleted"),
        pytest.param({"by": NOMINATED_BY_ANOTHER}, False, id="nominated by kube-scheduler"),
    ],
)
def test_a_nomination_of_a_pod_that_no_policy_places_is_cleared(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, *, changes: dict[str, Any], cleared: bool
) -> None:
    """Its author has taken its labels away: kube-scheduler would keep the room of its node for good."""
    found, script = server
    by = changes.get("by", NOMINATED_BY_US)
    stray = executor(
        7, application="stray", namespace="ads", node=None, gates=changes.get("gates", []),
        status={"phase": "Pending", "nominatedNodeName": "node-ads"}, managed_fields=[by],
    )  # fmt: skip
    stray["metadata"]["labels"]["spark-role"] = "other"
    if changes.get("deleted"):
        stray["metadata"]["deletionTimestamp"] = LONG_AGO
    found.lists["pods"].append(stray)
    found.refusals = {f"/pods/{team}-exec-1/status": Answer(404) for team in TEAMS}
    found.refusals["/pods/stray-exec-7/status"] = Answer(body=stray)
    one_round(script, tmp_path)
    written = [asked.body[-1] for asked in script.writes if "/pods/stray-exec-7/status" in asked.path]
    assert written == ([{"op": "remove", "path": "/status/nominatedNodeName"}] if cleared else [])


def test_where_kube_scheduler_binds_no_executor_that_ballast_placed_no_other_is_nominated_for_two_minutes(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """Its author may delete it and create others: kube-scheduler would keep the room of a node for each in turn."""
    found, script = server
    unschedulable = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": CREATED,
    }
    status = {"phase": "Pending", "nominatedNodeName": "node-ads", "conditions": [unschedulable]}
    stuck = executor(9, application="ads", namespace="ads", status=status, managed_fields=[NOMINATED_BY_US])
    waiting = [pod("waiting", namespace=team) for team in TEAMS]
    found.refusals = {f"/pods/{team}-exec-1/status": Answer(404) for team in TEAMS}
    found.refusals["/pods/ads-exec-9/status"] = Answer(404)
    found.lists["pods"] += [stuck, *waiting]
    time = Time(1000.0)

    def nominated() -> set[str]:
        """By a reconcile that finds the executors at their gates."""
        found.put("pods", *(executor(1, application=team, namespace=team, gates=[GATE]) for team in TEAMS))
        script.asked.clear()
        reconciler.run()
        paths = {asked.path.split("?")[0] for asked in script.writes if "/pods/" in asked.path}
        return {team for team in TEAMS if any(path.endswith(f"/pods/{team}-exec-1/status") for path in paths)}

    with operating(script, tmp_path, monotonic=time) as reconciler:
        assert nominated() == {"web"}
        found.remove("pods", stuck["metadata"]["name"], "ads")
        time.now += 119.0
        assert nominated() == {"web"}
        time.now += 2.0
        assert nominated() == {"ads", "web"}


def test_a_policy_that_is_deleted_is_told_of_no_longer(server: tuple[ApiServer, ApiServer], tmp_path: Path) -> None:
    found, script = server
    telemetry = Telemetry(CollectorRegistry())
    with operating(script, tmp_path, telemetry=telemetry) as reconciler:
        reconciler.run()
        assert policies_told(telemetry) == set(TEAMS)
        found.lists["balancingpolicies"] = [policy("ads")]
        reconciler.run()
        assert policies_told(telemetry) == {"ads"}


@pytest.mark.parametrize("ending", ["/executormoves/of-ads/status", "/gateswitches/ballast"])
def test_a_server_that_does_not_answer_ends_the_round(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, ending: str
) -> None:
    found, script = server
    found.refusals[ending] = Answer(503, {"message": "etcd is down"})
    with pytest.raises(Unavailable, match="etcd is down"):
        one_round(script, tmp_path)


def test_a_round_that_loses_the_lease_on_its_way_leaves_the_rest_to_the_next_one(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    _, script = server
    lapsed: list[bool] = []

    def leading() -> bool:
        """Except for one look, after the first executor was let go."""
        lapses = bool(released(script)) and True not in lapsed
        lapsed.append(lapses)
        return not lapses

    with operating(script, tmp_path, leading=leading) as reconciler:
        assert reconciler.run() == NOW
        assert released(script) == {"ads-exec-1": True}
        reconciler.run()
        assert released(script) == BOTH


def part(asked: Asked) -> str | None:
    """Of the reconcile: the switch, a team's pass, or what no policy steers."""
    words = f"{asked.path} {asked.body}"
    return next((word for word in ("gateswitches", *TEAMS, "stray") if word in words), None)


def test_whenever_the_lease_is_lost_only_the_part_under_way_goes_on(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """Lost after each of the reconcile's requests: between its parts, and in the middle of them."""
    found, script = server
    found.lists["pods"].append(executor(1, application="stray", namespace="stray", gates=[GATE]))
    one_round(script, tmp_path)
    whole = list(script.asked)
    assert {part(asked) for asked in whole} == {None, "gateswitches", *TEAMS, "stray"}
    for lost_after in range(1, len(whole)):
        script.asked.clear()
        with operating(script, tmp_path, leading=lambda: len(script.asked) < lost_after) as reconciler:  # noqa: B023
            reconciler.run()
        before, after = script.asked[:lost_after], script.asked[lost_after:]
        under_way = next((name for asked in reversed(before) if (name := part(asked))), None)
        assert {part(asked) for asked in after if asked.method != "GET"} <= {under_way}, f"lost after {before[-1]}"


def test_a_round_that_finds_the_lease_lost_is_due_at_once(server: tuple[ApiServer, ApiServer], tmp_path: Path) -> None:
    _, script = server
    with operating(script, tmp_path, leading=lambda: False) as reconciler:
        assert reconciler.run() == NOW
    assert script.writes == []


def policies_told(telemetry: Telemetry) -> set[str]:
    """Policies that there are series of."""
    samples = (sample for metric in telemetry.registry.collect() for sample in metric.samples)
    return {sample.labels["policy"] for sample in samples if "policy" in sample.labels}


def test_who_has_lost_the_lease_tells_of_no_policy_any_more(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    _, script = server
    telemetry, lost = Telemetry(CollectorRegistry()), threading.Event()
    with operating(script, tmp_path, telemetry=telemetry, leading=lambda: not lost.is_set()) as reconciler:
        reconciler.run()
        assert policies_told(telemetry) == set(TEAMS)
        lost.set()
        asked = len(script.asked)
        assert reconciler.run() == NOW
        assert (policies_told(telemetry), len(script.asked)) == (set(), asked)


def test_who_leads_again_tells_of_no_policy_that_was_deleted_meanwhile(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    telemetry = Telemetry(CollectorRegistry())
    with operating(script, tmp_path, telemetry=telemetry) as reconciler:
        reconciler.run()
        found.lists["balancingpolicies"] = [policy("ads")]
        reconciler.forget()
        reconciler.run()
    assert policies_told(telemetry) == {"ads"}


def test_who_leads_again_does_not_trust_the_switch_that_it_left(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server

    def turned() -> int:
        return sum("/gateswitches/ballast?" in asked.path for asked in script.writes)

    with operating(script, tmp_path) as reconciler:
        for told in (1, 1):
            reconciler.run()
            assert turned() == told
        found.put("gateswitches", {"metadata": {"name": "ballast"}, "spec": {"gating": False}})
        reconciler.forget()
        reconciler.run()
        assert turned() == 2, "the server's is off, whatever was written before"


def test_a_switch_that_stays_off_is_a_metric_as_long_as_this_replica_leads(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    telemetry = Telemetry(CollectorRegistry())
    with operating(script, tmp_path, telemetry=telemetry) as reconciler:
        reconciler.run()
        assert telemetry.registry.get_sample_value("ballast_gate_switched_off") == 0
        found.lists["gateswitches"][0]["status"] = {"reason": "Uninstalled", "heartbeatTime": text(NOW)}
        reconciler.forget()
        reconciler.run()
        assert telemetry.registry.get_sample_value("ballast_gate_switched_off") == 1
    with operating(script, tmp_path, telemetry=telemetry, leading=lambda: False) as reconciler:
        reconciler.run()
    assert telemetry.registry.get_sample_value("ballast_gate_switched_off") == 0


def test_nothing_is_moved_where_releases_are_refused(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An executor would leave its node, and kube-scheduler would place its replacement anywhere."""
    found, script = server
    seen: list[Snapshot] = []

    def planned(snapshot: Snapshot, *more: Any) -> tuple[Plan, Memory]:
        seen.append(snapshot)
        return plan(snapshot, *more)

    monkeypatch.setattr("ballast.controller.reconciler.plan", planned)
    refusal = {"namespace": "ads", "message": "no", "since": text(NOW - 10.0), "until": text(NOW + 290.0)}
    found.lists["gateswitches"][0]["status"] = {"refusals": [refusal]}
    one_round(script, tmp_path)
    assert {frozenset(each.closed_namespaces) for each in seen} == {frozenset({"ads"})}
    assert {frozenset(each.ungated_namespaces) for each in seen} == {frozenset({"ads"})}


OVERLAP = {"nodeSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}
NO_SUCH_DAY = {"moves": {"mode": "Enforce", "budgets": [{"moves": 0, "duration": "2h", "schedule": "0 0 31 2 *"}]}}


@pytest.mark.parametrize("change", [OVERLAP, NO_SUCH_DAY], ids=["PoolsOverlap", "InvalidSpec"])
def test_nobody_is_held_where_only_a_policy_that_rests_would_place(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, change: JSON
) -> None:
    found, script = server
    found.lists["balancingpolicies"][1]["spec"] |= change
    one_round(script, tmp_path)
    (spec,) = [asked.body["spec"] for asked in script.writes if "/gateswitches/ballast?" in asked.path]
    assert (spec["gating"], spec["namespaces"]) == (True, ["ads"])
    assert released(script) == {"ads-exec-1": True, "web-exec-1": False}


def test_the_operators_metrics_tell_where_executors_run(server: tuple[ApiServer, ApiServer], tmp_path: Path) -> None:
    found, script = server
    found.lists["pods"].append(executor(2, application="web", namespace="web", node="node-web"))
    telemetry = Telemetry(CollectorRegistry())
    with operating(script, tmp_path, telemetry=telemetry) as reconciler:
        reconciler.run()
    (told,) = [sample for metric in telemetry.executor.collect() for sample in metric.samples]
    assert told.labels == {
        "policy": "web", "namespace": "web", "pod": "web-exec-2", "node": "node-web", "application": "web"
    }  # fmt: skip


def test_of_a_topology_in_two_pools_one_policy_speaks_and_nothing_is_left_to_write(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    for each in found.lists["balancingpolicies"]:
        del each["spec"]["namespaceSelector"]
    found.lists["executormoves"] = []
    found.lists["pods"] = [
        executor(i, application="ads", namespace="ads", node=f"node-{t}") for i, t in enumerate(TEAMS)
    ]
    found.lists["sparktopologies"] = [
        {
            "metadata": {"name": "t", "namespace": "ads", "uid": "ut", "resourceVersion": "1", "generation": 1},
            "spec": {"components": [{"name": "c", "selector": {"matchLabels": {"spark-role": "executor"}}}]},
        }
    ]

    def written() -> list[JSON]:
        return [asked.body["status"] for asked in script.writes if "/sparktopologies/t/status" in asked.path]

    clock = Time(NOW)
    with operating(script, tmp_path, clock=clock) as reconciler:
        reconciler.run()
        (status,) = written()
        assert status["policy"] == "ads"
        found.lists["sparktopologies"][0]["status"] = status
        for _ in range(3):
            clock.now += QUIET_SECONDS
            reconciler.run()
    assert "policy" not in [key for each in written()[1:] for key in each]


RARELY = {"interval": "30m", "moves": {"mode": "Enforce", "settle": "1h"}}


def test_a_status_that_had_to_wait_gets_a_round_of_its_own(server: tuple[ApiServer, ApiServer], tmp_path: Path) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", **RARELY)]
    found.lists["pods"] = found.lists["executormoves"] = []
    with operating(script, tmp_path) as reconciler:
        assert reconciler.run() == NOW + 1800.0
        (written,) = [asked.body["status"] for asked in script.writes if "/balancingpolicies/" in asked.path]
        found.lists["balancingpolicies"][0]["status"] = written
        found.lists["nodes"].append(node("node-new", labels={"team": "ads"}))
        assert reconciler.run() == NOW + QUIET_SECONDS


def topology(team: str, number: int) -> JSON:
    metadata = {"name": f"t{number}", "namespace": team, "uid": f"{team}/{number}", "resourceVersion": "1"}
    return {"metadata": {**metadata, "generation": 1}, "spec": {"components": [{"name": "ingest"}]}}


def topologies_told(script: ApiServer) -> list[str]:
    """Keys of those whose status was written."""
    paths = [asked.path.split("/") for asked in script.writes if "/sparktopologies/" in asked.path]
    return [f"{path[path.index('namespaces') + 1]}/{path[path.index('sparktopologies') + 1]}" for path in paths]


def test_a_topology_whose_status_cannot_be_worked_out_says_so_and_ends_no_reconcile(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise no reconcile would end well any more, and the liveness probe would restart every replica."""
    found, script = server
    sized = {"components": [{"name": "ingest"}], "sizing": {"machine": {"count": 1, "cores": 4}}}
    found.lists["sparktopologies"] = [topology("ads", 0) | {"spec": sized}, topology("web", 0)]

    def broken(declared: object) -> None:
        raise OverflowError(f"cannot convert {type(declared).__name__}")

    monkeypatch.setattr("ballast.controller.status.topology.sizing_status", broken)
    assert one_round(script, tmp_path) is not None
    assert topologies_told(script) == ["ads/t0", "web/t0"]
    ready = [
        next(each for each in asked.body["status"]["conditions"] if each["type"] == "Ready")
        for asked in script.writes
        if "/sparktopologies/" in asked.path
    ]
    assert [each["status"] for each in ready] == ["False", "True"]
    assert "OverflowError: cannot convert Sizing" in ready[0]["message"]


@pytest.mark.parametrize(("gates", "told"), [([GATE, {"name": "quota"}], 10), ([GATE], 3)], ids=["two gates", "ours"])
def test_a_pod_that_another_gate_holds_as_well_slows_nobody_down(
    server: tuple[ApiServer, ApiServer], tmp_path: Path, gates: list[JSON], told: int
) -> None:
    """A user may leave such a pod there for good."""
    found, script = server
    found.lists["pods"] = [executor(1, application="ads", namespace="ads", gates=gates)]
    found.lists["executormoves"] = []
    found.lists["sparktopologies"] = [topology("web", number) for number in range(10)]
    one_round(script, tmp_path)
    assert len(topologies_told(script)) == told


def test_what_had_no_turn_among_many_topologies_comes_before_those_that_had_one(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """So many that a reconcile without executors at their gates looks at a part of them only."""
    found, script = server
    found.lists["pods"] = found.lists["executormoves"] = []
    found.lists["sparktopologies"] = [topology("ads", number) for number in range(30)]
    with operating(script, tmp_path, release_promised=lambda: True) as reconciler:
        for _ in range(30):
            reconciler.run()
    assert len(set(topologies_told(script))) == 30


INTERVAL_SECONDS = 15.0


@dataclass
class _Watches:
    """The time of day, which may be set back, and one that only goes on."""

    clock: Time
    monotonic: Time

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.monotonic.now += seconds


def test_a_clock_that_is_set_back_puts_no_full_pass_off(server: tuple[ApiServer, ApiServer], tmp_path: Path) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", interval="15s")]
    found.lists["pods"] = found.lists["executormoves"] = []
    prompt, watches = Prompt(), _Watches(Time(NOW), Time(5.0))
    with operating(script, tmp_path, metrics=prompt, clock=watches.clock, monotonic=watches.monotonic) as reconciler:
        assert reconciler.run() == NOW + INTERVAL_SECONDS
        watches.wait(5.0)
        watches.clock.now -= 3600.0
        assert reconciler.run() == watches.clock.now + INTERVAL_SECONDS - 5.0
        asked = len(prompt.asked)
        watches.wait(INTERVAL_SECONDS - 5.0)
        assert reconciler.run() == watches.clock.now + INTERVAL_SECONDS
        assert len(prompt.asked) == asked + 1


def test_a_clock_that_is_set_back_while_a_round_runs_does_not_put_the_next_one_off(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", interval="15s")]
    clock = Time(NOW)

    def answer(asked: Asked) -> Answer | Watch:
        if "/balancingpolicies/ads/status" in asked.path:
            clock.now = NOW - 3600.0
        return found.respond(asked)

    script.by = answer
    with operating(script, tmp_path, clock=clock) as reconciler:
        due = reconciler.run()
    assert clock.now == NOW - 3600.0
    assert due is not None
    assert due <= clock.now + INTERVAL_SECONDS


class _Slow(MetricsReader):
    """A Prometheus that answers when it is told to; until then, all patience is over whenever somebody looks."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()
        self._now = 0.0

    def time(self) -> float:
        if not self.answers.is_set():
            self._now += PATIENCE_SECONDS
        return self._now

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        del executors, now
        self.asked.append(policy.metadata.name)
        assert self.answers.wait(30)
        usage = {node.name: NodeUsage(cpu_ratio=0.5) for node in nodes}
        return Reading(nodes=usage, health=MetricsHealth(available=True, reason=ConditionReason.AVAILABLE))

    def rates(self, policy: BalancingPolicy, topologies: list[SparkTopology], *, now: float) -> Rates:
        del policy, topologies, now
        return {}


def test_a_slow_prometheus_keeps_nobody_at_a_gate_and_is_asked_once(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    _, script = server
    slow = _Slow()
    with operating(script, tmp_path, metrics=slow, monotonic=slow.time) as reconciler:
        try:
            assert reconciler.run() == NOW + PATIENCE_SECONDS
            assert released(script) == BOTH
            assert verdicts(script) == [("False", "NoAnswerYet")] * 2
            reconciler.run()
        finally:
            slow.answers.set()
        reconciler.run()
        assert verdicts(script)[-2:] == [("True", "Available")] * 2
        assert sorted(slow.asked) == list(TEAMS)


class Prompt(_Slow):
    """One that answers at once, unless it is told not to."""

    def __init__(self) -> None:
        super().__init__()
        self.answers.set()

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        return replace(super().read(policy, nodes, executors, now=now), at=now)


class _Broken(Prompt):
    """Can't read what the Prometheus of one policy answers."""

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        if policy.metadata.name == "ads":
            raise ZeroDivisionError
        return super().read(policy, nodes, executors, now=now)


def test_where_metrics_cannot_be_read_executors_are_placed_without(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    _, script = server
    with operating(script, tmp_path, metrics=_Broken()) as reconciler:
        reconciler.run()
    assert released(script) == BOTH
    assert sorted(verdicts(script)) == [("False", "Unreachable"), ("True", "Available")]


def test_a_move_that_says_it_ends_in_a_thousand_years_goes_as_one_that_ended_when_it_was_made(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """Until it ends, its nodes would rest and the pool's budgets be spent."""
    found, script = server
    late = "2999-01-01T00:00:00Z"
    for each, name in zip(found.lists["executormoves"], ("old", "new"), strict=True):
        each["metadata"] |= {"name": name, "creationTimestamp": text(NOW - (7 * 86_400 if name == "old" else 10))}
        times = dict.fromkeys(("approved", "leaving", "arriving", "settling", "ended"), late)
        each["status"] = {"phase": "Succeeded", "timings": times}
    with operating(script, tmp_path, clock=Time(NOW)) as reconciler:
        reconciler.run()
    gone = [asked.path.split("?")[0].rsplit("/", 1)[-1] for asked in script.writes if asked.method == "DELETE"]
    assert gone == ["old"]
    (state,) = [each.state for each in read_moves((found.lists["executormoves"][1],), now=NOW)[0]]
    assert to_move(state, source_points_per_core=0.0).ended_at == NOW - 10


def test_a_status_that_this_version_cannot_read_counts_as_none_and_is_written_again(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """As after a rollback. The policy would be left alone for good, and its executors released without a place."""
    found, script = server
    odd = {"failures": [{"namespace": "ads", "application": "ads", "count": "many", "executors": ["one"]}]}
    found.lists["balancingpolicies"][0]["status"] = odd
    topology = {"name": "t", "namespace": "ads", "uid": "uid-t", "resourceVersion": "1", "generation": 1}
    declared = {"metadata": topology, "spec": {"components": [{"name": "ingest"}]}}
    found.lists["sparktopologies"] = [{**declared, "status": {"placement": {"ingest": "here"}}}]
    with operating(script, tmp_path) as reconciler:
        reconciler.run()
    assert released(script) == BOTH
    (written,) = [asked.body for asked in script.writes if asked.path.split("?")[0].endswith("policies/ads/status")]
    assert written["status"]["failures"] == []
    assert found.lists["sparktopologies"][0]["status"]["conditions"][0]["status"] == "True"


def test_who_is_let_go_because_a_pass_failed_is_told_so(
    server: tuple[ApiServer, ApiServer],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It fails before it looks at any of them, whatever is in the namespaces."""
    _, script = server
    context = ClusterView.context

    def failing(view: ClusterView, read: Read[BalancingPolicy], *more: Any) -> Context:
        if read.resource.metadata.name == "ads":
            raise ZeroDivisionError
        return context(view, read, *more)

    monkeypatch.setattr(ClusterView, "context", failing)
    with operating(script, tmp_path) as reconciler:
        reconciler.run()
    (line,) = [vars(each) for each in caplog.records if vars(each).get("event") == "PassFailed"]
    assert (line["policy"], line["error"]) == ("ads", "ZeroDivisionError: ")
    assert line["exc_info"] is not None
    assert released(script) == {"ads-exec-1": False, "web-exec-1": True}
    events = [asked.body for asked in script.writes if asked.path.split("?")[0].endswith("/events")]
    assert [event["note"] for event in events if event["regarding"]["name"] == "ads-exec-1"] == [
        "the pass of policy ads failed with it; conditions of the policy say why"
    ]


def test_between_full_passes_no_figures_are_used_that_are_older_than_they_may_be(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", **RARELY)]
    prompt, clock, telemetry = Prompt(), Time(NOW), Telemetry(CollectorRegistry())

    def metric(name: str) -> float | None:
        return telemetry.registry.get_sample_value(name, {"policy": "ads"})

    with operating(
        script, tmp_path, metrics=prompt, telemetry=telemetry, clock=clock, monotonic=prompt.time
    ) as reconciler:
        for since, asked, age in ((0.0, 1, 0.0), (90.0, 1, 90.0), (91.0, 2, 0.0), (181.0, 2, 90.0)):
            clock.now = NOW + since
            reconciler.run()
            assert (len(prompt.asked), metric("ballast_metrics_age_seconds")) == (asked, age)
        assert metric("ballast_metrics_timestamp_seconds") == NOW, "there was one full pass only"
        prompt.answers.clear()
        try:
            clock.now = NOW + 272.0
            reconciler.run()
            assert metric("ballast_pool_gap_points") is None
        finally:
            prompt.answers.set()


def test_an_answer_that_comes_too_late_is_used_by_no_full_pass_either(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads")]
    late, clock, telemetry = Prompt(), Time(NOW), Telemetry(CollectorRegistry())
    late.answers.clear()
    with operating(script, tmp_path, metrics=late, telemetry=telemetry, clock=clock, monotonic=late.time) as reconciler:
        try:
            reconciler.run()
        finally:
            late.answers.set()
        clock.now = NOW + 600.0
        reconciler.run()
    assert verdicts(script) == [("False", "NoAnswerYet"), ("False", "NoNodeMetrics")]
    labels = {"policy": "ads", "reason": "NoNodeMetrics"}
    assert telemetry.registry.get_sample_value("ballast_metrics_unusable", labels) == 1.0


def verdicts(script: ApiServer) -> list[tuple[str, str]]:
    """What was written of the policies' metrics, in order."""
    statuses = [asked.body["status"] for asked in script.writes if "/balancingpolicies/" in asked.path]
    found = [c for status in statuses for c in status.get("conditions", ()) if c["type"] == "MetricsAvailable"]
    return [(condition["status"], condition["reason"]) for condition in found]


class _Forged(Prompt):
    """Another tenant's pod speaks for an application."""

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        return replace(super().read(policy, nodes, executors, now=now), dropped={"Foreign": 2})


def test_samples_that_are_not_used_are_counted_by_full_passes(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", **RARELY)]
    telemetry = Telemetry(CollectorRegistry())
    with operating(script, tmp_path, metrics=_Forged(), telemetry=telemetry) as reconciler:
        reconciler.run()
        reconciler.run()
    assert telemetry.registry.get_sample_value("ballast_policy_interval_seconds", {"policy": "ads"}) == 1800.0
    counts = {
        cause: telemetry.registry.get_sample_value("ballast_samples_dropped_total", {"policy": "ads", "cause": cause})
        for cause in ("Foreign", "OutOfRange", "Malformed")
    }
    assert counts == {"Foreign": 2.0, "OutOfRange": 0.0, "Malformed": 0.0}


def test_status_and_metrics_have_one_table_of_executors_that_opted_in_and_are_not_placed(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    """A scheduler of others, a release without room, and executors that no policy includes."""
    found, script = server
    huge: JSON = {"containers": [{"name": "spark", "resources": {"requests": {"cpu": "1000"}}}]}
    found.put("namespaces", {"metadata": {"name": "lone", "labels": {"ballast.dev/gate": "enabled"}}})
    found.put(
        "pods",
        executor(2, application="ads", namespace="ads", node="node-ads", schedulerName="volcano"),
        executor(3, application="ads", namespace="ads", gates=[GATE], **huge),
        executor(1, application="lone", namespace="lone", node="node-ads"),
    )
    telemetry = Telemetry(CollectorRegistry())

    def count(cause: str) -> float | None:
        labels = {"policy": "ads", "cause": cause}
        return telemetry.registry.get_sample_value("ballast_unplaced_executors", labels)

    with operating(script, tmp_path, telemetry=telemetry) as reconciler:
        reconciler.run()
        assert (count("ForeignScheduler"), count("Overdue")) == (1.0, 2.0)
        reconciler.run()
        assert [count(each) for each in ("ForeignScheduler", "NoRoom", "ReleasedAsIs", "Overdue")] == [1.0, 1.0, 1.0, 0]
    assert telemetry.registry.get_sample_value("ballast_unclaimed_executors") == 1.0
    (ads,) = [each for each in found.all("balancingpolicies") if each["metadata"]["name"] == "ads"]
    conditions = ads["status"]["conditions"]
    (told,) = [each for each in conditions if each["type"] == "ExecutorsPlaced"]
    assert (told["status"], told["reason"]) == ("False", "Overdue")
    assert told["message"].startswith("3 executors that opted in are not placed: 2 Overdue, 1 ForeignScheduler; ")


def one_executor(found: ApiServer) -> None:
    """A streaming one on node-ads, next to which there is a spare node."""
    found.put("nodes", node("spare", labels={"team": "ads"}))
    hook = {"preStop": {"exec": {"command": ["/opt/decom.sh"]}}}
    running = executor(7, application="ads", namespace="ads", node="node-ads", containers=[container(lifecycle=hook)])
    running["metadata"]["labels"]["ballast.dev/workload"] = "Streaming"
    found.lists["pods"] = [running]


def cordon(found: ApiServer, *, unschedulable: bool = True) -> None:
    """The node of that executor; or undo it."""
    changed = node("node-ads", labels={"team": "ads"}, unschedulable=unschedulable)
    found.lists["nodes"] = [changed, *(n for n in found.all("nodes") if n["metadata"]["name"] != "node-ads")]


def test_a_node_that_is_about_to_go_is_emptied_between_full_passes_and_once(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", **RARELY)]
    found.lists["executormoves"] = []
    one_executor(found)
    prompt = Prompt()
    with operating(script, tmp_path, metrics=prompt, monotonic=prompt.time) as reconciler:
        reconciler.run()
        assert not found.all("executormoves")
        cordon(found)
        reconciler.run()
        (made,) = found.all("executormoves")
        assert (made["spec"]["executor"]["pod"], made["spec"]["targetNodeName"]) == ("ads-exec-7", "spare")
        assert made["spec"]["reason"]["taint"] == "node.kubernetes.io/unschedulable"
        reconciler.run()
        assert len(found.all("executormoves")) == 1
        assert len(prompt.asked) == 1, "there was one full pass only"


def test_a_proposal_to_empty_a_node_ends_once_the_node_stays(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", **{**RARELY, "moves": {"mode": "Approve", "settle": "1h"}})]
    found.lists["executormoves"] = []
    one_executor(found)
    cordon(found)
    prompt = Prompt()
    with operating(script, tmp_path, metrics=prompt, monotonic=prompt.time) as reconciler:
        for _ in range(3):
            reconciler.run()
        (made,) = found.all("executormoves")
        assert (made["status"]["phase"], made["status"]["reason"]) == ("Proposed", "AwaitingApproval")
        cordon(found, unschedulable=False)
        reconciler.run()
        (ended,) = found.all("executormoves")
        assert (ended["status"]["phase"], ended["status"]["reason"]) == ("Refused", "NodeStays")


def test_a_drain_that_is_only_recommended_counts_once_a_full_pass(
    server: tuple[ApiServer, ApiServer], tmp_path: Path
) -> None:
    found, script = server
    found.lists["balancingpolicies"] = [policy("ads", **{**RARELY, "moves": {"settle": "1h"}})]
    found.lists["executormoves"] = []
    one_executor(found)
    cordon(found)
    prompt, telemetry = Prompt(), Telemetry(CollectorRegistry())
    labels = {"policy": "ads", "kind": "recommendation"}
    with operating(script, tmp_path, metrics=prompt, telemetry=telemetry, monotonic=prompt.time) as reconciler:
        for _ in range(3):
            reconciler.run()
    assert len(prompt.asked) == 1
    assert telemetry.registry.get_sample_value("ballast_decisions_total", labels) == 1.0
    assert not found.all("executormoves")
