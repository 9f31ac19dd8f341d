"""One replica with all its parts, against an API server that keeps what is written."""

from __future__ import annotations

import asyncio
import base64
import platform
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import requests

from ballast.controller.operator import Operator, Settings
from ballast.kube.connection import Connection
from ballast.kube.document import micro_text, seconds, text
from tests.apiserver import ApiServer, Asked, Fault, kubeconfig, serving
from tests.testbed.instance import free_port
from tests.unit.controller.stage import move, streaming
from tests.unit.controller.world import METRICS, World
from tests.unit.kube.builders import FOREIGN_GATE, GATE, executor, node, required_values

JSON = dict[str, Any]
TOPOLOGY = {"ballast.dev/topology": "clicks"}
OPTED_IN = {"ballast.dev/gate": "enabled"}
DECISIONS = ("placement", "release", "move", "recommendation")
PATIENCE_SECONDS = 30.0
KOPF_IS_STOPPED = ("Connector is closed", "TCP closed; will re-authenticate")
"""What kopf logs where it is stopped while it still looks for the kinds that the API server has."""


def policy(url: str, **spec: Any) -> JSON:
    token = {"name": "prometheus", "key": "token"}
    metrics = {
        "prometheus": {"url": f"{url}{METRICS}", "bearerTokenSecretRef": token},
        "advanced": {
            "queries": {
                "nodeCpu": "cores_of_nodes",
                "nodeMemory": "memory_of_nodes",
                "executorCpu": "cores_of_executors",
            }
        },
    }
    whole = {
        "nodeSelector": {"matchLabels": {"pool": "streaming"}},
        "interval": "2s",
        "metrics": metrics,
        "placement": {"mode": "Enforce", "debounce": "1s"},
        "moves": {"mode": "Enforce", "allowUnknownState": True, "maxLocalityLossPercent": 100},
        **spec,
    }
    return {"metadata": {"name": "streaming", "uid": "uid-streaming", "generation": 1}, "spec": whole}


def clicks() -> JSON:
    metadata = {"name": "clicks", "namespace": "analytics", "generation": 1}
    return {"metadata": metadata, "spec": {"components": [{"name": "windows", "executors": 1}]}}


def ordered() -> JSON:
    """A move of executor 1 from hot to cold."""
    found = move(1)
    found["metadata"]["creationTimestamp"] = text(time.time())
    return found


def gated(number: int, *, age_seconds: float = 0.0, others: Sequence[JSON] = ()) -> JSON:
    found = executor(number, application="spark-2", gates=[GATE, *others], labels=TOPOLOGY)
    found["metadata"]["creationTimestamp"] = text(time.time() - age_seconds)
    return found


@pytest.fixture
def world() -> World:
    """Three nodes, of which one is hot, and an executor on it."""
    found = World()
    found.cores = {"hot": 3.8, "mild": 2.0, "cold": 0.4}
    found.put("nodes", *(node(name) for name in found.cores))
    found.put("namespaces", {"metadata": {"name": "analytics", "labels": OPTED_IN}})
    secret = {"token": base64.b64encode(b"a-token").decode()}
    found.put("secrets", {"metadata": {"name": "prometheus", "namespace": "ballast-system"}, "data": secret})
    found.put("pods", *(streaming(number, node=name) for number, name in enumerate(("hot", "mild"), 1)))
    return found


@pytest.fixture
def script(world: World) -> Iterator[ApiServer]:
    with serving(world) as found:
        yield found


