"""The eight promises of SECURITY.md, each held by one test of the whole operator on the real API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from ballast.api import BalancingPolicy
from ballast.controller.cluster_objects import Read
from ballast.controller.cluster_view import ClusterView
from ballast.controller.context import Context
from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, EXECUTOR_MOVE, SPARK_TOPOLOGY
from tests.cluster.chart.caller import Caller, user
from tests.cluster.chart.installation import Installation, grant
from tests.cluster.chart.objects import move
from tests.cluster.controller.hand import Clock, hand
from tests.cluster.controller.ordered import COLD, HOT, WARM, Stage, stage
from tests.cluster.controller.pool import POOL_LABEL, Pool, gates_of, pool, required_labels, zones
from tests.cluster.controller.process import leader_of, release, replica, switch
from tests.cluster.forged_metrics import OWN, SEEN, Scene, claims, forging, values
from tests.faults.invariants import watched
from tests.faults.webhook import webhook
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

JSON = dict[str, Any]
JUNK = 300
"""Moves that one namespace asks for at once."""


def test_1_webhooks_of_one_namespace_keep_no_executor_gated(installed: Installation, tmp_path: Path) -> None:
    """One webhook answers nothing to any update of a pod. Executors of its namespace are replaced in the end."""
    with (
        pool(installed.testbed, "hanging", zones()) as mine,
        pool(installed.testbed, "hanging-others", zones()) as others,
        leader_of(installed, tmp_path, refused_in=mine.name),
    ):
        for each in (mine, others):
            each.policy()
            each.await_gating()
        with watched(installed.testbed, others.name), webhook(mine, tmp_path, hangs=True) as hook:
            stuck = mine.executors(4, gates=())
            wait_until(lambda: hook.asked > 0, what="the webhook is asked")
            placed = others.executors(2, gates=())
            others.await_released(placed)
            assert all(required_labels(others.pod(name)) for name in placed)
            wait_until(lambda: _gone(mine, stuck), what="its own executors are gated no more", timeout_seconds=120.0)


def _gone(mine: Pool, pods: list[str]) -> bool:
    return not any(names.GATE in gates_of(pod) for pod in mine.pods() if pod["metadata"]["name"] in pods)


def test_2_objects_beyond_a_namespace_s_limits_are_left_alone_and_named(
    installed: Installation, tmp_path: Path
) -> None:
    """The operator's memory does not grow with what it leaves alone."""
    with (
        pool(installed.testbed, "limited", zones()) as mine,
        pool(installed.testbed, "limited-others", zones()) as others,
        leader_of(installed, tmp_path) as leader,
    ):
        mine.policy()
        others.policy()
        others.await_gating()
        for number in range(6):
            mine.topology(f"large-{number}", *(_long(index) for index in range(100)))
        told = wait_until(lambda: mine.events("QuotaExceeded"), what="an Event names one that is left alone")
        assert told[0]["regarding"]["namespace"] == mine.name
        others.await_released(others.executors(2, gates=()))
        before = leader.metric("process_resident_memory_bytes")
        for number in range(6, 9):
            mine.topology(f"large-{number}", *(_long(index) for index in range(100)))
        others.await_released(others.executors(2, first=3, gates=()))
        after = leader.metric("process_resident_memory_bytes")
        assert before is not None
        assert after is not None
        assert after - before < 64 << 20
        for number in range(9):
            mine.delete(SPARK_TOPOLOGY, f"large-{number}")


def _long(index: int) -> JSON:
    """A component of about 10 KiB."""
    name = f"{'c' * 59}-{index:03}"
    chosen = [{"key": f"example.org/{key}", "operator": "In", "values": ["v" * 63] * 20} for key in range(8)]
    return {"name": name, "selector": {"matchExpressions": chosen}}


def test_3_one_namespace_uses_up_neither_moves_nor_room_of_another(installed: Installation) -> None:
    """It asks for 300 moves of pods that don't exist, and for room for pods that no scheduler binds."""
    with stage(installed, "share") as on, pool(installed.testbed, "share-others", zones()) as others:
        others.policy()
        with watched(installed.testbed, on.mine.name, others.name) as witness:
            larger: JSON = {"cpu": "3500m", "gates": (), "nodeSelector": {POOL_LABEL: others.name}}
            on.mine.executors(2 * len(zones()), role="other", application="larger", schedulerName="no", **larger)
            path = EXECUTOR_MOVE.path(namespace=others.name)
            installed.testbed.api.post_all(path, [_junk(number) for number in range(JUNK)])
            placed = others.executors(2)
            on.ask("asked", on.executor(HOT))
            for _ in range(3):
                on.clock.ahead_seconds += 1.0
                on.operator.reconcile()
            assert all(required_labels(others.pod(name)) for name in placed)
            assert on.outcome("asked")[0] == "Succeeded"
            assert len(witness.evicted()) == 1


