"""`ballast release`: what it does and says where something can't be written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.cli import release
from ballast.cli.release import gated
from ballast.kube.actions import Changed, Refused, Released, Vanished
from tests.unit.cli.program import Ended, run
from tests.unit.kube.builders import GATE, executor
from tests.unit.kube.scripted import Answer, Asked, kubeconfig, scripted

JSON = dict[str, Any]
SWITCH = {"metadata": {"name": "ballast", "resourceVersion": "1"}, "spec": {"gating": True, "allNamespaces": True}}
CONFLICT = Answer(409, {"message": "the object has been modified"})
DENIED = Answer(403, {"message": "admission webhook denied the request"})


class Cluster:
    """No replica leads, the switch is on and one executor is gated."""

    def __init__(self, switch_write: Answer | None = None) -> None:
        self.switch_write = switch_write or Answer(body=SWITCH)
        self.held = [executor(1, gates=[GATE])]

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.split("?")[0]
        if path.endswith("/leases/ballast"):
            return Answer(404, {"message": "no such lease"})
        if "/gateswitches/ballast" in path:
            return Answer(body=SWITCH) if asked.method == "GET" else self.switch_write
        if asked.method == "PATCH":
            self.held.clear()
            return Answer()
        return Answer(body={"metadata": {}, "items": list(self.held)})


def released(mode: str, cluster: Cluster, folder: Path) -> Ended:
    with scripted() as script:
        script.by = cluster.answer
        return run("release", mode, "--kubeconfig", str(kubeconfig(folder, script.url)))


@pytest.mark.parametrize("mode", ["--stale", "--all"])
@pytest.mark.parametrize("answer", [CONFLICT, DENIED], ids=["conflict", "denied"])
def test_gated_executors_are_released_also_when_the_switch_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, answer: Answer
) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    cluster = Cluster(answer)
    ended = released(mode, cluster, tmp_path)
    assert not cluster.held
    assert ended.code == 1
    assert "released 1 of 1 executors" in ended.out
    assert "the gate switch could not be turned off" in ended.err
    assert answer.body["message"] in ended.err
    assert "switch is off" not in ended.out


@pytest.mark.parametrize(
    ("mode", "words"), [("--stale", "no leader elected: the gate switch is off"), ("--all", "restart the Deployment")]
)
def test_it_says_that_the_switch_is_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, words: str) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    ended = released(mode, Cluster(), tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert words in ended.out


def job(*managers: str) -> Answer:
    fields = [{"manager": name} for name in managers]
    return Answer(body={"metadata": {"managedFields": [*fields, {"manager": "helmet", "subresource": "status"}]}})


@pytest.mark.parametrize(
    ("found", "acts"),
    [
        (job("helm"), True),
        (job("helm-controller", "kueue"), True),
        (job("terraform-provider-helm_v3.0.2"), True),
        (job("kubectl-client-side-apply"), False),
        (job("kubectl"), False),
        (job("kustomize-controller"), False),
        (job(), False),
        (Answer(404, {"message": "no such job"}), False),
    ],
)
def test_as_a_hook_it_acts_only_if_helm_created_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: Answer, *, acts: bool
) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    cluster = Cluster()
    with scripted() as script:
        script.by = lambda asked: found if asked.path.endswith("/jobs/ballast-uninstall") else cluster.answer(asked)
        config = str(kubeconfig(tmp_path, script.url))
        ended = run("release", "--all", "--hook", "ballast-uninstall", "--namespace", "b", "--kubeconfig", config)
    assert ended.code == 0
    assert (not cluster.held, bool(script.writes)) == (acts, acts)
    assert ("nothing was done: Helm did not create the Job ballast-uninstall" in ended.out) is not acts


def test_those_that_are_gone_need_no_release() -> None:
    assert not gated([Released(), Vanished(), Released(already=True)])


def test_those_still_gated_are_counted_by_why() -> None:
    refused = Refused("a webhook says no")
    assert gated([refused, Released(), Changed("another gate"), refused]) == {"a webhook says no": 2, "another gate": 1}
