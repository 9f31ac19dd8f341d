"""Fields of custom resources that operators turn into Spark's settings, and where in their sources they do so.

kubeflow/spark-operator 2.5, its files below internal/. apache/spark-kubernetes-operator 1.0, its files by name.
stackabletech/spark-k8s-operator, its files below rust/operator-binary/src.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto


class Turn(Enum):
    """What a field becomes."""

    SETTING = auto()
    """One setting, or one for each key where its name ends in a dot."""
    LIST = auto()
    """One setting, with commas between the elements."""
    NEITHER = auto()
    """Nothing that Ballast reads."""


@dataclass(frozen=True, slots=True)
class Field:
    path: str
    """Below spec. A path covers what is below it."""
    setting: str = ""
    source: str = ""
    turn: Turn = Turn.SETTING


_SUBMISSION = "controller/sparkapplication/submission.go"
_CONNECT = "controller/sparkconnect/options.go"
_WEBHOOK = "webhook/sparkpod_defaulter.go"
_WORKER = "SparkAppSubmissionWorker.java"
_K8S = "spark.kubernetes"


def _end(end: str, role: str) -> list[Field]:
    """The driver's fields, or the executors'."""
    return [
        Field(f"{end}.cores", f"spark.{role}.cores", _SUBMISSION),
        Field(f"{end}.coreRequest", f"{_K8S}.{role}.request.cores", _SUBMISSION),
        Field(f"{end}.coreLimit", f"{_K8S}.{role}.limit.cores", _SUBMISSION),
        Field(f"{end}.memory", f"spark.{role}.memory", _SUBMISSION),
        Field(f"{end}.memoryOverhead", f"spark.{role}.memoryOverhead", _SUBMISSION),
        Field(f"{end}.javaOptions", f"spark.{role}.extraJavaOptions", _SUBMISSION),
        Field(f"{end}.image", f"{_K8S}.{role}.container.image", _SUBMISSION),
        Field(f"{end}.labels", f"{_K8S}.{role}.label.", _SUBMISSION),
        Field(f"{end}.annotations", f"{_K8S}.{role}.annotation.", _SUBMISSION),
        Field(f"{end}.envVars", f"{_K8S}.driverEnv." if role == "driver" else "spark.executorEnv.", _SUBMISSION),
        Field(f"{end}.serviceAccount", f"{_K8S}.authenticate.{role}.serviceAccountName", _SUBMISSION),
    ]


_DYNAMIC = "spark.dynamicAllocation"
_ALLOCATION = (
    ("initialExecutors", f"{_DYNAMIC}.initialExecutors"),
    ("minExecutors", f"{_DYNAMIC}.minExecutors"),
    ("maxExecutors", f"{_DYNAMIC}.maxExecutors"),
    ("shuffleTrackingEnabled", f"{_DYNAMIC}.shuffleTracking.enabled"),
    ("shuffleTrackingTimeout", f"{_DYNAMIC}.shuffleTracking.timeout"),
)


def _allocation(source: str) -> list[Field]:
    """Read only where `enabled` is true."""
    return [Field(f"dynamicAllocation.{name}", setting, source) for name, setting in _ALLOCATION]


def _neither(*paths: str, source: str = "") -> list[Field]:
    return [Field(path, source=source, turn=Turn.NEITHER) for path in paths]


_POD = (
    "gpu",
    "configMaps",
    "secrets",
    "env",
    "envFrom",
    "envSecretKeyRefs",
    "volumeMounts",
    "affinity",
    "tolerations",
    "podSecurityContext",
    "securityContext",
    "sidecars",
    "initContainers",
    "hostNetwork",
    "nodeSelector",
    "dnsConfig",
    "hostAliases",
    "shareProcessNamespace",
    "lifecycle",
    "ports",
    "priorityClassName",
    "memoryLimit",
)
"""Of a pod, and of no consequence for what doctor checks."""

KUBEFLOW: Sequence[Field] = (
    Field("sparkConf", "spark.", _SUBMISSION),
    Field("hadoopConf", "spark.hadoop.", _SUBMISSION),
    Field("nodeSelector", f"{_K8S}.node.selector.", _SUBMISSION),
    Field("memoryOverheadFactor", f"{_K8S}.memoryOverheadFactor", _SUBMISSION),
    Field("image", f"{_K8S}.container.image", _SUBMISSION),
    Field("mode", "spark.submit.deployMode", _SUBMISSION),
    Field("deps.jars", "spark.jars", _SUBMISSION, Turn.LIST),
    Field("deps.packages", "spark.jars.packages", _SUBMISSION, Turn.LIST),
    Field("deps.excludePackages", "spark.jars.excludes", _SUBMISSION, Turn.LIST),
    Field("deps.repositories", "spark.jars.repositories", _SUBMISSION, Turn.LIST),
    Field("deps.pyFiles", "spark.submit.pyFiles", _SUBMISSION, Turn.LIST),
    Field("deps.files", "spark.files", _SUBMISSION, Turn.LIST),
    Field("deps.archives", "spark.archives", _SUBMISSION, Turn.LIST),
    *_end("driver", "driver"),
    Field("driver.kubernetesMaster", f"{_K8S}.driver.master", _SUBMISSION),
    *_end("executor", "executor"),
    Field("executor.instances", "spark.executor.instances", _SUBMISSION),
    Field("executor.deleteOnTermination", f"{_K8S}.executor.deleteOnTermination", _SUBMISSION),
    *_allocation(_SUBMISSION),
    *_neither("dynamicAllocation.enabled", "batchSchedulerOptions", source=_SUBMISSION),
    *_neither("monitoring", source="controller/sparkapplication/monitoring_config.go"),
    *_neither("batchScheduler", "executor.schedulerName", "driver.schedulerName", source=_WEBHOOK),
    *_neither(
        "executor.template",
        "driver.template",
        "executor.terminationGracePeriodSeconds",
        source=f"{_SUBMISSION}, {_WEBHOOK}",
    ),
    *_neither(*[f"{end}.{name}" for end in ("driver", "executor") for name in _POD], source=_WEBHOOK),
    *_neither(
        "driver.podName", "driver.serviceAnnotations", "driver.serviceLabels", "driver.terminationGracePeriodSeconds"
    ),
    *_neither("type", "sparkVersion", "mainClass", "mainApplicationFile", "arguments", "proxyUser", "pythonVersion"),
    *_neither("imagePullPolicy", "imagePullSecrets", "volumes", "restartPolicy", "failureRetries", "retryInterval"),
    *_neither("timeToLiveSeconds", "sparkUIOptions", "driverIngressOptions", "driverPodDisruptionBudget", "suspend"),
    *_neither("hadoopConfigMap"),
)
"""In the order in which the operator writes --conf: later ones override earlier ones. sparkConfigMap is passed over."""

CONNECT: Sequence[Field] = (
    Field("sparkConf", "spark.", _CONNECT),
    Field("hadoopConf", "spark.hadoop.", _CONNECT),
    Field("image", f"{_K8S}.container.image", _CONNECT),
    Field("server.cores", "spark.driver.cores", _CONNECT),
    Field("server.memory", "spark.driver.memory", _CONNECT),
    Field("executor.instances", "spark.executor.instances", _CONNECT),
    Field("executor.cores", "spark.executor.cores", _CONNECT),
    Field("executor.memory", "spark.executor.memory", _CONNECT),
    *_allocation(_CONNECT),
    *_neither("dynamicAllocation.enabled", "executor.template", source=_CONNECT),
    *_neither("server.template", "server.service", source="controller/sparkconnect/reconciler.go"),
    *_neither("sparkVersion"),
)

APACHE: Sequence[Field] = (
    Field("sparkConf", "spark.", _WORKER),
    Field("jars", "spark.jars", _WORKER),
    Field("pyFiles", "spark.submit.pyFiles", _WORKER),
    *_neither("mainClass", "driverArgs", "runtimeVersions", "deploymentMode", "sparkRFiles", "files", "proxyUser"),
    *_neither("driverSpec.podTemplateSpec", "executorSpec.podTemplateSpec", source="SparkAppResourceSpecFactory.java"),
    # The instances only say how many executors the operator waits for: AppRunningStep.java.
    *_neither("applicationTolerations", "driverServiceIngressList", "driverHttpRouteList", "driverGrpcRouteList"),
    *_neither("configMapSpecs"),
)
"""sparkConf wins over the fields: the operator sets what is missing."""

STACKABLE: Sequence[Field] = (
    Field("sparkConf", "spark."),
    Field("executor.replicas", "spark.executor.instances"),
    Field("deps.packages", "spark.jars.packages", turn=Turn.LIST),
    Field("deps.repositories", "spark.jars.repositories", turn=Turn.LIST),
    *_neither("executor.podOverrides", "driver.podOverrides", "sparkImage", "mode", "mainClass", "args"),
    *_neither("mainApplicationFile", "deps.excludePackages", "deps.requirements", "image", "version", "volumes"),
    *_neither("env", "s3connection", "logFileDirectory", "vectorAggregatorConfigMapName", "clusterOperation"),
    *_neither("job", "driver.config", "driver.volumeMounts", "executor.config"),
)
STACKABLE_SETS: Mapping[str, str] = {
    "spark.executor.cores": "1",
    "spark.executor.memory": "640m",
    "spark.kubernetes.executor.limit.cores": "1",
    "spark.kubernetes.memoryOverheadFactor": "0.0",
    "spark.metrics.conf.*.sink.prometheusServlet.class": "org.apache.spark.metrics.sink.PrometheusServlet",
    "spark.metrics.conf.*.sink.prometheusServlet.path": "/metrics/prometheus",
    "spark.sql.streaming.metricsEnabled": "true",
    "spark.ui.prometheus.enabled": "true",
}
"""spark-k8s-operator: crd/mod.rs writes them into the command, crd/roles.rs has one core and 1Gi by default."""