def _junk(number: int) -> JSON:
    """Names what is not there, in words that would do harm if they were read as PromQL, HTML or a terminal's."""
    words = ("{__name__=~'.+'}", "<script>alert(1)</script>", "\x1b[2J", "%s%n{0}")[number % 4]
    junk = move(f"junk-{number}", pod=f"no-such-{number}", approved=True)
    junk["metadata"]["annotations"] = {"words": words, "much": "x" * (1 << 10)}
    return junk


@pytest.fixture
def forged(tmp_path: Path) -> Iterator[Scene]:
    with forging(tmp_path) as found:
        yield found


def test_4_series_of_a_pod_speak_of_no_other(forged: Scene) -> None:
    forged.awaited("the victim's own values", lambda reading: values(reading) == OWN)
    for value in (-9e15, 9e15):
        forged.attacker.values = {f"{name}{claims()}": value for name in SEEN}
        attacked = forged.awaited("the forged series to be seen", lambda reading: bool(reading.dropped))
        assert values(attacked) == OWN
        assert attacked.health.available
        assert "pod tenant-a/evil, which is not its driver" in attacked.health.message
        forged.attacker.values = {}
        forged.awaited("the forged series to be gone", lambda reading: not reading.dropped)


@contextmanager
def evicting(installed: Installation, mine: Pool, pod: str) -> Iterator[Caller]:
    """A user who may evict this one pod, and ask for moves."""
    grant(installed.testbed, mine.name, "tenant", verbs=["create"], group="ballast.dev", resources=["executormoves"])
    evictions = ["pods/eviction"]
    grant(installed.testbed, mine.name, "tenant", verbs=["create"], group="", resources=evictions, names=[pod])
    with user(installed.testbed, "tenant") as caller:
        yield caller


def of_two_pods(on: Stage) -> JSON:
    """Under the name of the pod on the hot node, with the uid of the other one."""
    body = move("of-two-pods", pod=on.executor(HOT)["metadata"]["name"], approved=True)
    body["spec"]["executor"]["uid"] = on.executor(WARM)["metadata"]["uid"]
    body["spec"] |= {"sourceNodeName": on.mine.node(WARM), "targetNodeName": on.mine.node(COLD)}
    return body


def test_5_only_executors_that_opted_in_are_evicted(installed: Installation) -> None:
    """Whatever an approved move says: the fences of tests/cluster/test_fence_*.py hold below that."""
    with stage(installed, "stays") as on, pool(installed.testbed, "stays-not-ours") as others:
        here = on.mine.node(HOT)
        driver = on.mine.executor(9, role="driver", gates=(), nodeName=here)
        stranger = on.mine.executor(8, role="other", gates=(), nodeName=here)
        tolerated = {POOL_LABEL: on.mine.name}
        foreign = others.executor(7, gates=(), nodeName=here, nodeSelector=tolerated)
        on.ask("of-a-driver", driver)
        on.ask("of-a-stranger", stranger)
        on.ask("from-elsewhere", on.executor(HOT), sourceNodeName=on.mine.node("b2"))
        on.ask("from-nowhere", on.executor(HOT), sourceNodeName="gone", targetNodeName="nowhere")
        on.ask("of-another-topology", on.executor(HOT), topologyName="other")
        on.ask("from-the-cold-side", on.executor(WARM), targetNodeName=here)
        executor = {"pod": foreign["metadata"]["name"], "uid": foreign["metadata"]["uid"]}
        way = {"sourceNodeName": here, "targetNodeName": on.mine.node(COLD)}
        others.apply(EXECUTOR_MOVE, "not-steered", {"topologyName": "x", "executor": executor, "approved": True, **way})
        with evicting(installed, on.mine, on.executor(HOT)["metadata"]["name"]) as tenant:
            mixed = tenant.create(EXECUTOR_MOVE, of_two_pods(on), namespace=on.mine.name)
            assert mixed.ok, mixed
        before = {pod["metadata"]["uid"] for each in (on.mine, others) for pod in each.pods()}
        assert {name: on.outcome(name) for name in ("of-a-driver", "of-a-stranger", "from-elsewhere")} == {
            "of-a-driver": ("Refused", "Driver"),
            "of-a-stranger": ("Refused", "NotOptedIn"),
            "from-elsewhere": ("Refused", "Misdescribed"),
        }
        assert on.outcome("of-two-pods") == ("Refused", "Misdescribed")
        assert on.outcome("of-another-topology") == ("Refused", "Misdescribed")
        assert on.outcome("from-the-cold-side")[0] == "Refused"
        assert others.read(EXECUTOR_MOVE, "not-steered")["status"]["reason"] == "NotOptedIn"
        on.clock.ahead_seconds += 60.0
        assert on.outcome("from-nowhere") == ("Refused", "NoPolicy")
        assert {pod["metadata"]["uid"] for each in (on.mine, others) for pod in each.pods()} == before


