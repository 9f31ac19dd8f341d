"""`ballast release`: what it does and says where something can't be written."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ballast.cli import release
from ballast.cli.release import gated
from ballast.kube.actions import Changed, Refused, Released, ReleaseOutcome, Vanished
from ballast.kube.document import micro_text, text
from tests.apiserver import Answer, ApiServer, Asked, Watch
from tests.unit.cli.program import run_in
from tests.unit.kube.builders import CREATED, GATE, executor

JSON = dict[str, Any]
SWITCH: JSON = {"metadata": {"name": "ballast"}, "spec": {"gating": True, "allNamespaces": True}}
CONFLICT = Answer(409, {"message": "the object has been modified"})
INVALID = Answer(422, {"message": "no"})
DENIED = Answer(403, {"message": "admission webhook denied the request"})


def cluster(*pods: JSON) -> ApiServer:
    """No replica leads, the switch is on and these executors are gated, or one is."""
    found = ApiServer()
    found.put("gateswitches", SWITCH)
    found.put("pods", *(pods or [executor(1, gates=[GATE])]))
    return found


def held(server: ApiServer) -> list[str]:
    return [pod["metadata"]["name"] for pod in server.all("pods") if pod["spec"].get("schedulingGates")]


@pytest.mark.parametrize("mode", ["--stale", "--all"])
@pytest.mark.parametrize("answer", [CONFLICT, DENIED], ids=["conflict", "denied"])
def test_gated_executors_are_released_also_when_the_switch_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, answer: Answer
) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    server = cluster()
    server.refusals["PATCH /gateswitches/ballast"] = answer
    ended = run_in(server, tmp_path, "release", mode)
    assert not held(server)
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
    ended = run_in(cluster(), tmp_path, "release", mode)
    assert (ended.code, ended.err) == (0, "")
    assert words in ended.out


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    monkeypatch.setattr(release, "_OTHERS_SECONDS", 0.0)


@pytest.mark.parametrize("refusals", [1, 2], ids=["of a moment", "again"])
@pytest.mark.parametrize("mode", ["--stale", "--all"])
@pytest.mark.usefixtures("without_pauses")
def test_an_executor_is_deleted_only_if_its_release_is_refused_twice(tmp_path: Path, mode: str, refusals: int) -> None:
    server, patches = cluster(executor(1, gates=[GATE], labels={"ballast.dev/topology": "clicks"})), itertools.count()

    def answer(asked: Asked) -> Answer | Watch:
        if asked.method == "PATCH" and asked.place.plural == "pods" and next(patches) < refusals:
            return Answer(400, {"message": 'admission webhook "no.example" denied the request: no'})
        return server.respond(asked)

    server.by = answer
    ended = run_in(server, tmp_path, "release", mode)
    assert (ended.code, held(server), len(server.all("pods"))) == (0, [], 2 - refusals)


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
    fresh = executor(2, gates=[GATE])
    fresh["metadata"]["creationTimestamp"] = text(time.time())
    server = cluster(executor(1, gates=[GATE]), fresh)
    server.put("gateswitches", *others)
    ended = run_in(server, tmp_path, "release", mode, "--name", name)
    assert (ended.code, ended.err) == (0, "")
    assert held(server) == left
    assert ("the Ballast release other acts in this cluster" in ended.out) is bool(left and mode == "--all")


@pytest.mark.usefixtures("without_pauses")
def test_executors_are_released_also_when_it_is_not_known_whether_another_release_acts(tmp_path: Path) -> None:
    server = cluster()
    server.refusals["/gateswitches"] = INVALID
    ended = run_in(server, tmp_path, "release", "--all")
    assert ended.code == 0
    assert "whether another release of Ballast acts in this cluster is not known: " in ended.err
    assert not held(server)


@pytest.mark.parametrize("ahead_seconds", [3600.0, -3600.0])
def test_what_is_stale_is_told_by_the_api_server_s_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead_seconds: float
) -> None:
    """The CronJob runs on any node, whose clock may be wrong."""
    now = time.time()
    server, fresh = cluster(), executor(1, gates=[GATE])
    fresh["metadata"]["creationTimestamp"] = text(now)
    server.put("pods", fresh)
    spec = {"holderIdentity": "one", "renewTime": micro_text(now), "leaseDurationSeconds": 600}
    server.put("leases", {"metadata": {"name": "ballast", "namespace": "analytics"}, "spec": spec})
    here = SimpleNamespace(time=lambda: time.time() + ahead_seconds, monotonic=time.monotonic)
    monkeypatch.setattr(release, "time", here)
    ended = run_in(server, tmp_path, "release", "--stale")
    assert (ended.code, ended.out) == (0, "released 0 of 0 executors\n")
    assert (len(held(server)), server.writes) == (1, [])


@pytest.mark.usefixtures("without_pauses")
def test_executors_are_released_before_anything_that_users_have_written_is_read(tmp_path: Path) -> None:
    """Thousands of templates, or one that can't be read to its end, must not keep executors gated."""
    server, gated_then = cluster(), []

    def answer(asked: Asked) -> Answer | Watch:
        if "driver" in asked.path:
            gated_then.append(len(held(server)))
            return INVALID
        return server.respond(asked)

    server.by = answer
    ended = run_in(server, tmp_path, "release", "--all")
    assert (ended.code, gated_then) == (0, [0])
    assert "applications with the gate in a pod template are not known" in ended.err


