"""A cluster with Ballast in it, and the hands to steer it in a test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from examples.demo.figures import Figures
from examples.demo.pool import POOL, POOL_LABEL, SYSTEM
from examples.demo.streaming.application import Job
from examples.demo.streaming.running import RunningJob
from tests.testbed.kubelet import cgroups
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

Json = dict[str, Any]
Result = TypeVar("Result")

WINDOW_SECONDS = 10
SETTLE_SECONDS = 20
CORES = 0.5
NOISE_CORES = 0.46
NOISE_REQUEST = "100m"
HOT_SCORE = 75.0
NOISE_NAMESPACE = "noise"
ENDED = frozenset({"Succeeded", "Failed", "Expired", "Refused"})
HOME_ZONE = "zone-b"
"""Where Ballast places three executors: zone a has too few nodes for them."""
CALM_POINTS = 20.0
DECIDED_SECONDS = 240.0
"""Executors that have just begun make scores swing, which a new policy takes for noise and looks at for longer."""
_ANSWER_SECONDS = 5.0
_API = "/apis/ballast.dev/v1alpha1"


def nodes() -> list[NodeSpec]:
    """Six in the pool: two in zone a, four in two racks of zone b; and one outside of it for drivers and Ballast."""
    places = [("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b1"), ("b", "b2"), ("b", "b2")]
    pool = [
        NodeSpec(
            f"node-{zone}-{index}",
            zone=f"zone-{zone}",
            rack=f"rack-{rack}",
            cpu=f"{CORES * 1000:.0f}m",
            memory="6Gi",
            cpu_quota_cores=CORES,
            labels={POOL_LABEL: POOL},
        )
        for index, (zone, rack) in enumerate(places, start=1)
    ]
    return [*pool, NodeSpec(SYSTEM, zone="zone-b", rack="rack-b0", cpu="4", memory="12Gi", labels={POOL_LABEL: SYSTEM})]


COMPONENT = "windows"
"""Of the steady job. Its executors are on a node each, so that a test can name one by its node."""
HOME = frozenset(spec.name for spec in nodes() if spec.zone == HOME_ZONE and spec.labels[POOL_LABEL] == POOL)


@dataclass(slots=True)
class Cluster:
    """`folder` holds the data of jobs."""

    testbed: Testbed
    folder: Path
    _policies: int = 0

    @property
    def figures(self) -> Figures:
        specs = [spec for spec in nodes() if spec.labels[POOL_LABEL] == POOL]
        return Figures(
            self.testbed.prometheus_url,
            capacity_cores={spec.name: CORES for spec in specs},
            addresses=self.testbed.node_addresses,
            window_seconds=WINDOW_SECONDS,
        )

    def job(self, name: str, namespace: str, **fields: Any) -> Job:
        selector = {POOL_LABEL: SYSTEM}
        folder = self.folder / f"{namespace}-{name}"
        return Job(name=name, namespace=namespace, folder=folder, driver_node_selector=selector, **fields)

    def enforce(self, *, moves: Json | None = None, namespace: str | None = None, **spec: Json | str) -> str:
        """A policy that places; with `moves` it levels as well. In place of the one before, and with no memory of it.

        Returns its name. Times are short and limits wide, unless `moves` says otherwise. It steers the executors of
        one namespace alone, if that is named. `spec`: fields of it that are to be otherwise.
        """
        self._policies += 1
        policy = self._policy(f"pool-{self._policies}", moves=moves, namespace=namespace)
        policy["spec"] |= spec
        return self.follow(policy)

    def follow(self, policy: Json) -> str:
        """This policy and no other; its name, once it is followed."""
        self.testbed.kubectl("delete", "bpol", "--all", "--wait=true")
        name = str(policy["metadata"]["name"])
        self.testbed.apply(policy)
        self.await_(lambda: self.policy(name).get("status", {}).get("observedGeneration", -1) >= 0, f"{name} is seen")
        return name

    def _policy(self, name: str, *, moves: Json | None, namespace: str | None) -> Json:
        thresholds = {"lowThreshold": 15, "highThreshold": 30, "lowHits": 2, "highHits": 1, "minHotScore": 60}
        leveling = {"strategy": "AvgShedder", "avgShedder": thresholds}
        chosen = {"matchLabels": {"kubernetes.io/metadata.name": namespace}} if namespace else {}
        limits = {
            "settle": f"{SETTLE_SECONDS}s",
            "minExecutorAge": "5s",
            "saturationScore": 0,
            "cooldown": "0s",
            "budgets": [{"moves": 100, "per": "1h"}],
            "pauseAfterFailures": 100,
        }
        return {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": name},
            "spec": {
                "nodeSelector": {"matchLabels": {POOL_LABEL: POOL}},
                "namespaceSelector": chosen,
                "interval": "2s",
                "metrics": {
                    "prometheus": {"url": self.testbed.prometheus_url},
                    "window": f"{WINDOW_SECONDS}s",
                    "maxAge": "30s",
                    # So short a window holds few tasks, and whose are larger is chance.
                    "advanced": {"queries": {"executorBytes": "vector(1) < 0"}},
                },
                "placement": {"mode": "Enforce", "limits": [{"component": COMPONENT, "maxPerNode": 1}]},
                "shedding": leveling if moves is not None else {"strategy": "None"},
                "moves": {**limits, **moves} if moves is not None else {"mode": "Disabled"},
            },
        }

    @contextmanager
    def noise(self, node: str, cores: float = NOISE_CORES, *, request: str = NOISE_REQUEST) -> Iterator[None]:
        """A neighbor that makes a node hot; entered when the scores show it, and nothing else changes them.

        A policy that begins while scores rise or fall learns that as the pool's noise, and is slow to act on a gap.
        """
        with self.neighbor(node, cores, request=request):
            self.await_(
                lambda: self.score(node) >= HOT_SCORE and self._calm(),
                f"{node} is hot and the pool is calm",
                timeout_seconds=180,
                explain=lambda: str(self._recent_scores()),
            )
            yield

    @contextmanager
    def neighbor(self, node: str, cores: float = NOISE_CORES, *, request: str = NOISE_REQUEST) -> Iterator[None]:
        """One that keeps so many cores of the node busy; entered at once. `request`: of CPU, its share of the node."""
        self.testbed.apply(_noise(node, cores, request))
        try:
            yield
        finally:
            self.testbed.kubectl("delete", "pod", "noise", f"-n={NOISE_NAMESPACE}", "--ignore-not-found", "--wait=true")

    def score(self, node: str) -> float:
        """The node's score now, 0 while it has none."""
        now = time.time()
        points = self.figures.history(now, now).get(node, [])
        return points[-1][1] if points else 0.0

    def _recent_scores(self) -> Mapping[str, list[float]]:
        """Scores by node, over the last window."""
        now = time.time()
        points = self.figures.history(now - WINDOW_SECONDS, now)
        return {node: [score for _, score in series] for node, series in points.items()}

    def _calm(self) -> bool:
        return all(max(scores) - min(scores) < CALM_POINTS for scores in self._recent_scores().values() if scores)

    def policy(self, name: str) -> Json:
        return self.testbed.api.get(f"{_API}/balancingpolicies/{name}")

    def topology(self, namespace: str, name: str) -> Json:
        return self.testbed.api.get(f"{_API}/namespaces/{namespace}/sparktopologies/{name}")

    def moves(self, namespace: str) -> list[Json]:
        found: list[Json] = self.testbed.api.get(f"{_API}/namespaces/{namespace}/executormoves")["items"]
        return sorted(found, key=lambda move: str(move["metadata"]["creationTimestamp"]))

    def come_to_rest(self, job: RunningJob) -> None:
        """As at the beginning: nothing is leveled, the moves of before are forgotten, and the job is where it belongs.

        The policy goes first: with its budget free again, it would answer the next noise at once.
        """
        self.enforce()
        self.testbed.kubectl("delete", "emove", "--all", f"--namespace={job.job.namespace}", "--wait=true")
        self._bring_home(job)

    def _bring_home(self, job: RunningJob) -> None:
        """An executor that was let go while Ballast was dead may run anywhere, also next to another of its job.

        Its replacement is placed.
        """
        running = job.running_executors()
        places = {each.node: each.name for each in running if each.node in HOME}
        names = [each.name for each in running if each.name not in places.values()]
        if names:
            self.testbed.kubectl("delete", "pods", *names, f"--namespace={job.job.namespace}", "--wait=true")

        def at_home() -> bool:
            return len({each.node for each in job.running_executors()} & HOME) == job.job.executors

        awaited = f"{job.job.executors} executors run in {HOME_ZONE}, on a node each"
        self.await_(at_home, awaited, timeout_seconds=120)

    def await_move(self, namespace: str, *, phases: frozenset[str], timeout_seconds: float = DECIDED_SECONDS) -> Json:
        """The namespace's move, once it is in one of the phases."""

        def current() -> Json | None:
            return next((m for m in self.moves(namespace) if m.get("status", {}).get("phase") in phases), None)

        what = f"a move in {namespace} is {' or '.join(sorted(phases))}"
        found = self.await_(current, what, timeout_seconds=timeout_seconds)
        assert found is not None
        return found

    def refusals(self, name: str) -> dict[str, Json]:
        """What the policy's status says was refused, by reason."""
        items = self.policy(name).get("status", {}).get("refusals", {}).get("items", [])
        return {item["reason"]: item for item in items}

    def await_refusal(self, name: str, reason: str, *, timeout_seconds: float = DECIDED_SECONDS) -> Json:
        """The status's entry."""
        return self.await_shown(
            name,
            lambda: self.refusals(name).get(reason),
            f"{reason} is among the refusals of {name}",
            timeout_seconds=timeout_seconds,
        ) or {}  # fmt: skip

    def await_shown(
        self, name: str, shown: Callable[[], Result], what: str, *, timeout_seconds: float = DECIDED_SECONDS
    ) -> Result:
        """What a policy's status shows: the first true result of `shown`.

        New metrics are written to a status once a minute, a changed spec is answered at once. So the spec changes, in
        a field without effect here, until the status shows it.
        """
        due = time.monotonic() + _ANSWER_SECONDS

        def current() -> Result:
            nonlocal due
            found = shown()
            if not found and time.monotonic() >= due:
                self._touch(name)
                due = time.monotonic() + _ANSWER_SECONDS
            return found

        return self.await_(current, what, timeout_seconds=timeout_seconds)

    def _touch(self, name: str) -> None:
        hours = int(str(self.policy(name)["spec"]["moves"].get("ttlAfterFinished", "25h")).removesuffix("h")) % 100 + 1
        change = {"spec": {"moves": {"ttlAfterFinished": f"{max(25, hours)}h"}}}
        self.testbed.kubectl("patch", "bpol", name, "--type=merge", f"--patch={json.dumps(change)}")

    def operator_pods(self) -> list[Json]:
        path = "/api/v1/namespaces/ballast-system/pods?labelSelector=app.kubernetes.io%2Fname%3Dballast"
        found: list[Json] = self.testbed.api.get(path)["items"]
        return [pod for pod in found if "job-name" not in pod["metadata"]["labels"]]

    def kill_outright(self, pods: Iterable[Json]) -> None:
        """As if their machine had gone: no signal that could be handled, no preStop."""
        groups = cgroups.detect(Path("/proc/self/mounts").read_text())
        for pod in pods:
            name = f"{self.testbed.instance.cgroup_prefix}/{pod['spec']['nodeName']}/pod{pod['metadata']['uid']}"
            self.await_(partial(cgroups.kill, groups, name), f"{name} is empty")

    def await_(
        self,
        condition: Callable[[], Result],
        what: str,
        *,
        timeout_seconds: float = 60.0,
        explain: Callable[[], str] | None = None,
    ) -> Result:
        return wait_until(
            condition,
            what=what,
            timeout_seconds=timeout_seconds,
            poll_seconds=0.3,
            explain=explain or self._explanation,
        )

    def _explanation(self) -> str:
        """What there is, then what each policy says of itself: last, where a reader of a long output looks."""
        found = self.testbed.kubectl("get", "bpol,stopo,emove,pods", "--all-namespaces", "--output=wide")
        policies = self.testbed.api.get(f"{_API}/balancingpolicies")["items"]
        told = {policy["metadata"]["name"]: policy.get("status", {}) for policy in policies}
        return f"{found}\n{yaml.safe_dump(told, width=160)}"


def _noise(node: str, cores: float, request: str) -> Json:
    resources = {"requests": {"cpu": request, "memory": "16Mi"}}
    arguments = ["--cores", str(cores)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "noise", "namespace": NOISE_NAMESPACE},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "noise", "args": arguments, "resources": resources}],
        },
    }


def place_of(pod: Json) -> dict[str, list[str]]:
    """What of the pod's required node affinity Ballast could have written: label → values."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    return {e["key"]: e.get("values", []) for term in terms for e in term.get("matchExpressions", [])}


def zones_of(job: RunningJob) -> set[str]:
    """The zones that the job's executors are in."""
    zone = {spec.name: spec.zone for spec in nodes()}
    return {zone[executor.node] for executor in job.executors() if executor.node}


def names_by_node(job: RunningJob) -> Mapping[str, str]:
    return {executor.node: executor.name for executor in job.running_executors() if executor.node}