@pytest.fixture(autouse=True)
def _nothing_failed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A callback, a handler or a thread that failed is in the log alone."""
    caplog.set_level("INFO")
    yield
    errors = [each.getMessage() for each in caplog.get_records("call") if each.levelname == "ERROR"]
    assert [each for each in errors if not any(words in each for words in KOPF_IS_STOPPED)] == []


@dataclass(frozen=True, slots=True)
class Running:
    """A replica that runs."""

    script: ApiServer
    metrics_port: int
    health_port: int

    async def until(self, condition: Callable[[], object], what: str) -> None:
        over = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < over, f"{what}: {[(each.method, each.path) for each in self.script.writes]}"
            await asyncio.sleep(0.02)

    async def metric(self, series: str) -> float | None:
        """As Prometheus scrapes it; None also before it is served."""
        try:
            page = await asyncio.to_thread(requests.get, f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5)
        except requests.ConnectionError:
            return None
        found = [line for line in page.text.splitlines() if line.startswith(f"{series} ")]
        return float(found[0].rpartition(" ")[2]) if found else None

    async def series(self, name: str) -> set[str]:
        """The values of the label `kind`."""
        page = await asyncio.to_thread(requests.get, f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5)
        return set(re.findall(rf'^{name}{{.*kind="([^"]*)"', page.text, re.MULTILINE))

    async def until_metric(self, series: str, *, least: float = 1.0) -> None:
        over = time.monotonic() + PATIENCE_SECONDS
        while (await self.metric(series) or 0.0) < least:
            assert time.monotonic() < over, series
            await asyncio.sleep(0.02)

    async def probe(self) -> str:
        answer = await asyncio.to_thread(requests.get, f"http://127.0.0.1:{self.health_port}/readyz", timeout=5)
        return answer.text.strip()

    def written(self, ending: str) -> list[Asked]:
        return [asked for asked in self.script.writes if asked.path.partition("?")[0].endswith(ending)]


@asynccontextmanager
async def running(script: ApiServer, folder: Path) -> AsyncIterator[Running]:
    health, metrics = free_port("127.0.0.1"), free_port("127.0.0.1")
    settings = Settings(
        "ballast", "ballast-system", "one", host="127.0.0.1", health_port=health, metrics_port=metrics, lease_seconds=6
    )
    operator = Operator(Connection.from_kubeconfig(kubeconfig(folder, script.url)), settings)
    stop = asyncio.Event()
    task = asyncio.ensure_future(operator.run(stop))
    try:
        yield Running(script, metrics, health)
    finally:
        stop.set()
        await asyncio.wait_for(task, PATIENCE_SECONDS)


def zone_of(world: World, name: str) -> list[str]:
    """The zone that the executor requires; empty before its release."""
    return required_values(world.one("pods", name, "analytics")["spec"].get("affinity") or {})


SERIES_OF_A_LEADER = (
    "ballast_leading",
    'ballast_api_requests_total{code="201",resource="leases",verb="create"}',
    'ballast_api_requests_total{code="201",resource="pods/eviction",verb="create"}',
    'ballast_api_writes_total{kind="eviction",result="Evicted"}',
    'ballast_decisions_total{kind="placement",policy="streaming"}',
    'ballast_gate_hold_seconds_count{policy="streaming"}',
    'ballast_move_transitions_total{phase="Leaving",policy="streaming"}',
    'ballast_node_score_percent{node="hot",policy="streaming"}',
    'ballast_passes_total{policy="streaming",result="ok"}',
    'ballast_pass_duration_seconds_count{policy="streaming"}',
    'ballast_watch_restarts{resource="pods"}',
)


async def test_a_leader_places_and_moves_by_metrics_and_reports_it(
    world: World, script: ApiServer, tmp_path: Path
) -> None:
    world.put("balancingpolicies", policy(script.url))
    world.put("sparktopologies", clicks())
    world.put("executormoves", ordered())
    world.put("pods", gated(1))
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: replica.written("/spark-1-exec-1/eviction"), "the executor is evicted")
        await replica.until(lambda: zone_of(world, "spark-2-exec-1"), "the set is placed")
        await replica.until(lambda: world.all("events"), "Events are posted")
        await replica.until(lambda: conditions(world).get("MetricsAvailable") == "True", "metrics are used")
        await replica.until(lambda: world.status("sparktopologies", "clicks", "analytics"), "it is reported")
        assert await replica.probe() == "ok"
        held = world.one("leases", "ballast", "ballast-system")["spec"]
        assert (held["holderIdentity"], held["leaseDurationSeconds"]) == ("one", 6)
        on = world.one("gateswitches", "ballast")
        assert (on["spec"]["gating"], on["status"]["leader"], on["status"]["reason"]) == (True, "one", "Leading")
        world.strike(Fault.CUT)
        for series in SERIES_OF_A_LEADER:
            await replica.until_metric(series)
        unknown = await replica.series("ballast_decisions_total") - set(DECISIONS)
        assert not unknown, "what is counted was introduced by the same word"
        versions = f'python="{platform.python_version()}",version="{version("ballast-operator")}"'
        assert await replica.metric(f"ballast_build_info{{{versions}}}") == 1.0
        assert len(replica.written("/spark-2-exec-1")) == 1, "it is released once"
    paths = [each.path for each in script.asked]
    before = paths[: next(index for index, path in enumerate(paths) if "/eviction" in path)]
    assert any("labelSelector=spark-app-selector" in path and "spark-1" in path for path in before), "read again"
    assert {each["reportingInstance"] for each in world.all("events")} == {"one"}
    assert {each["regarding"]["kind"] for each in world.all("events")} >= {"ExecutorMove", "Pod", "SparkTopology"}
    assert all(abs(time.time() - (seconds(each["eventTime"]) or 0.0)) < 60.0 for each in world.all("events"))
    assert world.credentials == {
        "prometheus": {"Bearer a-token"},
        "ballast": {"Bearer secret"},
        "kopf": {"Bearer secret"},
    }
    assert not any(each.headers["User-Agent"].startswith("kopf") for each in script.writes), "kopf writes nothing"
    assert world.one("leases", "ballast", "ballast-system")["spec"]["holderIdentity"] == ""
    off = world.one("gateswitches", "ballast")
    assert (off["spec"]["gating"], off["status"]["reason"]) == (False, "Stopped")


def conditions(world: World) -> dict[str, str]:
    """Of the policy: status by type."""
    found = world.status("balancingpolicies", "streaming").get("conditions") or ()
    return {each["type"]: each["status"] for each in found}


async def test_an_executor_that_comes_to_its_gate_is_released_however_much_else_changes(
    world: World, script: ApiServer, tmp_path: Path
) -> None:
    world.put("balancingpolicies", policy(script.url, placement={"mode": "Enforce", "debounce": "0s"}, interval="60s"))
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: conditions(world).get("MetricsAvailable") == "True", "the first full pass")
        world.put("pods", gated(5))
        await replica.until(lambda: zone_of(world, "spark-2-exec-5"), "it is placed")
        assert await replica.metric('ballast_unplaced_sets_total{cause="GateTimeout",policy="streaming"}') is None


async def test_a_policy_that_recommends_says_what_it_would_do_and_touches_no_pod(
    world: World, script: ApiServer, tmp_path: Path
) -> None:
    hasty = {"avgShedder": {"lowHits": 1, "highHits": 1, "lowThreshold": 5, "highThreshold": 10}}
    moves = {"mode": "Recommend", "allowUnknownState": True, "maxLocalityLossPercent": 100}
    recommends = policy(script.url, shedding=hasty, placement={"mode": "Recommend"}, moves=moves)
    world.put("balancingpolicies", recommends)
    world.put("sparktopologies", clicks())
    world.put("pods", executor(1, application="spark-2", labels=TOPOLOGY, node="mild"))
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: recommended(world), "a move is recommended")
        await replica.until(
            lambda: world.status("sparktopologies", "clicks", "analytics").get("recommendation"),
            "a placement is recommended",
        )
    (move_,) = recommended(world)
    assert (move_["executor"], move_["from"], move_["to"]) == ("spark-1-exec-1", "hot", "cold")
    written = {each.path.partition("?")[0].rpartition("/")[2] for each in script.writes}
    assert written <= {"leases", "ballast", "gateswitches", "status", "events"}
    assert not world.one("gateswitches", "ballast")["spec"]["gating"]


def recommended(world: World) -> list[JSON]:
    """Moves, in the policy's status."""
    found = world.status("balancingpolicies", "streaming").get("recommendations") or {}
    return list(found.get("items") or ())


