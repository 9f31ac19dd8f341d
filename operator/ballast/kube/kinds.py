"""The kinds of objects that Ballast reads or writes, and their places in the API."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from ballast.api.version import API_VERSION


@dataclass(frozen=True, slots=True)
class Kind:
    api_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL's path; without `name` of the collection, without `namespace` of all namespaces."""
        root = "/api" if "/" not in self.api_version else "/apis"
        parts = [root, self.api_version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name is not None:
            parts.append(quote(name, safe=""))
        if subresource is not None:
            parts.append(subresource)
        return "/".join(parts)


POD = Kind("v1", "Pod", "pods")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUME = Kind("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
EVENT = Kind("events.k8s.io/v1", "Event", "events")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
JOB = Kind("batch/v1", "Job", "jobs")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
DEFINITION = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
CRON_JOB = Kind("batch/v1", "CronJob", "cronjobs")
SELF_ACCESS = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
ACCESS = Kind("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")

SPARK_TOPOLOGY = Kind(API_VERSION, "SparkTopology", "sparktopologies")
BALANCING_POLICY = Kind(API_VERSION, "BalancingPolicy", "balancingpolicies", namespaced=False)
EXECUTOR_MOVE = Kind(API_VERSION, "ExecutorMove", "executormoves")
GATE_SWITCH = Kind(API_VERSION, "GateSwitch", "gateswitches", namespaced=False)
