"""Flux's kustomize-controller reconciles Ballast and its resources from a git repository while the operator works.

From Git come the kustomization at the top of the repository, two policies and two topologies, and the approvals of
moves, one commit each. Meanwhile sets of executors come and are placed, and an executor is moved again and again. Then:
a change by hand that must count as drift, a policy that is not healthy, and all resources removed from Git.

`python -m benchmarks.gitops --seconds 60` is a short form, for trying.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ballast.kube.kinds import BALANCING_POLICY, SPARK_TOPOLOGY
from benchmarks.reconciled.flux import MANAGER, Flux, flux
from benchmarks.reconciled.scene import TOPOLOGY, Scene, manifest, scene
from benchmarks.report import Aim, Result, machine, write
from tests.charts.kustomization import ROOT
from tests.cluster.controller.process import Replica, release, replica
from tests.faults.invariants import GATED_SECONDS, MOST_WRITES, Witness, watched
from tests.faults.metrics import serving
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

JSON = dict[str, Any]
SECONDS = 240.0
INTERVAL_SECONDS = 5.0
PATIENCE_SECONDS = 90.0
BALLAST, RESOURCES, APPROVALS = "ballast", "resources", "approvals"
_STEP_SECONDS = 0.25
_NONE = Aim(0.0)


@dataclass(frozen=True, slots=True)
class Bench:
    testbed: Testbed
    flux: Flux
    scene: Scene
    witness: Witness

    def run(self, seconds: float) -> list[Result]:
        return [*self._works(seconds), *self._drifts(), *self._health(), *self._prunes()]

    def _works(self, seconds: float) -> Iterator[Result]:
        driver, generations = self.scene.mover(), self._generations()
        before, failed_before = len(self.flux.applied()), len(self.flux.errors())
        started = time.monotonic()
        while time.monotonic() < started + seconds or self._moves_until(started + seconds):
            self.scene.step(driver)
            time.sleep(_STEP_SECONDS)
        applied, failed = self.flux.applied()[before:], self.flux.errors()[failed_before:]
        drift, scene = self.flux.drift(), self.scene
        print("\n".join([*(f"drift: {each}" for each in drift), *failed, f"moves: {scene.ended}"]), flush=True)
        case = f"{time.monotonic() - started:.0f} s of work"
        yield Result(case, "objects applied, over and over", float(sum(each.objects for each in applied)), "1")
        yield Result(case, "times that Flux applied", float(len(applied)), "1", aim=Aim(seconds / 10, at_least=True))
        yield Result(case, "drift: objects changed without a commit", float(len(drift)), "1", aim=_NONE)
        yield Result(case, "fields of Git's that others own, too", float(len(self._fought_over())), "1", aim=_NONE)
        changed = sum(generations[name] != now for name, now in self._generations().items())
        yield Result(case, "specs that have changed", float(changed), "1", aim=_NONE)
        yield Result(case, "reconciles that failed, of health or else", float(len(failed)), "1", aim=_NONE)
        yield Result(case, "sets placed", float(scene.sets), "1")
        yield Result(case, "executors left gated or without a place", float(len(scene.unplaced)), "1", aim=_NONE)
        gated = max(each.seconds for each in self.witness.gated.values())
        yield Result(case, "longest time at a gate", gated, "s", aim=Aim(GATED_SECONDS))
        yield Result(case, "moves approved by a commit", float(len(scene.approved)), "1", aim=Aim(3.0, at_least=True))
        succeeded = sum(each.startswith("Succeeded") for each in scene.ended.values())
        yield Result(case, "of these not succeeded", float(len(scene.approved) - succeeded), "1", aim=_NONE)
        yield Result(case, "from commit to eviction, at most", max(scene.acted.values(), default=0.0), "s")
        yield Result(case, "ended moves that pruning left", float(self._left_moves()), "1", aim=_NONE)

    def _moves_until(self, over: float) -> bool:
        """A move that is under way then has a while to end."""
        return len(self.scene.approved) > len(self.scene.ended) and time.monotonic() < over + PATIENCE_SECONDS

    def _left_moves(self) -> int:
        """Moves that were removed from Git and are still there."""

        def left() -> list[str]:
            there = [move["metadata"]["name"] for move in self.scene.moves()]
            return [name for name in there if name in self.scene.ended]

        end = time.monotonic() + PATIENCE_SECONDS
        while left() and time.monotonic() < end:
            time.sleep(_STEP_SECONDS)
        return len(left())

    def _drifts(self) -> Iterator[Result]:
        """The check above can fail: a change by hand is drift, and Flux corrects it."""
        name, since = self.scene.placing.name, len(self.flux.applied())
        before = self.scene.placing.read(BALANCING_POLICY)["spec"]
        started = time.monotonic()
        self.testbed.kubectl("patch", "bpol", name, "--type=merge", '--patch={"spec": {"interval": "2s"}}')
        self._await(lambda: self.scene.placing.read(BALANCING_POLICY)["spec"] == before, "drift is corrected")
        seconds = time.monotonic() - started
        self._await(lambda: bool(self.flux.drift(since)), "drift is reported")
        case = "a field changed by hand"
        yield Result(case, "drift: objects changed without a commit", float(len(self.flux.drift(since))), "1")
        yield Result(case, "until it is corrected", seconds, "s", aim=Aim(3 * INTERVAL_SECONDS))

    def _health(self) -> Iterator[Result]:
        """The check above can fail: a policy without nodes is not healthy, and Flux says so."""
        spec = {"nodeSelector": {"matchLabels": {"pool": "none"}}}
        file = f"{RESOURCES}/empty.yaml"
        started = time.monotonic()
        self.flux.push("Add a policy without nodes", {file: manifest(BALANCING_POLICY, "empty", spec)})
        self._await(
            lambda: "BalancingPolicy/empty status: 'InProgress'" in "".join(self.flux.errors()), "it is not healthy"
        )
        yield Result("a policy without nodes", "until Flux calls it not healthy", time.monotonic() - started, "s")
        self.flux.push("Remove it", {file: None})
        self._await(lambda: self.flux.ready(RESOURCES)[0], "all is healthy again")

    def _prunes(self) -> Iterator[Result]:
        """Resources go without waiting for the operator, and no executor stays gated."""
        for pool in (self.scene.moving, self.scene.placing):
            pool.executors(3, application="waiting", labels={"ballast.dev/topology": TOPOLOGY})
        started = time.monotonic()
        self.flux.push("Remove all resources", dict.fromkeys(self.scene.resources()))
        self._await(lambda: not self._resources(), "all resources are pruned")
        seconds = time.monotonic() - started
        self._await(lambda: not self._gated(), "nothing is gated")
        case = "resources removed from Git"
        yield Result(case, "until all are gone", seconds, "s", aim=Aim(3 * INTERVAL_SECONDS))
        yield Result(case, "until nothing is gated", time.monotonic() - started, "s", aim=Aim(30.0))
        said = release(self.testbed, "--all")
        print(said.strip())
        yield Result("ballast release --all", "executors left gated", float(len(self._gated())), "1", aim=_NONE)

    def _resources(self) -> list[str]:
        pools = (self.scene.moving.name, self.scene.placing.name)
        found = self.testbed.kubectl("get", "bpol,sparktopologies,executormoves", "-A", "--output=json")
        items = [each["metadata"] for each in json.loads(found)["items"]]
        return [each["name"] for each in items if each.get("namespace", each["name"]) in pools]

    def _gated(self) -> list[str]:
        return [
            pod["metadata"]["name"]
            for pool in (self.scene.moving, self.scene.placing)
            for pod in pool.pods()
            if pool.gated(pod["metadata"]["name"])
        ]

    def _objects(self) -> list[JSON]:
        """All that comes from Git for good."""
        found = self.testbed.kubectl("get", "--show-managed-fields", f"--kustomize={ROOT}", "--output=json")
        documents: list[JSON] = json.loads(found)["items"]
        for pool in (self.scene.moving, self.scene.placing):
            documents += [pool.read(BALANCING_POLICY), pool.read(SPARK_TOPOLOGY, TOPOLOGY)]
        return documents

    def _generations(self) -> Mapping[str, int]:
        own = [each for each in self._objects() if "generation" in each["metadata"]]
        return {f"{each['kind']} {each['metadata']['name']}": each["metadata"]["generation"] for each in own}

    def _fought_over(self) -> list[str]:
        found = []
        for each in self._objects():
            entries = [entry for entry in each["metadata"]["managedFields"] if not entry.get("subresource")]
            ours = {path for entry in entries if entry["manager"] == MANAGER for path in _leaves(entry["fieldsV1"])}
            theirs = {path for entry in entries if entry["manager"] != MANAGER for path in _leaves(entry["fieldsV1"])}
            found += [f"{each['kind']} {each['metadata']['name']} {'.'.join(path)}" for path in sorted(ours & theirs)]
        print("\n".join(found), end="\n" if found else "")
        return found

    def _await(self, condition: Any, what: str) -> None:
        wait_until(
            condition,
            what=what,
            timeout_seconds=PATIENCE_SECONDS,
            explain=lambda: f"{self.flux.ready(RESOURCES)} {self.flux.errors()[-3:]}",
        )


def _leaves(fields: JSON, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in fields.items():
        if value:
            yield from _leaves(value, (*path, key))
        elif key != ".":
            yield (*path, key)


def run(seconds: float) -> list[Result]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        testbed = stack.enter_context(_cluster())
        metrics, found = stack.enter_context(serving()), stack.enter_context(flux(testbed, folder))
        print("flux applies the kustomization", flush=True)
        started = time.monotonic()
        found.push("Install Ballast", _installation())
        found.add(BALLAST, interval_seconds=INTERVAL_SECONDS)
        _await_ready(found, BALLAST)
        installed = time.monotonic() - started
        play = stack.enter_context(scene(testbed, metrics, found))
        replicas = [stack.enter_context(replica(testbed, name, folder)) for name in ("one", "two")]
        for each in replicas:
            each.await_ready()
        kept = {f"{name}/about.yaml": play.about(name) for name in (RESOURCES, APPROVALS)}
        found.push("Describe pools", play.resources() | kept)
        found.add(RESOURCES, interval_seconds=INTERVAL_SECONDS, after=[BALLAST])
        found.add(APPROVALS, interval_seconds=INTERVAL_SECONDS, after=[BALLAST], wait=False)
        _await_ready(found, RESOURCES)
        print("the operator works", flush=True)
        names, most_writes = (play.moving.name, play.placing.name), max(MOST_WRITES, round(seconds))
        witness = stack.enter_context(watched(testbed, *names, most_under_way=1, most_writes=most_writes))
        results = Bench(testbed, found, play, witness).run(seconds)
        _stop(replicas)
        return [Result("installation", "until all is healthy", installed, "s"), *results]


@contextmanager
def _cluster() -> Iterator[Testbed]:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
    try:
        # The Deployment's pods are kwok's, which makes the Deployment healthy; the replicas that work are processes.
        testbed.add_fake_nodes([NodeSpec("system", cpu="8")])
        yield testbed
    finally:
        testbed.down()


def _installation() -> dict[str, str]:
    """The files of the kustomization at the top of the repository."""
    paths = [ROOT / "kustomization.yaml", *(ROOT / "crds").glob("*.yaml"), *(ROOT / "manifests").glob("*.yaml")]
    return {f"{BALLAST}/{path.relative_to(ROOT)}": path.read_text() for path in paths}


def _await_ready(found: Flux, name: str) -> None:
    wait_until(
        lambda: found.ready(name)[0],
        what=f"{name} is healthy",
        timeout_seconds=PATIENCE_SECONDS,
        explain=lambda: f"{found.ready(name)[1]} {found.errors()[-3:]}",
    )


def _stop(replicas: list[Replica]) -> None:
    for each in replicas:
        if code := each.stop():
            raise RuntimeError(f"a replica ended with {code}:\n{each.log.read_text()[-4000:]}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gitops", description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of work (default: {SECONDS:g})")
    before = machine()
    results = run(parser.parse_args().seconds)
    write("gitops", results, before=before)
    return 0


if __name__ == "__main__":
    sys.exit(main())
