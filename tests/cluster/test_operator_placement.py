"""The running operator places executors, on the real API server and with exactly the chart's rights."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from ballast.kube import names
from ballast.kube.kinds import BALANCING_POLICY, CLAIM, POD, STORAGE_CLASS
from tests.cluster.chart.installation import NAMESPACE, RELEASE, Installation
from tests.cluster.controller.pool import (
    OURS,
    RACK_LABEL,
    ZONE_LABEL,
    Pool,
    gates_of,
    pool,
    preferred_labels,
    required,
    required_labels,
    zones,
)
from tests.cluster.controller.process import Replica, leader_of
from tests.testbed.waiting import stays, wait_until

pytestmark = pytest.mark.cluster

TWO_A_NODE = {"mode": "Enforce", "maxExecutorsPerNodePercent": 50}
PATIENT = {"debounce": "10s", "gateTimeout": "10s"}
"""What waits for neither of them is released well before both, on a busy machine too."""
UNTIL_EITHER_SECONDS = 8.0
FOREIGN = {"name": "example.com/quota"}
KUEUE = [{"name": "kueue.x-k8s.io/admission"}, {"name": "kueue.x-k8s.io/topology"}]
CLICKS = {names.TOPOLOGY: "clicks"}


@pytest.fixture(scope="module")
def leader(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    with leader_of(installed, tmp_path_factory.mktemp("operator")) as found:
        yield found


@pytest.fixture(autouse=True)
def _leading(leader: Replica) -> None:
    assert leader.process.poll() is None, leader.log.read_text()[-4000:]


@pytest.mark.soak
def test_a_complete_set_is_placed_at_once(installed: Installation) -> None:
    with pool(installed.testbed, "complete", zones()) as mine:
        mine.topology("clicks", {"name": "ingest", "executors": 4})
        mine.policy(placement={**TWO_A_NODE, **PATIENT})
        first = mine.executors(3, labels=CLICKS)
        stays(lambda: all(mine.gated(name) for name in first), what="a set that is to grow is held", seconds=1)
        placed = [*first, *mine.executors(1, first=4, labels=CLICKS)]
        assert mine.await_released(placed) < UNTIL_EITHER_SECONDS, "that was the debounce, not the count"
        nodes = mine.nodes_of(placed)
        assert {node[0] for node in nodes} in ({"a"}, {"b"}), nodes
        assert set(nodes.values()) == {2}
        assert required_labels(mine.pod(placed[0])) == {ZONE_LABEL: [next(iter(nodes))[0]]}


def test_next_to_pods_that_wait_for_nodes_executors_are_nominated_before_any_of_them_is_released(
    installed: Installation,
) -> None:
    with pool(installed.testbed, "contended", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s"})
        mine.executor(1, application="waiting", role="driver", gates=(), cpu="100")
        placed = mine.executors(2)
        mine.await_released(placed)
        asked = [each for each in installed.testbed.requests_of(NAMESPACE, RELEASE) if each.name in placed]
        patches = [each for each in asked if each.namespace == mine.name and each.verb == "patch"]
        assert [(each.resource, each.status) for each in patches] == [("pods/status", 200)] * 2 + [("pods", 200)] * 2
        chosen = {each.name: each.body[-1]["value"] for each in patches[:2]}
        assert mine.nodes_of(placed) == Counter(node.removeprefix(f"{mine.name}-") for node in chosen.values())


def test_an_executor_whose_volume_is_still_to_be_made_goes_where_its_storage_class_makes_volumes(
    installed: Installation,
) -> None:
    """The roomiest zone is `a`. The class makes volumes in `b` alone, where kube-scheduler would have to bind it."""
    api = installed.testbed.api
    with pool(installed.testbed, "lateclaim", [*zones(1), *zones()[2:3]]) as mine:
        mine.policy(placement=TWO_A_NODE)
        by_class = {
            "metadata": {"name": mine.name},
            "provisioner": "ebs.csi.aws.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["b"]}]}],
        }
        api.post(STORAGE_CLASS.path(), by_class)
        try:
            asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            claim = {"metadata": {"name": "scratch"}, "spec": {**asked, "storageClassName": mine.name}}
            api.post(CLAIM.path(namespace=mine.name), claim)
            volumes = [{"name": "scratch", "persistentVolumeClaim": {"claimName": "scratch"}}]
            placed = [*mine.executors(1, volumes=volumes), *mine.executors(1, application="without")]
            mine.await_released(placed)
            late, free = (mine.pod(name) for name in placed)
            assert preferred_labels(late)[ZONE_LABEL] == ["b"]
            assert required_labels(late) == {}, "where the volume is made is kube-scheduler's to say"
            assert required_labels(free) == {ZONE_LABEL: ["a"]}
        finally:
            mine.delete(STORAGE_CLASS, mine.name)


@pytest.mark.soak
def test_a_policy_may_name_another_strategy_and_what_it_remembers_is_kept(installed: Installation) -> None:
    with pool(installed.testbed, "turns", zones()) as mine:
        mine.topology("clicks", {"name": "ingest", "executors": 4})
        mine.policy(placement={**TWO_A_NODE, "strategy": "RoundRobin", "debounce": "6s", "gateTimeout": "8s"})
        placed = mine.executors(4, labels=CLICKS)
        mine.await_released(placed)
        assert mine.nodes_of(placed) == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}

        def state() -> bool:
            return "Placement.RoundRobin" in mine.read(BALANCING_POLICY).get("status", {}).get("state", {})

        wait_until(state, what="the turn is in the policy's status", timeout_seconds=150)
        assert mine.condition(BALANCING_POLICY, "Stalled") is None


@pytest.mark.soak
def test_a_set_of_unknown_size_is_placed_after_the_debounce(installed: Installation) -> None:
    with pool(installed.testbed, "debounce", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "2s", "gateTimeout": "10s"})
        placed = mine.executors(2)
        assert 0.5 < mine.await_released(placed) < UNTIL_EITHER_SECONDS
        assert all(ZONE_LABEL in required_labels(mine.pod(name)) for name in placed)


@pytest.mark.soak
def test_a_set_that_stays_incomplete_is_placed_at_once_where_all_of_it_has_room(installed: Installation) -> None:
    with pool(installed.testbed, "timeout", zones()) as mine:
        mine.topology("clicks", {"name": "ingest", "executors": 4})
        mine.policy(placement={**TWO_A_NODE, "gateTimeout": "10s"})
        placed = mine.executors(1, labels=CLICKS)
        assert mine.await_released(placed) < UNTIL_EITHER_SECONDS
        placed += mine.executors(2, first=2, labels=CLICKS)
        assert mine.await_released(placed) < UNTIL_EITHER_SECONDS
        assert len({node[0] for node in mine.nodes_of(placed)}) == 1


@pytest.mark.soak
def test_an_executor_that_comes_later_does_not_wait_for_a_set(installed: Installation) -> None:
    with pool(installed.testbed, "later", zones()) as mine:
        anywhere = {"maxExecutorsPerNodePercent": 100}
        mine.policy(placement={**TWO_A_NODE, **anywhere, **PATIENT})
        set_ = mine.executors(2)
        zone = next(iter(mine.nodes_of(set_, seconds=30)))[0]
        for number in (3, 4):
            late = mine.executors(1, first=number)
            assert mine.await_released(late) < UNTIL_EITHER_SECONDS, "held as long as a set"
            assert {node[0] for node in mine.nodes_of(late)} == {zone}


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["Disabled", "Recommend"])
def test_where_placement_is_not_enforced_nobody_is_held(installed: Installation, mode: str) -> None:
    with pool(installed.testbed, f"mode-{mode.lower()}", zones()) as mine:
        mine.policy(placement={"mode": mode, **PATIENT})
        free = mine.executors(2)
        assert mine.await_released(free) < UNTIL_EITHER_SECONDS
        assert "affinity" not in mine.pod(free[0])["spec"]
        wait_until(lambda: mine.events("NotEnforced"), what="an event says why")


def test_new_executors_are_gated_while_the_operator_leads(installed: Installation) -> None:
    with pool(installed.testbed, "gating", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s", "gateTimeout": "9s"})
        wait_until(lambda: gates_of(mine.executor(1, gates=(), dry=True)) == [names.GATE], what="the gate is set")
        mine.executors(2, gates=())
        placed = ["spark-1-exec-1", "spark-1-exec-2"]
        assert mine.nodes_of(placed).total() == 2
        assert all(ZONE_LABEL in required_labels(mine.pod(name)) for name in placed)


@pytest.mark.soak
def test_the_clock_starts_when_ours_is_the_last_gate(installed: Installation) -> None:
    with pool(installed.testbed, "foreign", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s", "gateTimeout": "2s"})
        (name,) = mine.executors(1, gates=[FOREIGN, OURS])
        both = [FOREIGN["name"], names.GATE]
        stays(lambda: gates_of(mine.pod(name)) == both, what="ours waits beyond its timeout", seconds=3.5)
        mine.admin.patch(POD, name, [{"op": "remove", "path": "/spec/schedulingGates/0"}], namespace=mine.name)
        mine.await_released([name])
        assert ZONE_LABEL in required_labels(mine.pod(name))


def test_ballast_places_a_set_that_kueue_has_admitted_within_the_nodes_that_kueue_wrote(
    installed: Installation,
) -> None:
    with pool(installed.testbed, "kueue", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s", "gateTimeout": "2s"})
        names_of = mine.executors(2, gates=[*KUEUE, OURS])
        all_gates = [*(each["name"] for each in KUEUE), names.GATE]
        wait = "ours waits for Kueue's"
        stays(lambda: all(gates_of(mine.pod(name)) == all_gates for name in names_of), what=wait, seconds=2.5)
        for name in names_of:
            admitted = [
                {"op": "add", "path": f"/spec/nodeSelector/{ZONE_LABEL.replace('/', '~1')}", "value": "b"},
                *[{"op": "remove", "path": "/spec/schedulingGates/0"}] * len(KUEUE),
            ]
            mine.admin.patch(POD, name, admitted, namespace=mine.name)
        mine.await_released(names_of)
        assert all(required_labels(mine.pod(name))[ZONE_LABEL] == ["b"] for name in names_of)
        assert all(node.startswith("b") for node in mine.nodes_of(names_of))


def test_executors_of_a_gang_are_released_as_they_are_and_the_policy_says_so(installed: Installation) -> None:
    with pool(installed.testbed, "gang", zones()) as mine:
        mine.policy()
        of_volcano = mine.executors(1, annotations={"scheduling.k8s.io/group-name": "clicks"})
        of_coscheduling = mine.executors(1, first=2, labels={"scheduling.x-k8s.io/pod-group": "clicks"})
        plain = mine.executors(1, first=3, annotations={"scheduling.k8s.io/group-name": "podgroup-4f5210d9"})
        mine.await_released([*of_volcano, *of_coscheduling, *plain])
        assert all(required_labels(mine.pod(name)) == {} for name in (*of_volcano, *of_coscheduling))
        assert ZONE_LABEL in required_labels(mine.pod(plain[0]))
        told = wait_until(lambda: _not_placed(mine), what="the policy's condition")
        assert told.startswith("2 executors that opted in are not placed: 2 Gang; ")


def test_a_gate_whose_owner_waits_for_all_others_keeps_no_executor_gated_for_good(installed: Installation) -> None:
    """Volcano 1.15 removes its gate only from pods that have no other."""
    volcanos = "scheduling.volcano.sh/queue-allocation-gate"
    with pool(installed.testbed, "volcano", zones()) as mine:
        mine.policy()
        pods = mine.executors(2, gates=[OURS, {"name": volcanos}])
        mine.await_released(pods)
        assert all(gates_of(mine.pod(name)) == [volcanos] for name in pods)
        (zone,) = {required_labels(mine.pod(name))[ZONE_LABEL][0] for name in pods}
        for name in pods:
            gone = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
            mine.admin.patch(POD, name, gone, namespace=mine.name)
        assert all(node.startswith(zone) for node in mine.nodes_of(pods))


def _not_placed(mine: Pool) -> str | None:
    found = mine.condition(BALANCING_POLICY, "ExecutorsPlaced")
    return found["message"] if found is not None and "2 Gang" in found["message"] else None


@pytest.mark.soak
def test_affinity_of_others_is_kept_and_heeded(installed: Installation) -> None:
    with pool(installed.testbed, "affinity", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s", "gateTimeout": "9s"})
        theirs = required({"key": RACK_LABEL, "operator": "In", "values": ["b-2"]})
        placed = mine.executors(1, affinity=theirs)
        assert list(mine.nodes_of(placed)) == ["b2"]
        assert required_labels(mine.pod(placed[0])) == {RACK_LABEL: ["b-2"], ZONE_LABEL: ["b"]}


@pytest.mark.soak
def test_a_pod_that_others_keep_writing_is_released_all_the_same(installed: Installation) -> None:
    with pool(installed.testbed, "conflict", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s", "gateTimeout": "9s"})
        placed = mine.executors(2)
        with _writing(mine, placed[0]):
            mine.await_released(placed)
        assert all(ZONE_LABEL in required_labels(mine.pod(name)) for name in placed)


class _writing:  # noqa: N801 -- reads as a word in `with`
    """Somebody writes an annotation of the pod every 50 ms."""

    def __init__(self, mine: Pool, name: str) -> None:
        self._mine, self._name, self._done = mine, name, threading.Event()
        self._thread = threading.Thread(target=self._write)

    def _write(self) -> None:
        count = 0
        while not self._done.wait(0.05):
            count += 1
            change = {"metadata": {"annotations": {"count": str(count)}}}
            self._mine.admin.patch(POD, self._name, change, namespace=self._mine.name)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


@pytest.mark.soak
def test_what_the_pool_has_no_room_for_goes_unpinned_and_is_seen_by_autoscalers(installed: Installation) -> None:
    with pool(installed.testbed, "full", zones(1, cpu="1")) as mine:
        mine.policy(placement={**TWO_A_NODE, "maxExecutorsPerNodePercent": 100, "debounce": "1s", "gateTimeout": "9s"})
        everybody = mine.executors(3, cpu="1")
        mine.await_released(everybody)
        surplus = [pod for name in everybody if not required_labels(pod := mine.pod(name))]
        assert len(surplus) == 1
        wishes = preferred_labels(surplus[0])
        assert set(wishes) == {ZONE_LABEL, RACK_LABEL}
        assert wishes[ZONE_LABEL] == ["a"]
        wait_until(lambda: mine.events("PoolFull"), what="an event says why")
        placed = [name for name in everybody if name != surplus[0]["metadata"]["name"]]
        assert mine.nodes_of(placed).total() == 2


@pytest.mark.soak
def test_executors_go_where_no_pod_of_another_user_keeps_them_away(installed: Installation) -> None:
    """kube-scheduler heeds anti-affinity both ways: in the zone of their driver, no executor could run."""
    term = {"labelSelector": {"matchLabels": {names.SPARK_ROLE: "executor"}}, "topologyKey": ZONE_LABEL}
    lonely = {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**term, "namespaceSelector": {}}]}
    }
    with pool(installed.testbed, "kept-away", zones()) as mine, pool(installed.testbed, "kept-away-by") as others:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s"})
        mine.executor(0, role="driver", gates=(), nodeName=mine.node("a1"))
        others.executor(0, role="other", gates=(), nodeName=mine.node("a2"), affinity=lonely, cpu="1m")
        placed = mine.executors(2)
        nodes = mine.nodes_of(placed)
        assert {node[0] for node in nodes} == {"b"}, nodes
        assert required_labels(mine.pod(placed[0])) == {ZONE_LABEL: ["b"]}


@pytest.mark.soak
@pytest.mark.parametrize("role", ["driver", "other"])
def test_a_pod_that_shares_the_executors_template_is_not_held(installed: Installation, role: str) -> None:
    with pool(installed.testbed, f"role-{role}", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, **PATIENT})
        free = mine.executors(1, role=role)
        assert mine.await_released(free) < UNTIL_EITHER_SECONDS
        assert "affinity" not in mine.pod(free[0])["spec"]


@pytest.mark.soak
def test_where_no_policy_rules_nobody_is_held(installed: Installation) -> None:
    with pool(installed.testbed, "unruled", zones()) as mine:
        free = mine.executors(2)
        mine.await_released(free)
        wait_until(lambda: mine.events("NotEnforced"), what="an event says why")


@pytest.mark.soak
def test_hold_times_and_decisions_are_counted(installed: Installation, leader: Replica) -> None:
    with pool(installed.testbed, "counted", zones()) as mine:
        mine.policy(placement={**TWO_A_NODE, "debounce": "1s", "gateTimeout": "9s"})
        mine.nodes_of(mine.executors(2))
        assert leader.metric('ballast_decisions_total{kind="placement",policy="counted"}') == 2.0
        assert leader.metric('ballast_gate_hold_seconds_count{policy="counted"}') == 2.0
