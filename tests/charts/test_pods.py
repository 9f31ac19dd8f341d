"""The pods of the chart: what they run, with which arguments and which rights on their node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import typer
from typer.main import get_command

from ballast.cli.release import release
from ballast.cli.run import run
from tests.charts.rendering import Manifests, Renderer

KINDS = ["Deployment", "CronJob", "Job"]


def arguments(template: dict[str, Any], subcommand: str) -> list[str]:
    """What comes after the subcommand, as the kubelet would fill it in."""
    (container,) = template["spec"]["containers"]
    first, *others = container["args"]
    assert first == subcommand
    return [text.replace("$(POD_NAME)", "ballast-1").replace("$(POD_NAMESPACE)", "operators") for text in others]


def parsed(command: Callable[..., Any], given: list[str]) -> dict[str, Any]:
    """The options as the program reads them; an unknown one is an error."""
    program = typer.Typer()
    program.command()(command)
    parsed = get_command(program).make_context("ballast", given).params
    return {name: getattr(value, "value", value) for name, value in parsed.items()}


def test_the_operator_is_run_with_options_that_it_has(render: Renderer) -> None:
    found = render(
        {
            "lease": {"durationSeconds": 9},
            "health": {"port": 8081},
            "metrics": {"port": 9999},
            "logging": {"format": "text", "level": "debug"},
        }
    )
    options = parsed(run, arguments(found.pod("Deployment"), "run"))
    expected = {
        "name": "ballast",
        "namespace": "operators",
        "identity": "ballast-1",
        "lease_duration": "9s",
        "health_port": 8081,
        "metrics_port": 9999,
        "log_format": "text",
        "log_level": "debug",
        "kubeconfig": None,
    }
    assert expected.items() <= options.items()


@pytest.mark.parametrize(("kind", "mode"), [("CronJob", "stale"), ("Job", "everybody")])
def test_the_jobs_release_with_options_that_the_program_has(defaults: Manifests, kind: str, mode: str) -> None:
    options = parsed(release, arguments(defaults.pod(kind), "release"))
    assert (options["name"], options["namespace"]) == ("ballast", None), "its pod's: kustomize moves pods, not options"
    assert [name for name in ("stale", "everybody") if options[name]] == [mode]
    assert options["hook"] == (defaults.of("Job")[0]["metadata"]["name"] if kind == "Job" else None)


def test_every_variable_in_the_arguments_is_in_the_environment(defaults: Manifests) -> None:
    (container,) = defaults.pod("Deployment")["spec"]["containers"]
    fields = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"]}
    assert fields == {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}


@pytest.mark.parametrize("kind", KINDS)
def test_no_pod_has_more_rights_on_its_node_than_it_needs(defaults: Manifests, kind: str) -> None:
    spec = defaults.pod(kind)["spec"]
    pod = spec["securityContext"]
    assert pod["runAsNonRoot"] is True
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert {"hostNetwork", "hostPID", "hostIPC"}.isdisjoint(spec)


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_runs_the_same_image(render: Renderer, kind: str) -> None:
    def image(values: dict[str, Any] | None = None) -> str:
        found: str = render(values).pod(kind)["spec"]["containers"][0]["image"]
        return found

    assert image() == "ballast:0.1.0"
    assert image({"image": {"repository": "registry.example.com/ballast", "tag": "1.2.3"}}).endswith("/ballast:1.2.3")


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_can_pull_its_image_and_be_scheduled(render: Renderer, kind: str) -> None:
    """Also the jobs: without them held executors would stay held on such a cluster."""
    values = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
    }
    spec = render(values).pod(kind)["spec"]
    assert {name: spec.get(name) for name in values} == values


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_asks_for_memory_and_has_a_limit(defaults: Manifests, kind: str) -> None:
    (container,) = defaults.pod(kind)["spec"]["containers"]
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]


def test_two_replicas_are_the_default_and_one_account_runs_them(defaults: Manifests) -> None:
    assert defaults.deployment["spec"]["replicas"] == 2
    assert defaults.pod("Deployment")["spec"]["serviceAccountName"] == "ballast"
    for kind in ("CronJob", "Job"):
        assert defaults.pod(kind)["spec"]["serviceAccountName"] == "ballast-release"


def test_only_the_operators_pods_are_behind_the_deployment_and_the_service(defaults: Manifests) -> None:
    (service,) = defaults.of("Service")
    selectors = [service["spec"]["selector"], defaults.deployment["spec"]["selector"]["matchLabels"]]
    for kind, template in defaults.pods():
        labels = template["metadata"]["labels"]
        assert [selector.items() <= labels.items() for selector in selectors] == [kind == "Deployment"] * 2, kind


def test_only_the_namespaces_that_scrape_reach_the_metrics_and_anything_the_probes(render: Renderer) -> None:
    found = render({"metrics": {"scrapeNamespaces": ["monitoring", "mimir"]}})
    (policy,) = found.of("NetworkPolicy")
    (service,) = found.of("Service")
    assert policy["spec"]["podSelector"] == {"matchLabels": service["spec"]["selector"]}
    assert policy["spec"]["policyTypes"] == ["Ingress"]
    probes, metrics = policy["spec"]["ingress"]
    assert probes == {"ports": [{"port": "health", "protocol": "TCP"}]}
    assert metrics["ports"] == [{"port": "metrics", "protocol": "TCP"}]
    (chosen,) = metrics["from"]
    assert chosen == {
        "namespaceSelector": {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["monitoring", "mimir"]}
            ]
        }
    }
    assert not render({"metrics": {"scrapeNamespaces": []}}).of("NetworkPolicy")


def test_probes_and_the_service_reach_the_ports_that_are_served(render: Renderer) -> None:
    found = render({"health": {"port": 8081}, "metrics": {"port": 9999}})
    (container,) = found.pod("Deployment")["spec"]["containers"]
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == {"health": 8081, "metrics": 9999}
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "health"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "health"}
    (service,) = found.of("Service")
    assert service["spec"]["ports"] == [{"name": "metrics", "port": 9999, "targetPort": "metrics", "protocol": "TCP"}]


def test_a_replica_that_is_slow_to_start_is_not_taken_for_a_dead_one(defaults: Manifests) -> None:
    (container,) = defaults.pod("Deployment")["spec"]["containers"]
    startup, liveness = container["startupProbe"], container["livenessProbe"]
    assert startup["httpGet"] == liveness["httpGet"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 120
    assert liveness["periodSeconds"] * liveness["failureThreshold"] <= 30


def test_what_is_added_by_values_arrives(render: Renderer) -> None:
    variable = {"name": "HTTPS_PROXY", "value": "http://proxy:3128"}
    values = {
        "env": [variable],
        "podLabels": {"team": "data"},
        "podAnnotations": {"example.com/audit": "yes"},
        "affinity": {"nodeAffinity": {}},
        "serviceAccount": {"annotations": {"example.com/role": "reader"}},
    }
    found = render(values)
    template = found.pod("Deployment")
    assert variable in template["spec"]["containers"][0]["env"]
    assert template["metadata"]["labels"]["team"] == "data"
    assert template["metadata"]["annotations"] == {"example.com/audit": "yes"}
    assert template["spec"]["affinity"] == {"nodeAffinity": {}}
    assert found.named("ServiceAccount", "ballast")["metadata"]["annotations"] == {"example.com/role": "reader"}


def test_stale_gates_are_looked_after_every_five_minutes_one_job_at_a_time(defaults: Manifests) -> None:
    (cron,) = defaults.of("CronJob")
    assert cron["spec"]["schedule"] == "*/5 * * * *"
    assert cron["spec"]["concurrencyPolicy"] == "Replace"
    assert cron["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 300
    assert "--unless-led" in defaults.pod("CronJob")["spec"]["containers"][0]["args"]


def test_the_job_for_stale_gates_runs_where_the_operator_does_and_may_be_left_out(render: Renderer) -> None:
    term = {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}
    of_nodes = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    where = {"nodeSelector": {"pool": "system"}, "tolerations": [{"key": "system"}], "affinity": of_nodes}
    spec = render(where).pod("CronJob")["spec"]
    assert {key: spec[key] for key in where} == where
    assert render({"staleRelease": {"enabled": False}}).of("CronJob") == []


@pytest.mark.parametrize("kind", ["CronJob", "Job"])
def test_a_job_that_releases_executors_may_run_next_to_the_operator(render: Renderer, kind: str) -> None:
    """One node for each replica, and no other: the uninstall hook would never run."""
    term = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "ballast"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    found = render({"affinity": apart})
    assert found.pod("Deployment")["spec"]["affinity"] == apart
    assert "affinity" not in found.pod(kind)["spec"]


def test_a_drain_takes_one_replica_at_a_time_and_none_that_is_not_ready_blocks_it(
    defaults: Manifests, render: Renderer
) -> None:
    (budget,) = defaults.of("PodDisruptionBudget")
    labels = budget["spec"]["selector"]["matchLabels"]
    assert labels.items() <= defaults.pod("Deployment")["metadata"]["labels"].items()
    assert "minAvailable" not in budget["spec"]
    assert (budget["spec"]["maxUnavailable"], budget["spec"]["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert render({"podDisruptionBudget": {"enabled": False}}).of("PodDisruptionBudget") == []


def test_no_replica_may_run_by_the_charts_own_value(render: Renderer) -> None:
    """Scaled to zero by kubectl, the next upgrade of Helm 4 would start the operator again."""
    assert render({"replicas": 0}).deployment["spec"]["replicas"] == 0


def test_replicas_are_spread_where_that_is_possible(defaults: Manifests, render: Renderer) -> None:
    spread = defaults.pod("Deployment")["spec"]["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {"kubernetes.io/hostname", "topology.kubernetes.io/zone"}
    assert {each["whenUnsatisfiable"] for each in spread} == {"ScheduleAnyway"}, "an update on one node must end"
    own = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    found = render({"topologySpreadConstraints": own}).pod("Deployment")
    assert found["spec"]["topologySpreadConstraints"] == own


def test_the_uninstall_job_runs_before_anything_is_deleted(defaults: Manifests) -> None:
    (job,) = defaults.of("Job")
    annotations = job["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-delete"
    assert annotations["helm.sh/hook-delete-policy"] == "before-hook-creation,hook-succeeded"
