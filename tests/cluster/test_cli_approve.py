"""`approve` on the real API server, and the program as a plugin of the real kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ballast.cli.jsonpath import JSONPath
from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.kinds import EXECUTOR_MOVE
from tests.cluster.crds.server import Server
from tests.testbed.testbed import Testbed
from tests.unit.cli.program import Ended, run

pytestmark = pytest.mark.cluster

NAMESPACE = "cli-approve"


@dataclass(frozen=True, slots=True)
class Moves:
    client: Client
    kubeconfig: Path

    def create(self, name: str, *, phase: str | None = "Proposed") -> None:
        """A move to approve; `phase` None: nobody has looked at it yet."""
        body: dict[str, Any] = {
            "apiVersion": EXECUTOR_MOVE.api_version,
            "kind": EXECUTOR_MOVE.kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "topologyName": "clicks",
                "executor": {"pod": "exec-1", "uid": "u"},
                "sourceNodeName": "n1",
                "targetNodeName": "n2",
            },
        }
        self.client.create(EXECUTOR_MOVE, body, namespace=NAMESPACE)
        if phase is not None:
            self.client.patch(
                EXECUTOR_MOVE, name, {"status": {"phase": phase}}, namespace=NAMESPACE, subresource="status"
            )

    def approved(self, name: str) -> bool:
        return bool(self.client.get(EXECUTOR_MOVE, name, namespace=NAMESPACE)["spec"].get("approved"))

    def approve(self, *arguments: str) -> Ended:
        return run("approve", *arguments, "-n", NAMESPACE, "--kubeconfig", str(self.kubeconfig))


@pytest.fixture
def moves(control_plane: Testbed, crd_server: Server) -> Iterator[Moves]:
    assert crd_server.url == control_plane.url
    control_plane.create_namespace(NAMESPACE)
    client = Client(Connection.from_kubeconfig(control_plane.kubeconfig))
    yield Moves(client, control_plane.kubeconfig)
    control_plane.kubectl("delete", "executormoves", "--all", f"--namespace={NAMESPACE}")
    client.close()


def test_a_proposed_move_is_approved_and_twice_is_once(moves: Moves) -> None:
    moves.create("m1")
    moves.create("m2", phase=None)
    first, again = moves.approve("m1", "executormove/m2"), moves.approve("m1")
    assert first.out == "m1 approved: exec-1 moves from n1 to n2\nm2 approved: exec-1 moves from n1 to n2\n"
    assert again.out == "m1 approved (was already): exec-1 moves from n1 to n2\n"
    assert moves.approved("m1")
    assert moves.approved("m2")


def test_a_name_that_no_move_has_is_told_with_what_helps(moves: Moves) -> None:
    ended = moves.approve("m9")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"Error: {NAMESPACE}/m9: there is no such move: `kubectl get emove -A` lists them")


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["Refused", "Expired", "Failed", "Succeeded"])
def test_a_move_that_has_ended_can_t_be_approved(moves: Moves, phase: str) -> None:
    moves.create("m1", phase=phase)
    ended = moves.approve("m1")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"Error: {NAMESPACE}/m1 is {phase}: only a proposed move can be approved\n"
    assert not moves.approved("m1")


def test_none_is_approved_when_one_of_them_can_t_be(moves: Moves) -> None:
    moves.create("m1")
    ended = moves.approve("m1", "m2")
    assert ended.code == 1
    assert "m2" in ended.err
    assert not moves.approved("m1")


def test_all_are_those_that_wait(moves: Moves) -> None:
    assert moves.approve("--all").out == f"no move waits for approval in namespace {NAMESPACE}\n"
    moves.create("m1")
    moves.create("m2")
    moves.create("m3", phase="Expired")
    document = json.loads(moves.approve("--all", "-o", "json").out)
    assert [each["name"] for each in document["approved"]] == ["m1", "m2"]
    assert not moves.approved("m3")


def test_all_of_all_namespaces_are_named_as_kubectl_reads_them(moves: Moves) -> None:
    moves.create("m1")
    ended = run("approve", "--all", "-A", "-o", "name", "--kubeconfig", str(moves.kubeconfig))
    assert "executormove.ballast.dev/m1" in ended.out.splitlines()
    assert moves.approved("m1")


def kubectl(testbed: Testbed, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The real kubectl, which finds `kubectl-ballast` on the PATH."""
    folder = Path(sys.executable).parent
    environ = {**os.environ, **testbed.kubectl_as(testbed.kubeconfig).environment()}
    environ["PATH"] = f"{folder}{os.pathsep}{environ['PATH']}"
    return subprocess.run(
        [str(testbed.binary("kubectl")), *arguments], env=environ, capture_output=True, text=True, check=False
    )


def test_kubectl_finds_the_plugin_and_hands_its_cluster_on(control_plane: Testbed, moves: Moves) -> None:
    moves.create("m1")
    assert "kubectl-ballast" in kubectl(control_plane, "plugin", "list").stdout
    done = kubectl(control_plane, "ballast", "approve", "m1", "-n", NAMESPACE, "-o", "yaml")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["approved"][0]["name"] == "m1"
    assert moves.approved("m1")


@pytest.mark.parametrize(
    "template",
    [
        "{.items[*].metadata.name}",
        "{.kind}: {.items[0].spec}",
        '{range .items[*]}{.metadata.name}{"\\t"}{.status.phase}{"\\n"}{end}',
        '{.items[?(@.metadata.name=="kube-system")].status.phase}',
        "{.items[-1:].metadata.labels}",
        r"{.items[*].metadata.labels.kubernetes\.io/metadata\.name}",
        "{.items[0:2]['metadata.name', 'kind']}",
        "{..phase}",
    ],
)
def test_a_template_prints_what_the_real_kubectl_prints(control_plane: Testbed, template: str) -> None:
    get = ("get", "namespaces", "kube-system", "default", "kube-public", "-o")
    theirs, document = kubectl(control_plane, *get, f"jsonpath={template}"), kubectl(control_plane, *get, "json")
    assert theirs.returncode == 0, theirs.stderr
    assert JSONPath.parse(template).text(json.loads(document.stdout)) == theirs.stdout


@pytest.mark.soak
@pytest.mark.parametrize(("arguments", "code"), [(["status", "-h"], 0), (["approve", "m9"], 1), (["nonsense"], 2)])
def test_kubectl_passes_exit_codes_on(control_plane: Testbed, moves: Moves, arguments: list[str], code: int) -> None:
    done = kubectl(control_plane, "ballast", *arguments, *(["-n", NAMESPACE] if code == 1 else []))
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert ("kubectl ballast" in done.stdout + done.stderr) or code == 1


@pytest.mark.soak
def test_kubectl_completes_the_plugin_s_commands_and_options(control_plane: Testbed) -> None:
    commands = kubectl(control_plane, "__complete", "ballast", "ap")
    assert commands.stdout.splitlines() == ["approve\tApprove proposed moves.", ":4"]
    options = kubectl(control_plane, "__complete", "ballast", "approve", "--namesp")
    assert options.stdout.splitlines()[0].startswith("--namespace\t")
