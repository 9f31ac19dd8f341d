"""Moves on the real API server, with the operator's own rights: those made by hand, and what is left of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.controller.failures import Failure
from ballast.kube.kinds import BALANCING_POLICY, CLAIM, EXECUTOR_MOVE, NODE, POD, SPARK_TOPOLOGY, VOLUME
from ballast.kube.objects import Query, read_list
from tests.cluster.chart.installation import CHART, NAMESPACE, RELEASE, Installation
from tests.cluster.chart.objects import gates_of
from tests.cluster.controller.hand import Clock, FakeFigures, hand, watching
from tests.cluster.controller.ordered import CLICKS, COLD, EAGER, HOT, MOVES, WARM, Stage, stage, take_places, traveling
from tests.cluster.controller.pool import (
    ENFORCE,
    PATIENCE_SECONDS,
    ZONE_LABEL,
    Pool,
    pool,
    required_labels,
    zones,
)
from tests.cluster.controller.scene import Driver
from tests.faults.invariants import watched
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]


def test_a_move_made_by_hand_is_carried_out_as_any_other(installed: Installation) -> None:
    with stage(installed, "by-hand") as on:
        on.ask("asked", on.executor(HOT))
        assert on.outcome("asked")[0] == "Succeeded"
        status = on.move("asked")["status"]
        assert status["replacement"]["node"] == on.mine.node(COLD)
        assert required_labels(on.executor(COLD)) == {ZONE_LABEL: ["a"]}
        assert "nominatedNodeName" not in on.executor(COLD)["status"]
        assert status["measured"]["gain"] > 0


def test_the_executor_of_a_cordoned_node_moves(installed: Installation) -> None:
    with stage(installed, "cordoned") as on:
        _drains(on, {"unschedulable": True}, taint="node.kubernetes.io/unschedulable")


@pytest.mark.soak
def test_the_executor_of_a_node_with_a_taint_of_the_policy_moves_without_metrics(installed: Installation) -> None:
    own: JSON = {"key": "example.com/retired", "effect": "NoSchedule"}
    drain = {"taints": [{"key": own["key"], "notice": "1m"}]}
    with stage(installed, "retired", moves={**MOVES, "drain": drain}) as on:
        on.figures.noise = {}
        taints = on.mine.read(NODE, on.mine.node(HOT))["spec"]["taints"]
        _drains(on, {"taints": [*taints, own]}, taint=own["key"])


def _drains(on: Stage, change: JSON, *, taint: str) -> None:
    """The hot node is changed so that it is about to go; no strategy would move anything."""
    on.operator.reconcile()
    assert not _moves(on)
    on.mine.admin.patch(NODE, on.mine.node(HOT), {"spec": change})
    move = on.until(lambda: _first(on), "the node is to be emptied")
    assert move["spec"]["reason"]["strategy"] == "Drain"
    assert move["spec"]["reason"]["taint"] == taint
    assert on.outcome(move["metadata"]["name"]) == ("Succeeded", "Drained")
    assert on.mine.node(HOT) not in {pod["spec"]["nodeName"] for pod in on.driver.pods()}
    assert len(_moves(on)) == 1


@pytest.mark.soak
def test_a_host_name_is_required_where_the_policy_asks_for_it(installed: Installation) -> None:
    with stage(installed, "by-host-name", moves={**MOVES, "pin": "Node"}) as on:
        on.ask("asked", on.executor(HOT))
        assert on.outcome("asked")[0] == "Succeeded"
        assert required_labels(on.executor(COLD)) == {"kubernetes.io/hostname": [on.mine.node(COLD)]}


@pytest.mark.soak
def test_the_nomination_of_a_replacement_that_finds_no_node_is_cleared_after_five_seconds(
    installed: Installation,
) -> None:
    with stage(installed, "taken") as on:
        take_places(on.mine, on.driver)
        on.ask("asked", on.executor(HOT))
        refused = _rounds_until(on, _unschedulable, "kube-scheduler finds no node for the replacement")
        assert refused["status"]["nominatedNodeName"] == on.mine.node(COLD), "kube-scheduler leaves it"
        cleared = _rounds_until(on, lambda pod: not pod["status"].get("nominatedNodeName"), "the nomination is cleared")
        assert cleared["metadata"]["uid"] == refused["metadata"]["uid"]
        assert _unschedulable(cleared), "now an autoscaler sees it"


def _rounds_until(on: Stage, holds: Callable[[JSON], bool], what: str) -> JSON:
    """The replacement, once this holds for it; it is not awaited that it runs."""

    def look() -> JSON | None:
        on.operator.reconcile()
        on.driver.step()
        on.clock.ahead_seconds += 1.0
        return next((pod for pod in on.driver.pods() if not pod["spec"].get("nodeName") and holds(pod)), None)

    return wait_until(look, what=what, timeout_seconds=PATIENCE_SECONDS)


def _unschedulable(pod: JSON) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


@pytest.mark.soak
def test_who_failed_counts_although_its_pod_is_deleted_before_anybody_lists_it(installed: Installation) -> None:
    failed: list[Failure] = []
    with watching(installed.testbed, failed.append), stage(installed, "failed", reported=lambda: tuple(failed)) as on:
        _fail(on, 3)
        wait_until(lambda: _failures_of(on, failed), what="the watch is at work")
        on.mine.delete(POD, "spark-failed-exec-3")
        _fail(on, 4)
        on.mine.delete(POD, "spark-failed-exec-4")
        wait_until(lambda: len(_failures_of(on, failed)) == 2, what="the watch has seen both fail")
        assert len(on.driver.pods()) == 2
        on.ask("asked", on.executor(HOT))
        assert on.outcome("asked") == ("Refused", "FailureBudget")
        on.succeeded_by(hand(installed.testbed, clock=on.clock, metrics=on.figures))
        on.ask("asked-again", on.executor(HOT))
        assert on.outcome("asked-again") == ("Refused", "FailureBudget"), "the next leader has forgotten them"


def _failures_of(on: Stage, failed: Sequence[Failure]) -> set[int]:
    """Executors of this stage: the watch sees those of others, too."""
    return {each.executor for each in failed if each.application[0] == on.mine.name}


def _fail(on: Stage, number: int) -> None:
    """One executor more, which fails."""
    on.driver.start(gates=(), nodeName=on.mine.node(WARM))
    on.driver.await_running()
    failed = {"status": {"phase": "Failed"}}
    on.mine.admin.patch(POD, f"spark-failed-exec-{number}", failed, namespace=on.mine.name, subresource="status")


@pytest.mark.soak
def test_an_executor_is_placed_and_stays_where_its_volume_is(installed: Installation) -> None:
    clock = Clock()
    with pool(installed.testbed, "volumes", zones(per_zone=1)) as mine, _volume(mine, "data", zone="b"):
        figures = FakeFigures({mine.node("a1"): 0.1, mine.node("b1"): 1.5})
        mine.topology("clicks", {"name": "ingest", "workload": "Streaming", "executors": 2})
        anywhere = {**ENFORCE, "maxExecutorsPerNodePercent": 100}
        mine.policy(interval="1s", metrics={"window": "5s"}, placement=anywhere, moves=MOVES)
        driver = Driver(mine, "spark-volumes", 2, CLICKS)
        driver.start(gates=(), nodeName=mine.node("a1"))
        driver.await_running()
        driver.start(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
        clock.ahead_seconds += 5.0
        operator = hand(installed.testbed, clock=clock, metrics=figures)
        on = Stage(mine, operator, clock, driver, figures)
        try:
            operator.reconcile()
            driver.await_running()
            assert required_labels(mine.pod("spark-volumes-exec-2")) == {ZONE_LABEL: ["b"]}
            driver.grow_old()
            on.ask("asked", on.executor("b1"), targetNodeName=mine.node("a1"))
            assert on.outcome("asked") == ("Refused", "VolumePinned")
        finally:
            operator.close()
            installed.switch(gating=False)


@contextmanager
def _volume(mine: Pool, name: str, *, zone: str) -> Iterator[None]:
    """A volume that only nodes of the zone reach, and the claim `name` that is bound to it."""
    volume, size = f"{mine.name}-{name}", {"storage": "1Gi"}
    here = {"matchExpressions": [{"key": ZONE_LABEL, "operator": "In", "values": [zone]}]}
    common = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    claimed = {"namespace": mine.name, "name": name}
    reach = {"required": {"nodeSelectorTerms": [here]}}
    path = {"hostPath": {"path": "/nowhere"}, "capacity": size}
    mine.apply(VOLUME, volume, {**common, **path, "claimRef": claimed, "nodeAffinity": reach})
    try:
        mine.apply(CLAIM, name, {**common, "volumeName": volume, "resources": {"requests": size}})
        wait_until(lambda: mine.read(CLAIM, name)["status"].get("phase") == "Bound", what="the claim is bound")
        yield
    finally:
        mine.delete(VOLUME, volume)


@pytest.mark.soak
def test_moves_that_a_user_only_asks_for_hold_up_no_other(installed: Installation) -> None:
    """Anyone who may evict in one namespace may ask, for executors and nodes of any name, and never approve."""
    with stage(installed, "only-asked", shedding=EAGER, moves={**MOVES, "maxConcurrent": 1}) as on:
        on.ask("asked", on.executor(WARM), approved=False)
        name = on.until(lambda: _first(on, besides="asked"), "the operator makes its own")["metadata"]["name"]
        assert on.outcome(name)[0] == "Succeeded"
        assert on.move("asked")["status"]["phase"] == "Proposed"


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["Recommend", "Disabled"])
def test_nobody_leaves_where_placement_is_not_enforced(installed: Installation, mode: str) -> None:
    with stage(installed, f"unheld-{mode.lower()}", placement={**ENFORCE, "mode": mode}, shedding=EAGER) as on:
        before = {pod["metadata"]["uid"] for pod in on.driver.pods()}
        on.ask("asked", on.executor(HOT))
        assert on.outcome("asked") == ("Refused", "NotEnforced")
        assert {pod["metadata"]["uid"] for pod in on.driver.pods()} == before
        assert [move["metadata"]["name"] for move in _moves(on)] == ["asked"], "one was made that can't be carried out"


@pytest.mark.soak
def test_a_move_comes_to_its_end_although_its_node_has_left_the_pool(installed: Installation) -> None:
    with stage(installed, "scaled-in") as on, watched(installed.testbed, on.mine.name):
        on.ask("asked", on.executor(HOT), policy=on.mine.name)
        on.until(lambda: traveling(on, "asked"), "it is under way")
        on.mine.delete(NODE, on.mine.node(HOT))
        assert on.outcome("asked")[0] == "Succeeded"
        assert on.move("asked")["status"]["replacement"]["node"] == on.mine.node(COLD)


@pytest.mark.soak
def test_a_move_belongs_to_its_topology_and_goes_after_its_time(installed: Installation) -> None:
    with stage(installed, "owned", shedding=EAGER) as on:
        name = on.until(lambda: _first(on), "a move is made")["metadata"]["name"]
        (owner,) = on.move(name)["metadata"]["ownerReferences"]
        topology = on.mine.read(SPARK_TOPOLOGY, "clicks")
        assert (owner["kind"], owner["name"], owner["uid"]) == ("SparkTopology", "clicks", topology["metadata"]["uid"])
        assert on.outcome(name)[0] == "Succeeded"
        counted = _figures(on)
        assert counted["ballast_moves_total", ("phase", on.move(name)["status"]["phase"])] == 1.0
        for phase in ("Approved", "Leaving", "Arriving", "Settling"):
            assert counted["ballast_move_transitions_total", ("phase", phase)] == 1.0, phase
        assert counted["ballast_decisions_total", ("kind", "move")] == 1.0
        assert counted["ballast_move_predicted_gain_points", ()] > 0
        assert counted["ballast_move_measured_gain_points", ()] > 0
        on.clock.ahead_seconds += 61.0
        gone = {"gone": True}
        on.until(lambda: gone if name not in [m["metadata"]["name"] for m in _moves(on)] else None, "it is deleted")


@dataclass(frozen=True, slots=True)
class Git:
    """A folder of manifests that a GitOps controller reconciles: Flux's kustomize-controller applies them on the
    server's side, every interval, and calls it drift where a dry run of that would change something.
    """

    folder: Path
    testbed: Testbed

    def commit(self, name: str, manifest: str) -> None:
        (self.folder / name).write_text(manifest)
        files = sorted(path.name for path in self.folder.iterdir() if path.name != "kustomization.yaml")
        (self.folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": files}))

    def reconcile(self) -> None:
        self._kubectl("apply", "--force-conflicts")

    def drift(self) -> str:
        """What the next reconcile would change. kubectl ends with 1 where there is something."""
        return self._kubectl("diff", "--force-conflicts", check=False)

    def _kubectl(self, verb: str, *options: str, check: bool = True) -> str:
        manager = "--field-manager=kustomize-controller"
        kubectl = self.testbed.kubectl_as(self.testbed.kubeconfig)
        done = kubectl.run(verb, "--server-side", manager, *options, f"--kustomize={self.folder}", check=check)
        return done.stdout + done.stderr if verb == "diff" else ""


def desired(found: JSON) -> str:
    """The object as its user wrote it, defaults included."""
    named = {key: value for key, value in found["metadata"].items() if key in ("name", "namespace")}
    return yaml.safe_dump(
        {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": named, "spec": found["spec"]}
    )


@pytest.mark.soak
def test_git_and_the_operator_fight_over_no_field_and_a_commit_approves_a_move(
    installed: Installation, tmp_path: Path
) -> None:
    testbed, git = installed.testbed, Git(tmp_path, installed.testbed)
    chart = testbed.helm("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--no-hooks")
    with stage(installed, "gitops", shedding=EAGER, moves={**MOVES, "mode": "Approve"}) as on:
        git.commit("chart.yaml", chart)
        for kind, name in ((BALANCING_POLICY, on.mine.name), (SPARK_TOPOLOGY, "clicks")):
            git.commit(f"{kind.plural}.yaml", desired(on.mine.read(kind, name)))
        git.reconcile()
        found = on.until(lambda: _first(on), "a move is proposed")
        assert not found["spec"].get("approved")
        found["spec"] |= {"approved": True}
        git.commit("approval.yaml", desired(found))
        git.reconcile()
        assert on.outcome(found["metadata"]["name"])[0] == "Succeeded"
        assert git.drift() == ""
        for kind, name in ((BALANCING_POLICY, on.mine.name), (SPARK_TOPOLOGY, "clicks")):
            now = on.mine.read(kind, name)
            assert now["status"]["observedGeneration"] == now["metadata"]["generation"]
            assert {c["type"]: c["status"] for c in now["status"]["conditions"]}["Ready"] == "True"
            assert "finalizers" not in now["metadata"], "pruning would wait for the operator"


@pytest.mark.soak
def test_a_field_that_the_operator_would_fight_over_is_called_drift(installed: Installation, tmp_path: Path) -> None:
    """The check above can fail: here the policy's spec is written as if the operator did so."""
    git = Git(tmp_path, installed.testbed)
    with stage(installed, "fought-over") as on:
        git.commit("policy.yaml", desired(on.mine.read(BALANCING_POLICY, on.mine.name)))
        git.reconcile()
        on.operator.reconcile()
        assert git.drift() == ""
        on.mine.admin.patch(BALANCING_POLICY, on.mine.name, {"spec": {"moves": {"cooldown": "9s"}}})
        assert "cooldown: 9s" in git.drift()
        git.reconcile()
        assert git.drift() == ""


