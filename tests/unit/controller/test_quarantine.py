"""What one namespace's objects bring about keeps no executor of another from being placed."""

from __future__ import annotations

import base64
import json
import logging
import sys
import threading
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api import BalancingPolicy
from ballast.controller.cluster_view import ClusterView
from ballast.controller.quarantine import FIRST_SECONDS, MOST_TRIES, TOGETHER_SECONDS, Quarantine
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from ballast.model import ExecutorUsage, NodeUsage
from ballast.planner.strategy_state import USAGE
from ballast.prometheus import Reading
from tests.apiserver import ApiServer, serving
from tests.unit.controller.stage import NOW
from tests.unit.controller.test_reconciler import TEAMS, Prompt, Time, operating, policy, released, server_of_teams
from tests.unit.kube.builders import executor

HOSTILE, VICTIM = TEAMS
ALL = [f"team-{number:02}" for number in range(12)]


class Failing:
    """Fails with any of these namespaces; returns those that it was made with."""

    def __init__(self, *hostile: str, of: Collection[str] = tuple(ALL)) -> None:
        self.hostile, self.of, self.tries = set(hostile), set(of), 0

    def __call__(self, left_out: frozenset[str]) -> set[str]:
        self.tries += 1
        followed = self.of - left_out
        if self.hostile & followed:
            raise OverflowError(", ".join(sorted(self.hostile & followed)))
        return followed


@given(st.sets(st.sampled_from(ALL), max_size=4))
def test_exactly_the_namespaces_are_left_out_with_which_it_fails(hostile: set[str]) -> None:
    decide = Failing(*hostile)
    found, left_out = Quarantine(lambda: 0.0).decide(decide, lambda: ALL)
    assert found == set(ALL) - hostile
    assert left_out == {namespace: f"OverflowError: {namespace}" for namespace in hostile}


def test_what_fails_without_any_namespace_too_is_raised() -> None:
    def failing(left_out: frozenset[str]) -> None:
        raise ZeroDivisionError(len(left_out))

    with pytest.raises(ZeroDivisionError):
        Quarantine(lambda: 0.0).decide(failing, lambda: ALL)


def test_a_namespace_is_tried_again_later_and_later() -> None:
    time, decide = Time(0.0), Failing("team-03")
    quarantine = Quarantine(time)
    quarantine.decide(decide, lambda: ALL)
    for seconds in (FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS):
        decide.tries = 0
        time.now += seconds - 1.0
        quarantine.decide(decide, lambda: ALL)
        assert decide.tries == 1
        time.now += 1.0
        quarantine.decide(decide, lambda: ALL)
        assert decide.tries > 2
    decide.hostile.clear()
    time.now += 8 * FIRST_SECONDS
    assert quarantine.decide(decide, lambda: ALL) == (set(ALL), {})


def test_of_two_with_which_it_fails_only_together_each_is_followed_in_turn() -> None:
    """One of them may have brought it about, and must not have the other one left out for good."""
    time, tries = Time(0.0), list[frozenset[str]]()

    def decide(left_out: frozenset[str]) -> set[str]:
        tries.append(left_out)
        followed = set(ALL) - left_out
        if {"team-02", "team-07"} <= followed:
            raise OverflowError
        return followed

    quarantine = Quarantine(time)
    for out in ("team-07", "team-02", "team-07"):
        assert quarantine.decide(decide, lambda: ALL)[0] == set(ALL) - {out}
        time.now += TOGETHER_SECONDS - 1.0
        tries.clear()
        assert quarantine.decide(decide, lambda: ALL) == (set(ALL) - {out}, {out: "it comes in a later pass"})
        assert tries == [frozenset({out})]
        time.now += 1.0


def test_with_many_such_namespaces_a_pass_tries_only_so_often_and_others_are_followed_soon() -> None:
    of = [f"team-{number:03}" for number in range(128)]
    hostile = of[::8]
    decide, quarantine = Failing(*hostile, of=of), Quarantine(lambda: 0.0)
    rounds, found = 0, set[str]()
    while found != set(of) - set(hostile):
        decide.tries = 0
        found, left_out = quarantine.decide(decide, lambda: of)
        rounds += 1
        assert decide.tries <= 2 * MOST_TRIES + 2
        assert found == set(of) - left_out.keys()
    assert rounds < 8


