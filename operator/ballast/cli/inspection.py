"""Gathering what doctor checks from a live cluster. Nothing is written: pods are created with the server's dry run."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any, TypeVar

from ballast.api import BalancingPolicy, SparkTopology
from ballast.api import labels as selectors
from ballast.api.labels import LabelSelector, Requirement
from ballast.cli.operators import OURS, is_operator
from ballast.cli.source import resting_words
from ballast.controller.metrics_reader import MetricsReader, queries_of_policy
from ballast.doctor.cluster_checks import Budget, Cluster, Metrics, Node, NodePool, Operator, SparkPod
from ballast.errors import BallastError
from ballast.http_date import stamp_ahead_seconds
from ballast.kube import kinds, names
from ballast.kube.actions import release_patch
from ballast.kube.client import Client
from ballast.kube.document import JSON, seconds
from ballast.kube.errors import Conflict, Denied, Forbidden, Invalid, KubeError, NotFound
from ballast.kube.kinds import Kind
from ballast.kube.objects import Query, read_list
from ballast.kube.pods import held as held_by_us
from ballast.model import KUBE_SCHEDULER, Levels, Pin, Placement, PlacementMode
from ballast.prometheus import SOURCES, Ambiguity, settled
from ballast.prometheus.ambiguity import doubled
from ballast.prometheus.series import ValueByKey, by_node

T = TypeVar("T")
_RUNS = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have not ended."""
_DESCHEDULER = "descheduler"
_NODE_POOL_LABEL = "karpenter.sh/nodepool"
_NODE_POOL = Kind("karpenter.sh/v1", "NodePool", "nodepools", namespaced=False)
_FENCE = Kind(
    "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
_FENCES = ("patch", "nominate", "delete", "evict", "switch", "own")
"""How the names of the chart's end that limit the operator's own account."""
_HEARTBEATS = "kube-node-lease"
_EVICTION = "eviction"
_RIGHTS: Sequence[tuple[str, Kind, str]] = (
    ("list", kinds.NODE, ""),
    ("list", kinds.POD, ""),
    ("watch", kinds.POD, ""),
    ("patch", kinds.POD, ""),
    ("patch", kinds.POD, "status"),
    ("create", kinds.POD, _EVICTION),
    ("list", kinds.BALANCING_POLICY, ""),
    ("patch", kinds.BALANCING_POLICY, "status"),
    ("list", kinds.SPARK_TOPOLOGY, ""),
    ("create", kinds.EXECUTOR_MOVE, ""),
    ("patch", kinds.EXECUTOR_MOVE, "status"),
    ("create", kinds.EVENT, ""),
)
"""What the operator can't work without. The right to evict may be limited to namespaces: see `_denied`."""
_NEEDED: Sequence[tuple[str, Kind]] = (
    ("list", kinds.NODE),
    ("list", kinds.POD),
    ("list", kinds.BALANCING_POLICY),
    ("list", kinds.SPARK_TOPOLOGY),
    ("list", kinds.DISRUPTION_BUDGET),
    ("list", kinds.DEPLOYMENT),
    ("list", kinds.CRON_JOB),
    ("list", kinds.NAMESPACE),
    ("list", kinds.LEASE),
    ("create", kinds.POD),
    ("create", kinds.ACCESS),
)
"""What doctor itself asks for."""


def inspect(client: Client, *, server: str, system_namespace: str, prometheus: str | None = None) -> Cluster:
    """Raises KubeError if the API server can't be reached. What may not be read is listed in `unread`.

    `prometheus`: an address to ask instead of the policies' own.
    """
    return _Inspection(client, system_namespace, prometheus).run(server)


class _Inspection:
    def __init__(self, client: Client, system_namespace: str, prometheus: str | None) -> None:
        self._client, self._namespace, self._prometheus = client, system_namespace, prometheus
        self._unread: dict[str, str] = {}

    def run(self, server: str) -> Cluster:
        server_version = str(self._client.version().get("gitVersion", ""))
        self._own_rights()
        policies, definitions = self._policies()
        topologies = self._list(Query(kinds.SPARK_TOPOLOGY), SparkTopology.parse) if definitions else []
        labels = "spark-role in (driver,executor)"
        pods = self._list(Query(kinds.POD, labels=labels, fields=_RUNS, metadata_only=True), _spark_pod)
        elsewhere = self._schedulers()
        executors = tuple(
            replace(pod, scheduler=elsewhere.get((pod.namespace, pod.name), pod.scheduler))
            for pod in pods
            if pod.labels["spark-role"] == "executor"
        )
        namespaces = dict(self._list(Query(kinds.NAMESPACE, metadata_only=True), _labels))
        enforced = self._enforced(namespaces, policies, topologies)
        server_ahead_seconds, gated = self._gated(enforced)
        nodes, raw = self._nodes(server_ahead_seconds)
        return Cluster(
            server=server,
            system_namespace=self._namespace,
            operators=tuple(self._operators({each.metadata.namespace or "" for each in topologies})),
            definitions=definitions,
            nodes=tuple(nodes),
            policies=tuple(policies),
            topologies=tuple(topologies),
            drivers=tuple(pod for pod in pods if pod.labels["spark-role"] == "driver"),
            executors=executors,
            budgets=tuple(self._list(Query(kinds.DISRUPTION_BUDGET), _budget)),
            gated=gated,
            refused=self._refused(enforced, executors),
            resting=self._resting(),
            metrics=self._metrics(policies, nodes, raw, executors=bool(executors)),
            deschedulers=tuple(self._deschedulers()),
            node_pools=self._node_pools() if any(_NODE_POOL_LABEL in node.labels for node in nodes) else {},
            namespaces=namespaces,
            server_version=server_version,
            own_version=version("ballast-operator"),
            clock_ahead_seconds=-server_ahead_seconds,
            unread=dict(self._unread),
        )

    def _list(self, query: Query, read: Callable[[JSON], T], *, may_be_unknown: bool = False) -> list[T]:
        """Empty where it may not be read; what is invalid is left out. `may_be_unknown`: the API server need not know
        the kind.
        """
        try:
            found = read_list(self._client, query, lambda item: item).items
        except (Forbidden, NotFound) as error:
            if not (may_be_unknown and isinstance(error, NotFound)):
                self._unread[query.kind.plural] = str(error)
            return []
        values = []
        for item in found:
            try:
                values.append(read(item))
            except BallastError as error:
                self._unread[f"{query.kind.kind} {item['metadata']['name']}"] = str(error)
        return values

    def _schedulers(self) -> dict[tuple[str, str], str]:
        """Of the executors that kube-scheduler's default profile does not schedule, by namespace and name."""
        elsewhere = f"{_RUNS},spec.schedulerName!={KUBE_SCHEDULER}"
        query = Query(kinds.POD, labels="spark-role=executor", fields=elsewhere)
        return dict(self._list(query, _scheduler))

    def _deschedulers(self) -> Iterable[str]:
        """Its chart makes a CronJob of it, or a Deployment. CronJobs that are suspended are left out."""
        for kind in (kinds.DEPLOYMENT, kinds.CRON_JOB):
            found = self._list(Query(kind), lambda item: item)
            yield from (
                f"{kind.kind} {_place(item)}" for item in found if _is_descheduler(item["metadata"], item["spec"])
            )

    def _node_pools(self) -> dict[str, NodePool]:
        """Empty where there is no Karpenter."""
        return dict(self._list(Query(_NODE_POOL), _node_pool, may_be_unknown=True))

    def _own_rights(self) -> None:
        for verb, kind in _NEEDED:
            if not self._may(kinds.SELF_ACCESS, verb, kind, ""):
                self._unread[kind.plural] = f"you may not {verb} {kind.plural}"

    def _may(self, review: Kind, verb: str, kind: Kind, subresource: str, *, namespace: str = "", **who: Any) -> bool:
        """In all namespaces, or in one."""
        group = kind.api_version.rpartition("/")[0]
        asked = {"verb": verb, "group": group, "resource": kind.plural, "subresource": subresource}
        if namespace:
            asked["namespace"] = namespace
        body = {
            "apiVersion": review.api_version,
            "kind": review.kind,
            "metadata": {},
            "spec": {"resourceAttributes": asked, **who},
        }
        return bool(self._client.create(review, body)["status"]["allowed"])

    def _policies(self) -> tuple[list[BalancingPolicy], bool]:
        """The oldest first, and whether the API server knows the kind."""
        try:
            read_list(self._client, Query(kinds.BALANCING_POLICY, metadata_only=True), lambda item: item)
        except NotFound:
            return [], False
        except Forbidden:
            return [], True
        found = self._list(Query(kinds.BALANCING_POLICY), lambda item: (_age(item), BalancingPolicy.parse(item)))
        return [policy for _, policy in sorted(found, key=lambda each: each[0])], True

    def _operators(self, declared: Collection[str]) -> Iterable[Operator]:
        """`declared`: the namespaces with a SparkTopology."""
        query = Query(kinds.DEPLOYMENT, namespace=self._namespace, labels=OURS)
        fences = self._list(Query(_FENCE, labels=OURS), _conditions)
        for deployment in self._list(query, lambda item: item):
            if not is_operator(deployment):
                continue
            spec = deployment["spec"]["template"]["spec"]
            account = f"system:serviceaccount:{self._namespace}:{spec.get('serviceAccountName', 'default')}"
            labels = deployment["metadata"].get("labels", {})
            yield Operator(
                name=deployment["metadata"]["name"],
                account=account,
                version=labels.get("app.kubernetes.io/version", ""),
                denied=tuple(self._denied(account, declared)),
                unfenced=() if _FENCE.plural in self._unread else _unfenced(account, fences),
            )

    def _denied(self, account: str, declared: Collection[str]) -> Iterable[str]:
        """The chart's `evictionNamespaces` limits the right to evict: it is needed where a topology is, no more."""
        _, _, namespace, _ = account.split(":")
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
        for verb, kind, subresource in _RIGHTS:
            try:
                allowed = self._may(kinds.ACCESS, verb, kind, subresource, user=account, groups=groups)
            except Forbidden:
                return
            if allowed:
                continue
            right = f"{verb} {kind.plural}{f'/{subresource}' if subresource else ''}"
            limited = {
                name: self._may(kinds.ACCESS, verb, kind, subresource, namespace=name, user=account, groups=groups)
                for name in (sorted(declared) if subresource == _EVICTION else ())
            }
            if any(limited.values()):
                yield from (f"{right} in namespace {name}" for name, granted in limited.items() if not granted)
            else:
                yield f"{right} in all namespaces"

    @staticmethod
    def _enforced(
        namespaces: Mapping[str, Mapping[str, str]],
        policies: Sequence[BalancingPolicy],
        topologies: Sequence[SparkTopology],
    ) -> list[str]:
        """Namespaces where placement is enforced for executors that opted in."""
        enforcing = [each.spec for each in policies if each.spec.placement.mode.value == PlacementMode.ENFORCE.value]
        declared = {topology.metadata.namespace for topology in topologies}
        return [
            name
            for name, labels in namespaces.items()
            if (name in declared or labels.get(names.GATE_CHOICE) == "enabled")
            and any(spec.namespace_selector.matches(labels) for spec in enforcing)
        ]

    def _gated(self, namespaces: Iterable[str]) -> tuple[float, dict[str, bool]]:
        """How far the API server's clock is ahead, by a pod's timestamp; by namespace, whether executors are gated."""
        ahead_seconds, gated = 0.0, {}
        for name in namespaces:
            asked_at = time.time()
            try:
                pod = self._client.create_dry(kinds.POD, _probe(), namespace=name)
            except KubeError as error:
                self._unread[f"a pod in namespace {name}"] = str(error)
                continue
            gated[name] = any(gate["name"] == names.GATE for gate in pod["spec"].get("schedulingGates", []))
            created = seconds(pod["metadata"]["creationTimestamp"]) or 0.0
            ahead_seconds = stamp_ahead_seconds(created, asked_at=asked_at, answered_at=time.time())
        return ahead_seconds, gated

    def _refused(self, namespaces: Iterable[str], executors: Sequence[SparkPod]) -> dict[str, str]:
        """By namespace, why the update that releases an executor would be refused. One executor stands for all."""
        found = {}
        for namespace in namespaces:
            pod = next((each.name for each in executors if each.namespace == namespace), None)
            if pod is not None and (why := self._refusal(namespace, pod)):
                found[namespace] = why
        return found

    def _refusal(self, namespace: str, name: str) -> str | None:
        """An update that changes nothing passes admission, too, where the executor is not gated any more."""
        try:
            before = self._client.get(kinds.POD, name, namespace=namespace)
            held = held_by_us(before)
            as_it_is = Placement(name, before["metadata"]["uid"], None, (), Pin.NONE)
            patch: JSON | list[JSON] = {} if held is None else release_patch(held, as_it_is, Levels(())).operations
            after = self._client.patch_dry(kinds.POD, name, patch, namespace=namespace)
        except (NotFound, Conflict):
            return None
        except (Denied, Invalid) as error:
            return f"{name}, with the API server's dry run: {error.message}."
        except KubeError as error:
            self._unread[f"a release in namespace {namespace}"] = str(error)
            return None
        added = sorted({*_metadata_added(before, after), *_spec_changed(before, after)})
        if not added:
            return None
        return f"An update of {name} with the API server's dry run changes more than was asked for: {', '.join(added)}."

    def _resting(self) -> dict[str, str]:
        switches = self._list(Query(kinds.GATE_SWITCH), lambda item: item, may_be_unknown=True)
        return resting_words(switches, time.time())

    def _nodes(self, server_ahead_seconds: float) -> tuple[list[Node], dict[str, str]]:
        """And their names by internal address."""
        leases = dict(self._list(Query(kinds.LEASE, namespace=_HEARTBEATS), _renewed))
        server_now = time.time() + server_ahead_seconds
        nodes: list[Node] = []
        addresses: dict[str, str] = {}
        for item in self._list(Query(kinds.NODE), lambda item: item):
            name, status = item["metadata"]["name"], item.get("status") or {}
            ahead = (leases.get(name) or server_now) - server_now
            kubelet = (status.get("nodeInfo") or {}).get("kubeletVersion", "")
            nodes.append(Node(name, item["metadata"].get("labels") or {}, kubelet, ahead))
            addresses |= {each["address"]: name for each in status.get("addresses") or ()}
            addresses[name] = name
        return nodes, addresses

    def _metrics(
        self,
        policies: Sequence[BalancingPolicy],
        nodes: Sequence[Node],
        addresses: Mapping[str, str],
        *,
        executors: bool,
    ) -> dict[str, Metrics]:
        figures = MetricsReader(self._client, namespace=self._namespace)
        found = {}
        for policy in policies:
            spec = policy.spec.metrics
            if spec.prometheus is None:
                continue
            server = spec.prometheus
            if self._prometheus is not None:
                server = server.model_copy(update={"url": self._prometheus})
            # An address with a password is refused, and must not be shown.
            url = server.url.rpartition("@")[2]
            pool = [node.name for node in nodes if policy.spec.node_selector.matches(node.labels)]
            asked = queries_of_policy(spec)
            try:
                client = figures.server(policy.metadata.name, server)
            except BallastError as error:
                found[policy.metadata.name] = Metrics(url=url, problem=str(error))
                continue
            answers, failures = client.ask(asked, spec.window.seconds, at=settled(time.time()))
            if not answers:
                found[policy.metadata.name] = Metrics(url=url, problem=next(iter(failures.values()), "no query"))
                continue
            vectors = {name: answer.series for name, answer in answers.items()}
            shares = {
                signal: by_node(vectors[signal], addresses, doubled(vectors, signal, asked.sources))
                for signal in vectors
                if signal.startswith("node") and signal not in SOURCES
            }
            empty = [
                name
                for name, series in vectors.items()
                if name.startswith("executor") and name not in SOURCES and not series
            ]
            found[policy.metadata.name] = Metrics(
                url=url,
                failures=failures,
                without=_without(shares, pool, max_age_seconds=spec.max_age.seconds),
                ambiguous=ambiguity.found if (ambiguity := Ambiguity.among(shares, {}, known=pool)) else "",
                empty=tuple(empty) if executors else (),
            )
        figures.close()
        return found


def _without(
    figures: Mapping[str, ValueByKey], pool: Sequence[str], *, max_age_seconds: float
) -> dict[str, tuple[str, ...]]:
    """By signal the nodes for which it has no value, or an old one. Several sources are another finding."""
    known = {signal: found.values for signal, found in figures.items()}
    missing = {
        signal: [name for name in pool if name not in found.values and name not in found.doubled]
        for signal, found in figures.items()
    }
    old = [name for name in pool if known.get("nodeAge", {}).get(name, 0.0) > max_age_seconds]
    if old:
        missing["nodeAge"] = [*missing["nodeAge"], *old]
    return {signal: tuple(nodes) for signal, nodes in missing.items() if nodes}


def _metadata_added(before: JSON, after: JSON) -> Iterator[str]:
    for part in ("labels", "annotations"):
        known = before["metadata"].get(part) or {}
        for key, value in (after["metadata"].get(part) or {}).items():
            if known.get(key) != value:
                yield f"{part[:-1]} {key}"


def _spec_changed(before: JSON, after: JSON) -> Iterator[str]:
    fields = (before["spec"].keys() | after["spec"].keys()) - {"schedulingGates"}
    return (f"spec.{each}" for each in fields if before["spec"].get(each) != after["spec"].get(each))


def _conditions(policy: JSON) -> tuple[str, str]:
    """A policy's name, and when it is at work."""
    conditions = policy["spec"].get("matchConditions") or ()
    return policy["metadata"]["name"], " ".join(each["expression"] for each in conditions)


def _unfenced(account: str, fences: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    about = [name for name, conditions in fences if f"'{account}'" in conditions]
    return tuple(each for each in _FENCES if not any(name.endswith(f"-{each}") for name in about))


def _probe() -> JSON:
    """An executor that the restricted pod security standard and quotas of compute resources let in."""
    amounts = {"cpu": "100m", "memory": "128Mi"}
    container = {
        "name": "spark-kubernetes-executor",
        "image": "spark",
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    labels = {"spark-role": "executor", names.TOPOLOGY: "ballast-doctor"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ballast-doctor", "labels": labels},
        "spec": {"containers": [container], "securityContext": security},
    }


def _spark_pod(item: JSON) -> SparkPod:
    metadata = item["metadata"]
    return SparkPod(
        metadata["namespace"],
        metadata["name"],
        metadata["labels"],
        metadata.get("annotations") or {},
        tuple(metadata.get("finalizers") or ()),
    )


def _scheduler(item: JSON) -> tuple[tuple[str, str], str]:
    metadata = item["metadata"]
    return (metadata["namespace"], metadata["name"]), item["spec"].get("schedulerName") or KUBE_SCHEDULER


def _budget(item: JSON) -> Budget:
    metadata, status = item["metadata"], item.get("status") or {}
    selector = item["spec"].get("selector")
    return Budget(
        metadata["namespace"],
        metadata["name"],
        _selector(selector or {}),
        int(status.get("disruptionsAllowed") or 0),
        counted=selector is not None and bool(status.get("expectedPods")),
    )


def _selector(written: JSON) -> LabelSelector:
    """Any that the API server has taken: those of Ballast's own kinds are shorter."""
    expressions = (
        Requirement.model_construct(
            key=each["key"], operator=selectors.Operator(each["operator"]), values=tuple(each.get("values") or ())
        )
        for each in written.get("matchExpressions") or ()
    )
    labels = written.get("matchLabels") or {}
    return LabelSelector.model_construct(match_labels=labels, match_expressions=tuple(expressions))


def _place(item: JSON) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"


def _is_descheduler(metadata: JSON, spec: JSON) -> bool:
    """By its chart's label, or by the name of its image."""
    template = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    images = [each.get("image", "") for each in template["spec"]["containers"]]
    named = (metadata.get("labels") or {}).get("app.kubernetes.io/name") == _DESCHEDULER
    return not spec.get("suspend") and (named or any(_repository(image) == _DESCHEDULER for image in images))


def _repository(image: str) -> str:
    """The last part of an image's name, without tag and digest."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0]


def _node_pool(item: JSON) -> tuple[str, NodePool]:
    """With Karpenter's defaults for what is not set."""
    disruption = item["spec"].get("disruption") or {}
    blocked = any(
        each.get("nodes") in ("0", "0%")
        and not each.get("schedule")
        and "Underutilized" in each.get("reasons", ("Underutilized",))
        for each in disruption.get("budgets", ())
    )
    policy = disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized")
    return item["metadata"]["name"], NodePool(policy, disruption.get("consolidateAfter", "0s"), blocked)


def _labels(item: JSON) -> tuple[str, dict[str, str]]:
    return item["metadata"]["name"], item["metadata"].get("labels") or {}


def _age(item: JSON) -> tuple[str, str]:
    return item["metadata"].get("creationTimestamp") or "", item["metadata"]["name"]


def _renewed(item: JSON) -> tuple[str, float | None]:
    return item["metadata"]["name"], seconds((item.get("spec") or {}).get("renewTime"))