@pytest.mark.soak
def test_an_upgrade_and_a_rollback_with_a_set_at_its_gates_and_a_move_under_way_leave_nothing_gated(
    installed: Installation,
) -> None:
    with stage(installed, "rolled-back") as on, watched(installed.testbed, on.mine.name) as witness:
        on.ask("asked", on.executor(HOT))
        on.ask("proposed", on.executor(WARM), approved=False)
        on.until(lambda: traveling(on, "asked"), "it leaves")
        before = on.mine.executors(2, application="before")
        with witness.outage():
            installed.upgrade("--set=logging.level=debug")
        after = on.mine.executors(2, application="after")
        on.operator.reconcile()
        with witness.outage():
            installed.rollback()
        assert on.outcome("asked")[0] == "Succeeded", on.move("asked")["status"]
        on.until(lambda: {"free": True} if not any(map(on.mine.gated, before + after)) else None, "all are released")
        assert len(on.driver.pods()) == 2
        assert not any(gates_of(pod) for pod in on.driver.pods())
        assert not any("finalizers" in each["metadata"] for each in _moves(on))


def _moves(on: Stage) -> list[JSON]:
    return read_list(on.mine.admin, Query(EXECUTOR_MOVE, namespace=on.mine.name), lambda move: move).items


def _first(on: Stage, *, besides: str = "") -> JSON | None:
    return next((move for move in _moves(on) if move["metadata"]["name"] != besides), None)


def _figures(on: Stage) -> dict[tuple[str, tuple[str, ...]], float]:
    """The operator's own metrics of the policy: by name and the one label next to it."""
    found: dict[tuple[str, tuple[str, ...]], float] = {}
    for family in on.operator.telemetry.registry.collect():
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "policy"}
            if sample.labels.get("policy") == on.mine.name and len(labels) <= 1:
                found[sample.name, next(iter(labels.items()), ())] = sample.value
    return found