class _Hot(Prompt):
    """The hostile user's node is hot, the other one cold, and executors use what makes them worth moving."""

    def read(self, policy: BalancingPolicy, nodes: list[NodeFacts], executors: list[Pod], *, now: float) -> Reading:
        usage = {each.name: NodeUsage(cpu_ratio=0.95 if HOSTILE in each.name else 0.1) for each in nodes}
        uses = {pod.key: ExecutorUsage(cpu_cores=0.5) for pod in executors}
        return replace(super().read(policy, nodes, executors, now=now), nodes=usage, executors=uses)


def _is_about(value: object, depth: int = 0) -> bool:
    """Whether it is an object of the hostile user's namespace, or has one."""
    if isinstance(value, str):
        return value == HOSTILE or value.startswith(f"{HOSTILE}/")
    if getattr(value, "namespace", None) == HOSTILE or getattr(value, "topology", None) == f"{HOSTILE}/t":
        return True
    if depth == 2:
        return False
    parts = ("metadata", "resource", "executor", "topology", "pod", "move", "state", "orders", "case")
    return any(_is_about(getattr(value, part, None), depth + 1) for part in parts)


Place = tuple[str, int, str]
"""File, line and name of a function."""


@dataclass
class Planted:
    """Raises in one function, whenever it is called with an object of the hostile user's; or notes which are."""

    at: Place | None = None
    places: set[Place] = field(default_factory=set)
    raised: int = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not _decides(code):
            return
        place = code.co_filename, code.co_firstlineno, code.co_name
        known = place in self.places if self.at is None else place != self.at
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if known or not any(_is_about(frame.f_locals.get(name)) for name in arguments):
            return
        if self.at is None:
            self.places.add(place)
        else:
            self.raised += 1
            raise OverflowError("planted")

    @contextmanager
    def in_place(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Python takes a profile function away that has raised: each try of a pass puts it back."""
        without = ClusterView.without

        def tried(view: ClusterView, namespaces: frozenset[str]) -> ClusterView:
            sys.setprofile(self)
            return without(view, namespaces)

        monkeypatch.setattr(ClusterView, "without", tried)
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            monkeypatch.undo()


DECIDING = ("planner", "placement", "shedding", "moves", "grouping", "sizing", "report")
"""Packages, and modules of the controller, that work with what users write."""
OBSERVING = ("observe", "membership", "ends", "surroundings", "anti_affinity", "topology_findings", "move_facts")


NAMING = ("key_of", "key", "namespace_of")
"""Functions that only put the names together that every object has."""


def _decides(code: CodeType) -> bool:
    if code.co_name in NAMING or code.co_name.startswith("<"):
        return False
    _, _, inside = code.co_filename.partition("/operator/ballast/")
    package, _, module = inside.partition("/")
    return package in DECIDING or inside.startswith("controller/status/") or module.removesuffix(".py") in OBSERVING


def _scene(found: ApiServer) -> None:
    """One policy for both, each with a topology, and executors that run."""
    shared = policy("pool")
    shared["spec"] |= {"nodeSelector": {}, "namespaceSelector": {}}
    sizing = {
        "recordsPerSecond": "1000",
        "machine": {"count": 4, "cores": 4},
        "stages": [{"component": "ingest", "latency": "1s"}],
    }
    components = [{"name": "ingest", "workload": "Streaming"}, {"name": "state"}]
    found.lists["balancingpolicies"] = [shared]
    found.lists["sparktopologies"] = [_topology(team, {"components": components, "sizing": sizing}) for team in TEAMS]
    for team, move in zip(TEAMS, found.lists["executormoves"], strict=True):
        move["spec"]["policyName"] = "pool"
        running = [executor(number, application=team, namespace=team, node=f"node-{team}") for number in (2, 3)]
        gated = [pod for pod in found.lists["pods"] if pod["metadata"]["namespace"] == team]
        for pod in (*running, *gated):
            pod["metadata"]["labels"] |= {"ballast.dev/topology": "t", "ballast.dev/component": "ingest"}
        found.lists["pods"] += running


def _topology(team: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "t", "namespace": team, "uid": f"{team}/t", "resourceVersion": "1", "generation": 1}
    return {"metadata": metadata, "spec": spec}


def _placed(planted: Planted, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, bool], ApiServer]:
    """What two reconciles release, six seconds apart, and whether with a place."""
    with serving(server_of_teams()) as script:
        found = script
        _scene(found)
        clock = Time(NOW)
        with operating(script, folder, clock=clock, metrics=_Hot()) as reconciler, planted.in_place(monkeypatch):
            for _ in range(2):
                reconciler.run()
                clock.now += 6.0
        return released(script), script


def remembered(status: dict[str, Any]) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(status["state"][USAGE])))


STRAY = json.dumps({"noise": {"passes": -1, "nodes": [["node-ads", 1.0, 1.0, 0.0]]}}).encode()
STATE = {"state": {USAGE: base64.b64encode(zlib.compress(STRAY)).decode()}}


def test_what_no_pass_can_compute_with_in_a_status_keeps_nothing_from_being_placed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(server_of_teams()) as script:
        found = script
        _scene(found)
        found.lists["balancingpolicies"][0]["status"] = STATE
        with operating(script, tmp_path, clock=Time(NOW), metrics=_Hot()) as reconciler:
            reconciler.run()
        assert "forgets what its earlier passes remembered: its pass fails" in caplog.text
        assert released(script)[f"{VICTIM}-exec-1"]
        written = [asked.body["status"] for asked in script.writes if "balancingpolicies" in asked.path]
        assert remembered(written[-1])["noise"]["passes"] >= 0


@pytest.mark.soak
def test_whatever_fails_with_one_users_objects_others_are_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error is planted in each function that is called with an object of one namespace, whichever it is."""
    logging.disable(logging.CRITICAL)
    try:
        noting = Planted()
        assert _placed(noting, tmp_path, monkeypatch)[0][f"{VICTIM}-exec-1"]
        assert len(noting.places) > 100
        unplaced = []
        for place in sorted(noting.places):
            planted = Planted(place)
            try:
                found, _ = _placed(planted, tmp_path, monkeypatch)
            except OverflowError:
                found = {}
            if not found.get(f"{VICTIM}-exec-1"):
                unplaced.append(place)
        assert unplaced == []
    finally:
        logging.disable(logging.NOTSET)


def test_who_is_left_out_is_released_and_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noting = Planted()
    _placed(noting, tmp_path, monkeypatch)
    (place,) = (each for each in noting.places if each[2] == "stands_aside")
    found, script = _placed(Planted(place), tmp_path, monkeypatch)
    assert found == {f"{HOSTILE}-exec-1": False, f"{VICTIM}-exec-1": True}
    words = f"passes leave out {HOSTILE}, with whose objects they fail (OverflowError: planted)"
    status, message = _verdict(script, "/balancingpolicies/pool/status", "NamespacesFollowed")
    assert (status, message.split(";")[0]) == ("False", words)
    topology = f"/namespaces/{HOSTILE}/sparktopologies/t/status"
    assert _verdict(script, topology, "Ready") == ("False", "OverflowError: planted")
    (note,) = (
        asked.body["note"]
        for asked in script.writes
        if asked.path.split("?")[0].endswith("/events") and asked.body["regarding"]["name"] == f"{HOSTILE}-exec-1"
    )
    assert note == "the pass of policy pool failed with it; conditions of the policy say why"


def _verdict(script: ApiServer, path: str, condition: str) -> tuple[str, str]:
    """Status and message of the condition, as written last."""
    found = [asked.body["status"] for asked in script.writes if asked.path.split("?")[0].endswith(path)]
    (verdict,) = (each for each in found[-1]["conditions"] if each["type"] == condition)
    return verdict["status"], verdict["message"]
