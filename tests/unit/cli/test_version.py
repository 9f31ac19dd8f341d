"""`ballast version`: what runs here and there."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from tests.apiserver import Answer, ApiServer, kubeconfig, serving
from tests.unit.cli.program import Ended, run

OWN = version("ballast-operator")


MANIFEST = Path(__file__).parents[3] / "manifests" / "ballast.yaml"


def a_deployment(image: str = "registry.example/ballast:9.9.9") -> dict[str, Any]:
    """As the chart makes it."""
    documents = yaml.safe_load_all(MANIFEST.read_text())
    (found,) = [each for each in documents if each and each["kind"] == "Deployment"]
    found["spec"]["template"]["spec"]["containers"][0]["image"] = image
    deployment: dict[str, Any] = {**found, "status": {"readyReplicas": 1}}
    return deployment


def a_definition(plural: str, group: str = "ballast.dev") -> dict[str, Any]:
    versions = [{"name": "v1alpha1", "served": True}, {"name": "v0", "served": False}]
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": {"plural": plural}, "versions": versions},
    }


def asked(folder: Path, server: ApiServer, *options: str) -> Ended:
    with serving(server):
        return run("version", "--kubeconfig", str(kubeconfig(folder, server.url)), *options)


def a_cluster() -> ApiServer:
    server = ApiServer()
    server.put("deployments", a_deployment(f"registry.example/ballast:{OWN}"))
    server.put("customresourcedefinitions", a_definition("sparktopologies"), a_definition("others", "example.org"))
    return server


def test_it_shows_the_client_the_operator_and_the_kinds_that_are_served(tmp_path: Path) -> None:
    ended = asked(tmp_path, a_cluster())
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        f"client    {OWN}",
        f"operator  {OWN} in ballast-system/ballast: registry.example/ballast:{OWN}, 1 of 2 replicas ready",
        "crds      sparktopologies v1alpha1",
    ]


def test_programs_get_the_same_as_fields(tmp_path: Path) -> None:
    found = json.loads(asked(tmp_path, a_cluster(), "-o", "json").out)
    assert found["client"] == {"version": OWN}
    assert [(each["version"], each["ready"], each["replicas"]) for each in found["operators"]] == [(OWN, 1, 2)]
    assert found["crds"] == {"sparktopologies": ["v1alpha1"]}
    assert asked(tmp_path, a_cluster(), "-o", "yaml").out.startswith("client:\n  version:")


def test_an_operator_of_another_version_is_said_to_differ(tmp_path: Path) -> None:
    server = ApiServer()
    server.put("deployments", a_deployment())
    out = asked(tmp_path, server).out
    assert "operator  9.9.9 in ballast-system/ballast" in out
    assert "it differs from the client" in out


def test_an_image_by_its_digest_alone_has_the_version_of_its_charts_label(tmp_path: Path) -> None:
    labeled, bare = ApiServer(), ApiServer()
    deployment = a_deployment("registry.example:5000/ballast@sha256:0123")
    labeled.put("deployments", deployment)
    labels = {"app.kubernetes.io/name": "ballast"}
    bare.put("deployments", {**deployment, "metadata": {**deployment["metadata"], "labels": labels}})
    versions = [
        json.loads(asked(tmp_path, each, "-o", "json").out)["operators"][0]["version"] for each in (labeled, bare)
    ]
    assert versions == [deployment["metadata"]["labels"]["app.kubernetes.io/version"], None]


def test_other_deployments_of_the_chart_are_no_operators(tmp_path: Path) -> None:
    server, other = ApiServer(), a_deployment()
    del other["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
    server.put("deployments", other)
    assert "operator  none" in asked(tmp_path, server).out


def test_a_cluster_that_can_t_be_reached_leaves_the_client_s_version(tmp_path: Path) -> None:
    ended = run("version", "--kubeconfig", str(kubeconfig(tmp_path, "http://127.0.0.1:1")), "--request-timeout", "1s")
    assert ended.code == 0
    assert ended.out.startswith(f"client    {OWN}\noperator  not known: ")


def test_what_may_not_be_read_is_not_known_and_the_rest_is(tmp_path: Path) -> None:
    server = a_cluster()
    server.refusals["customresourcedefinitions"] = Answer(403, {"message": "no", "reason": "Forbidden"})
    found = json.loads(asked(tmp_path, server, "-o", "json").out)
    assert found["crds"] is None
    assert found["problems"]
    assert len(found["operators"]) == 1


def test_with_client_no_server_is_asked(tmp_path: Path) -> None:
    server = a_cluster()
    assert asked(tmp_path, server, "--client").out == f"client    {OWN}\n"
    assert server.asked == []