def test_6_a_move_tells_nothing_of_another_namespace(installed: Installation) -> None:
    """Moves by the uids of another namespace's pods end as one by a uid that does not exist."""
    with stage(installed, "guesses") as on, pool(installed.testbed, "guesses-of") as others:
        there: JSON = {"gates": (), "nodeName": on.mine.node(HOT), "nodeSelector": {POOL_LABEL: on.mine.name}}
        pods = [others.executor(7, **there), others.executor(8, role="other", **there)]
        pods.append(others.executor(9, role="driver", **there))
        uids = [*(str(pod["metadata"]["uid"]) for pod in pods), str(uuid4())]
        with evicting(installed, on.mine, "guessed") as tenant:
            for number, uid in enumerate(uids):
                body = move(f"guess-{number}", pod="guessed", approved=True)
                body["spec"]["executor"]["uid"] = uid
                body["spec"] |= {"sourceNodeName": on.mine.node(HOT), "targetNodeName": on.mine.node(COLD)}
                created = tenant.create(EXECUTOR_MOVE, body, namespace=on.mine.name)
                assert created.ok, created
        told = set()
        for number in range(len(uids)):
            outcome = on.outcome(f"guess-{number}")
            told.add((*outcome, on.mine.read(EXECUTOR_MOVE, f"guess-{number}")["status"]["message"]))
        assert told == {("Expired", "ExecutorGone", "guessed went by itself; nothing was evicted")}
        assert {pod["metadata"]["uid"] for pod in others.pods()} == set(uids[:-1])


def test_7_an_object_with_which_a_pass_fails_keeps_no_other_namespace_gated(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a mistake of Ballast's. Both namespaces are one policy's."""
    context = ClusterView.context

    def failing(view: ClusterView, read: Read[BalancingPolicy], *more: Any) -> Context:
        if any(each.resource.metadata.name == "broken" for each in view.objects.topologies):
            raise ZeroDivisionError("a mistake of ours")
        return context(view, read, *more)

    monkeypatch.setattr(ClusterView, "context", failing)
    with pool(installed.testbed, "failing", zones()) as mine, pool(installed.testbed, "failing-not") as others:
        mine.policy(namespaceSelector={"matchLabels": {names.GATE_CHOICE: "enabled"}})
        mine.topology("broken", {"name": "ingest"})
        spoiled = mine.executors(1)
        placed = others.executors(2, nodeSelector={POOL_LABEL: mine.name})
        operator = hand(installed.testbed, clock=Clock(ahead_seconds=5.0))
        try:
            for _ in range(2):
                operator.reconcile()
        finally:
            operator.close()
            installed.switch(gating=False)
        assert all(required_labels(others.pod(name)) for name in placed)
        assert not any(mine.gated(name) for name in spoiled)
        followed = mine.condition(BALANCING_POLICY, "NamespacesFollowed")
        assert followed is not None
        assert followed["status"] == "False"
        assert mine.name in followed["message"]


def test_8_executors_run_when_all_of_ballast_is_dead(installed: Installation, tmp_path: Path) -> None:
    """What is left is the CronJob: here it runs as soon as the lease is stale."""
    plane = installed.testbed
    with pool(plane, "dead", zones()) as mine, replica(plane, "last", tmp_path, lease_seconds=3) as last:
        mine.policy()
        mine.await_gating()
        held = mine.executors(2, gates=())
        last.kill()
        assert all(mine.gated(name) for name in held)
        said = wait_until(lambda: _released(installed), what="the lease goes stale")
        assert "the gate switch is off" in said
        assert not switch(installed)["gating"]
        assert mine.nodes_of(held).total() == 2
        wait_until(lambda: names.GATE not in gates_of(mine.executor(99, gates=(), dry=True)), what="none is gated")


def _released(installed: Installation) -> str | None:
    said = release(installed.testbed, "--stale")
    return said if "released 2 of 2" in said else None