async def test_a_node_whose_memory_is_used_up_is_the_hottest(world: World, script: ApiServer, tmp_path: Path) -> None:
    """Shares of what the node has: 8 GiB."""
    weighted = policy(script.url)
    weighted["spec"]["metrics"]["weights"] = {"memoryPercent": 100}
    world.put("balancingpolicies", weighted)
    world.memory = {"hot": 1e9, "mild": 8.5e9, "cold": 1e9}
    async with running(script, tmp_path) as replica:
        await replica.until_metric('ballast_node_score_percent{node="mild",policy="streaming"}', least=98.0)
        assert await replica.metric('ballast_node_score_percent{node="hot",policy="streaming"}') == pytest.approx(95.0)


async def test_what_kopf_hears_of_is_acted_on_at_once(
    world: World, script: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No list of Ballast's kinds comes in time to show the policy."""
    monkeypatch.setattr("ballast.controller.operator._COMPARE_EVERY_SECONDS", 3600.0)
    world.put("namespaces", {"metadata": {"name": "analytics", "labels": {}}})
    world.put("pods", gated(1))
    async with running(script, tmp_path) as replica:
        await replica.until_metric("ballast_leading")
        await replica.until(lambda: world.one("gateswitches", "ballast"), "there was a reconcile without a policy")
        world.put("namespaces", {"metadata": {"name": "analytics", "labels": OPTED_IN}})
        world.put("balancingpolicies", policy(script.url))
        await replica.until(lambda: conditions(world), "the policy is followed")


async def test_an_executor_that_failed_and_is_gone_is_counted(world: World, script: ApiServer, tmp_path: Path) -> None:
    """Spark deletes a failed executor's pod at once, so no reconcile sees it."""
    world.put("namespaces", {"metadata": {"name": "analytics", "labels": {**OPTED_IN, "team": "a"}}})
    world.put("namespaces", {"metadata": {"name": "other", "labels": {"team": "b"}}})
    world.put("balancingpolicies", policy(script.url, namespaceSelector={"matchLabels": {"team": "a"}}))
    elsewhere = streaming(8, node="mild", phase="Failed", namespace="other")
    failed = streaming(7, node="mild", phase="Failed")
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: conditions(world), "the policy is followed")
        world.put("pods", elsewhere, failed)
        world.remove("pods", "spark-1-exec-8", "other")
        world.remove("pods", "spark-1-exec-7", "analytics")
        await replica.until(
            lambda: (world.status("balancingpolicies", "streaming").get("failures") or [{}])[0].get("executors"),
            "the failure is in the policy's status",
        )
    (entry,) = world.status("balancingpolicies", "streaming")["failures"]
    assert (entry["application"], entry["executors"]) == ("spark-1", [7])


