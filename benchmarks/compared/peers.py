"""The peers: what users write into pods today so that executors are near each other, and Ballast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ballast.kube import names
from benchmarks.compared import kueue
from benchmarks.compared.case import BROKERS, Case
from benchmarks.compared.pool import FilledPool
from benchmarks.load.pods import JSON
from tests.testbed.nodes import RACK_LABEL, ZONE_LABEL

MOST_ALLOCATED = "most-allocated"
SCHEDULER_PROFILES: Sequence[JSON] = (
    {"schedulerName": "default-scheduler"},
    {
        "schedulerName": MOST_ALLOCATED,
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {
                        "type": "MostAllocated",
                        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
                    }
                },
            }
        ],
    },
)
GROUP_GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"
"""Of 1.37, and off there by default: PodGroups, and that they may ask for one place."""
GROUP_API = "scheduling.k8s.io/v1beta1"
PART_OF = "app.kubernetes.io/part-of"
_FULL_WEIGHT = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """For which executors a peer is asked what their pods' specs should say."""

    pool: FilledPool
    case: Case
    run: str
    """Which of all runs it is; part of the names of applications."""
    application: str
    taken: Counter[str]
    """Executors by node, of those that are there."""

    def metadata(self, peer: Peer, *, size: int) -> Mapping[str, Mapping[str, str]]:
        """Labels and annotations of so many executors that are created at once."""
        if peer.queued_by:
            return kueue.grouped(self.spark_application, size=size, label=peer.queued_by)
        return {"labels": self._labels(peer)}

    def _labels(self, peer: Peer) -> dict[str, str]:
        """Ballast's only where it is to place them, for it gates what has them."""
        if not self.case.flows:
            return {}
        if peer.gated:
            return {names.TOPOLOGY: self.topology, names.COMPONENT: self.application}
        return {PART_OF: self.topology}

    @property
    def topology(self) -> str:
        return f"clicks-{self.run}"

    @property
    def spark_application(self) -> str:
        return f"{self.application}-{self.run}"


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    spec: Callable[[Asked], JSON]
    """What it adds to the specs of executors."""
    communicating: bool | None = None
    """Whether it is for cases with flows alone, or for the others alone; None: for all."""
    gated: bool = False
    """Ballast's admission policy is in force."""
    grouped_by: str = ""
    """The node label of whose places one takes the whole application, by kube-scheduler's own PodGroups; none if
    empty."""
    queued_by: str = ""
    """The node label in one of whose places Kueue should admit the whole application; not through Kueue if empty."""

    def takes_part(self, case: Case) -> bool:
        if self.queued_by and case.changes:
            return False  # the size of Kueue's pod groups is fixed
        return self.communicating is None or self.communicating is bool(case.flows)

    @property
    def namespace(self) -> str:
        return "peer-" + "".join(letter if letter.isalnum() else "-" for letter in self.name.lower())


def _nothing(_: Asked) -> JSON:
    return {}


def _to_itself(asked: Asked) -> JSON:
    return _affinity([{names.SPARK_APPLICATION: asked.spark_application, names.SPARK_ROLE: "executor"}])


def _to_all(asked: Asked) -> JSON:
    own = {names.SPARK_APPLICATION: asked.spark_application, names.SPARK_ROLE: "executor"}
    return _affinity([own, {PART_OF: asked.topology}], brokers=True)


def _affinity(labels: Sequence[Mapping[str, str]], *, brokers: bool = False) -> JSON:
    terms: list[JSON] = [{"labelSelector": {"matchLabels": dict(each)}} for each in labels]
    if brokers:
        terms.append({"labelSelector": {"matchLabels": {"app": BROKERS}}, "namespaces": [BROKERS]})
    wishes = [
        {"weight": _FULL_WEIGHT, "podAffinityTerm": {**term, "topologyKey": key}}
        for term in terms
        for key in (ZONE_LABEL, RACK_LABEL)
    ]
    return {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}}


def _in_a_random_zone(asked: Asked) -> JSON:
    """Applications that communicate are one deployment, and get one zone."""
    shared = asked.case.name if asked.case.flows else asked.application
    return {"nodeSelector": {ZONE_LABEL: asked.pool.random_zone(shared)}}


def _in_the_emptiest_zone(asked: Asked) -> JSON:
    return {"nodeSelector": {ZONE_LABEL: asked.pool.emptiest_zone(asked.taken)}}


def _packed(_: Asked) -> JSON:
    return {"schedulerName": MOST_ALLOCATED}


OURS = Peer("Ballast", _nothing, gated=True)
PEERS: Sequence[Peer] = (
    OURS,
    Peer("kube-scheduler", _nothing),
    Peer("podAffinity to itself", _to_itself),
    Peer("podAffinity, topology and brokers", _to_all, communicating=True),
    Peer("one zone, random", _in_a_random_zone),
    Peer("one zone, emptiest", _in_the_emptiest_zone),
    Peer("MostAllocated", _packed),
    Peer("in-tree TAS, rack", _nothing, grouped_by=RACK_LABEL),
    Peer("in-tree TAS, zone", _nothing, grouped_by=ZONE_LABEL),
    Peer("Kueue TAS", _nothing, queued_by=RACK_LABEL),
)
