"""`ballast release`: what it does and says where something can't be written."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ballast.cli import release
from ballast.cli.release import gated
from ballast.kube.actions import Changed, Refused, Released, ReleaseOutcome, Vanished
from ballast.kube.document import micro_text, text
from tests.apiserver import Answer, Asked, kubeconfig, scripted
from tests.unit.cli.program import Ended, run
from tests.unit.kube.builders import CREATED, GATE, executor

JSON = dict[str, Any]
SWITCH = {"metadata": {"name": "ballast", "resourceVersion": "1"}, "spec": {"gating": True, "allNamespaces": True}}
CONFLICT = Answer(409, {"message": "the object has been modified"})
INVALID = Answer(422, {"message": "no"})
DENIED = Answer(403, {"message": "admission webhook denied the request"})


class Cluster:
    """No replica leads, the switch is on and one executor is gated."""

    def __init__(self, switch_write: Answer | None = None, *, others: Sequence[JSON] = ()) -> None:
        self.switch_write, self.others = switch_write or Answer(body=SWITCH), others
        self.held = [executor(1, gates=[GATE])]

    def answer(self, asked: Asked) -> Answer:
        path = asked.path.split("?")[0]
        if "/leases/" in path:
            return Answer(404, {"message": "no such lease"})
        if path.endswith("/gateswitches"):
            return Answer(body={"metadata": {}, "items": [SWITCH, *self.others]})
        if "/gateswitches/" in path:
            return Answer(body=SWITCH) if asked.method == "GET" else self.switch_write
        if asked.method == "PATCH":
            self.held = [pod for pod in self.held if pod["metadata"]["name"] != path.rsplit("/", 1)[-1]]
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


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    monkeypatch.setattr(release, "_OTHERS_SECONDS", 0.0)


@pytest.mark.parametrize("refusals", [1, 2], ids=["of a moment", "again"])
@pytest.mark.usefixtures("without_pauses")
def test_an_executor_is_deleted_only_if_its_release_is_refused_twice(tmp_path: Path, refusals: int) -> None:
    cluster, patches = Cluster(), itertools.count()
    pod = executor(1, gates=[GATE], labels={"ballast.dev/topology": "clicks"})
    cluster.held = [pod]

    def answer(asked: Asked) -> Answer:
        if "/pods/spark-1-exec-1" in asked.path:
            if asked.method == "GET":
                return Answer(body=pod)
            if asked.method == "PATCH" and next(patches) < refusals:
                return Answer(400, {"message": 'admission webhook "no.example" denied the request: no'})
        return cluster.answer(asked)

    with scripted() as script:
        script.by = answer
        ended = run("release", "--all", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    deleted = [asked for asked in script.writes if asked.method == "DELETE"]
    assert (ended.code, len(deleted)) == (0, refusals - 1)


OTHER = {**SWITCH, "metadata": {"name": "other", "creationTimestamp": CREATED}, "status": {"reason": "Leading"}}


@pytest.mark.parametrize(
    ("others", "name", "left"),
    [([], "ballast", []), ([OTHER], "ballast", ["spark-1-exec-2"]), ([OTHER], "other", [])],
    ids=["alone", "next to another release", "the other release"],
)
@pytest.mark.parametrize("mode", ["--stale", "--all"])
@pytest.mark.usefixtures("without_pauses")
def test_executors_are_left_to_another_release_that_acts_unless_it_leaves_them_gated(
    tmp_path: Path, mode: str, others: list[JSON], name: str, left: list[str]
) -> None:
    cluster = Cluster(others=others)
    fresh = executor(2, gates=[GATE])
    fresh["metadata"]["creationTimestamp"] = text(time.time())
    cluster.held.append(fresh)
    with scripted() as script:
        script.by = cluster.answer
        ended = run("release", mode, "--name", name, "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert (ended.code, ended.err) == (0, "")
    assert [pod["metadata"]["name"] for pod in cluster.held] == left
    assert ("the Ballast release other acts in this cluster" in ended.out) is bool(left and mode == "--all")


@pytest.mark.usefixtures("without_pauses")
def test_executors_are_released_also_when_it_is_not_known_whether_another_release_acts(tmp_path: Path) -> None:
    cluster = Cluster()
    with scripted() as script:
        script.by = lambda asked: INVALID if "/gateswitches?" in asked.path else cluster.answer(asked)
        ended = run("release", "--all", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert ended.code == 0
    assert "whether another release of Ballast acts in this cluster is not known: " in ended.err
    assert not cluster.held


@pytest.mark.parametrize("ahead_seconds", [3600.0, -3600.0])
def test_what_is_stale_is_told_by_the_api_server_s_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_seconds: float
) -> None:
    """The CronJob runs on any node, whose clock may be wrong."""
    now = time.time()
    cluster = Cluster()
    cluster.held[0]["metadata"]["creationTimestamp"] = text(now)
    lease = {"spec": {"holderIdentity": "one", "renewTime": micro_text(now), "leaseDurationSeconds": 15}}

    def answer(asked: Asked) -> Answer:
        if asked.path == "/version":
            return Answer(headers={"Content-Type": "application/json"})
        return Answer(body=lease) if "/leases/" in asked.path else cluster.answer(asked)

    here = SimpleNamespace(time=lambda: time.time() + ahead_seconds, monotonic=time.monotonic)
    monkeypatch.setattr(release, "time", here)
    with scripted() as script:
        script.by = answer
        ended = run("release", "--stale", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert (ended.code, ended.out) == (0, "released 0 of 0 executors\n")
    assert (len(cluster.held), script.writes) == (1, [])


@pytest.mark.usefixtures("without_pauses")
def test_executors_are_released_before_anything_that_users_have_written_is_read(tmp_path: Path) -> None:
    """Thousands of templates, or one that can't be read to its end, must not keep executors gated."""
    cluster, gated_then = Cluster(), []

    def answer(asked: Asked) -> Answer:
        if "driver" in asked.path:
            gated_then.append(len(cluster.held))
            return INVALID
        return cluster.answer(asked)

    with scripted() as script:
        script.by = answer
        ended = run("release", "--all", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert (ended.code, gated_then) == (0, [0])
    assert "applications with the gate in a pod template are not known" in ended.err


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
    outcomes: dict[str, ReleaseOutcome] = {"a/1": Released(), "a/2": Vanished(), "a/3": Released(already=True)}
    assert not gated(outcomes)


def test_those_still_gated_are_told_of_with_why() -> None:
    refused, changed = Refused("a webhook says no"), Changed("another gate")
    outcomes: dict[str, ReleaseOutcome] = {"a/1": refused, "a/2": Released(), "a/3": changed}
    assert gated(outcomes) == {"a/1": "a webhook says no", "a/3": "another gate"}


def test_of_thousands_that_one_user_keeps_gated_some_are_named_and_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    cluster = Cluster()
    cluster.held = [executor(number, gates=[GATE], namespace="crowd") for number in range(200)]
    cluster.held += [executor(999, gates=[GATE], namespace="other")]
    refused = Answer(403, {"message": 'admission webhook "no.example" denied the request: ' + "x" * 5000})
    with scripted() as script:
        script.by = lambda asked: refused if "/pods/" in asked.path else cluster.answer(asked)
        ended = run("release", "--all", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert ended.code == 1
    assert "other/spark-1-exec-999 is still gated: admission webhook" in ended.err
    assert ended.err.count("crowd/") == 19
    assert "so are 181 more" in ended.err
    assert len(ended.err) < 20_000