async def test_a_standby_releases_overdue_executors_into_a_zone_and_writes_nothing_else(
    world: World, script: ApiServer, tmp_path: Path
) -> None:
    world.put("balancingpolicies", policy(script.url))
    lease = {"holderIdentity": "two", "leaseDurationSeconds": 60, "renewTime": micro_text(time.time())}
    world.put("leases", {"metadata": {"name": "ballast", "namespace": "ballast-system"}, "spec": lease})
    world.put("pods", gated(1, age_seconds=20.0), gated(2))
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: replica.written("/spark-2-exec-1"), "the overdue executor is released")
        await replica.until_metric('ballast_unplaced_sets_total{cause="GateTimeout",policy="streaming"}')
        assert await replica.metric("ballast_leading") == 0.0
        assert await replica.probe() == "ok"
    assert zone_of(world, "spark-2-exec-1") == ["a"]
    assert [each.path.partition("?")[0].rpartition("/")[2] for each in script.writes] == ["spark-2-exec-1"]


async def test_next_to_another_release_that_acts_it_says_so_and_touches_no_pod(
    world: World, script: ApiServer, tmp_path: Path
) -> None:
    world.put("balancingpolicies", policy(script.url))
    other = {"leader": "x", "heartbeatTime": text(time.time()), "reason": "Leading"}
    metadata = {"name": "other", "uid": "uid-other", "creationTimestamp": text(time.time() - 60.0)}
    world.put("gateswitches", {"metadata": metadata, "spec": {"gating": True}, "status": other})
    world.put("pods", gated(1))
    async with running(script, tmp_path) as replica:
        await replica.until_metric("ballast_leading")
        await replica.until(
            lambda: (
                ((world.one("gateswitches", "ballast") or {}).get("status") or {}).get("reason") == "AnotherRelease"
            ),
            "its own switch says so",
        )
        assert (await replica.probe()).startswith("the Ballast release other acts in this cluster, so ballast does")
    assert replica.written("/spark-2-exec-1") == []