def job(*managers: str) -> list[JSON]:
    fields = [*({"manager": name} for name in managers), {"manager": "helmet", "subresource": "status"}]
    return [{"metadata": {"name": "ballast-uninstall", "namespace": "b", "managedFields": fields}}]


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
        ([], False),
    ],
)
def test_as_a_hook_it_acts_only_if_helm_created_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[JSON], *, acts: bool
) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    server = cluster()
    server.put("jobs", *found)
    ended = run_in(server, tmp_path, "release", "--all", "--hook", "ballast-uninstall", "--namespace", "b")
    assert ended.code == 0
    assert (not held(server), bool(server.writes)) == (acts, acts)
    assert ("nothing was done: Helm did not create the Job ballast-uninstall" in ended.out) is not acts


def test_those_that_are_gone_need_no_release() -> None:
    outcomes: dict[str, ReleaseOutcome] = {"a/1": Released(), "a/2": Vanished(), "a/3": Released(already=True)}
    assert not gated(outcomes)


def test_those_still_gated_are_told_of_with_why() -> None:
    refused, changed = Refused("a webhook says no"), Changed("another gate")
    outcomes: dict[str, ReleaseOutcome] = {"a/1": refused, "a/2": Released(), "a/3": changed}
    assert gated(outcomes) == {"a/1": "a webhook says no", "a/3": "another gate"}


def test_of_thousands_that_stay_gated_some_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_PROPAGATION_SECONDS", 0.0)
    server = cluster(*(executor(number, gates=[GATE], namespace="crowd") for number in range(201)))
    refused = Answer(403, {"message": 'admission webhook "no.example" denied the request: ' + "x" * 5000})
    server.by = lambda asked: refused if "/pods/" in asked.path else server.respond(asked)
    ended = run_in(server, tmp_path, "release", "--all")
    assert ended.code == 1
    assert ended.err.count(" is still gated: admission webhook") == 20
    assert "so are 181 more" in ended.err
    assert len(ended.err) < 20_000


@pytest.mark.parametrize(("duration_seconds", "led"), [(600, True), (1, False)])
@pytest.mark.usefixtures("without_pauses")
def test_the_cron_job_looks_for_no_executor_while_an_operator_leads(
    tmp_path: Path, duration_seconds: int, led: bool
) -> None:
    """It lists all pending pods of the cluster otherwise."""
    server = cluster()
    renewed = micro_text(time.time() - 60.0)
    spec = {"holderIdentity": "one", "renewTime": renewed, "leaseDurationSeconds": duration_seconds}
    server.put("leases", {"metadata": {"name": "ballast", "namespace": "analytics"}, "spec": spec})
    ended = run_in(server, tmp_path, "release", "--stale", "--unless-led")
    assert ended.code == 0
    assert ("an operator leads: nothing to do" in ended.out) is led
    assert bool(held(server)) is led
    assert any(asked.place.plural == "pods" for asked in server.asked) is not led


def test_unless_led_goes_with_stale_alone(tmp_path: Path) -> None:
    ended = run_in(cluster(), tmp_path, "release", "--all", "--unless-led")
    assert (ended.code, "it goes with --stale" in ended.err) == (2, True)