def of_switch(world: World) -> tuple[bool | None, str | None]:
    """Whether executors are gated, and the reason."""
    found = world.one("gateswitches", "ballast") or {}
    return (found.get("spec") or {}).get("gating"), (found.get("status") or {}).get("reason")


@pytest.mark.parametrize("aside", [False, True], ids=["it acts", "another release acts"])
async def test_once_its_own_namespace_is_being_deleted_it_gates_nothing_and_waits_for_no_executor(
    world: World, script: ApiServer, tmp_path: Path, *, aside: bool
) -> None:
    """Soon its account is gone, and the policy that gates executors stays. This one would wait for Kueue, too."""
    patient = {"mode": "Enforce", "debounce": "10s", "gateTimeout": "10s"}
    world.put("balancingpolicies", policy(script.url, placement=patient))
    world.put("namespaces", {"metadata": {"name": "ballast-system"}})
    acts = (True, "Leading")
    if aside:
        metadata = {"name": "other", "uid": "uid-other", "creationTimestamp": text(time.time() - 60.0)}
        leading = {"leader": "x", "heartbeatTime": text(time.time()), "reason": "Leading"}
        world.put("gateswitches", {"metadata": metadata, "spec": {"gating": True}, "status": leading})
        acts = (False, "AnotherRelease")
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: of_switch(world) == acts, "it has seen the policy")
        world.put("pods", gated(5, others=[FOREIGN_GATE]))
        world.put("namespaces", {"metadata": {"name": "ballast-system", "deletionTimestamp": text(time.time())}})
        if aside:
            await asyncio.sleep(2.0)
            assert of_switch(world) == acts
            assert replica.written("/spark-2-exec-5") == []
            return
        await replica.until(lambda: of_switch(world) == (False, "Uninstalled"), "the switch is off")
        await replica.until(lambda: replica.written("/spark-2-exec-5"), "the executor is released")


@pytest.mark.parametrize("since_seconds", [5.0, -30.0], ids=["later", "before its container was started again"])
async def test_a_switch_that_was_turned_off_for_good_is_a_condition(
    world: World, script: ApiServer, tmp_path: Path, since_seconds: float
) -> None:
    world.put("balancingpolicies", policy(script.url))
    own = {"name": "one", "namespace": "ballast-system", "creationTimestamp": text(time.time() - 60.0)}
    world.put("pods", {"metadata": own, "spec": {"containers": []}, "status": {"phase": "Running"}})
    off = {"leader": "x", "heartbeatTime": text(time.time() + since_seconds), "reason": "Uninstalled"}
    metadata = {"name": "ballast", "uid": "uid-ballast", "creationTimestamp": text(time.time() - 60.0)}
    world.put("gateswitches", {"metadata": metadata, "spec": {"gating": False}, "status": off})
    async with running(script, tmp_path) as replica:
        await replica.until(lambda: conditions(world).get("Gating") == "False", "the condition says so")
    assert world.one("gateswitches", "ballast")["status"]["reason"] == "Uninstalled"
