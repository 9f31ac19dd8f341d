"""The four acts: kube-scheduler alone, Ballast's placement, a move off a hot node, and the records compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from examples.demo import manifests
from examples.demo.figures import Figures
from examples.demo.findings import WARMUP_SECONDS, Durations, Findings, Move, Played, Trail
from examples.demo.installation import await_gating, install
from examples.demo.pool import POOL_LABEL, SYSTEM, TOLERATIONS, Spread, pool_nodes, spread
from examples.demo.screen import Screen
from examples.demo.streaming.application import Job
from examples.demo.streaming.batches import Batch, quantile_seconds
from examples.demo.streaming.records import Comparison, Stream
from examples.demo.streaming.running import RunningJob
from examples.demo.watch import Watch
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

EXECUTORS = 6
RECORDS_PER_SECOND = 200
HASHES_PER_RECORD = 60
TRIGGER = "3 seconds"
"""Most of a small batch's work is its own: on a slow machine, one every two seconds takes a core."""
NOISE_CORES = 0.45
CALM_SCORE = 55.0
_CALM_SECONDS = 120.0
_LOOK_SECONDS = 20.0
"""How long the job runs with kube-scheduler's placement."""
_WARM_BATCHES = 8
_QUIET_SECONDS = 25.0
_AFTER_SECONDS = 20.0
_DECISION_SECONDS = 120.0
_MOVE_SECONDS = 260.0
_ENDED = ("Succeeded", "Failed", "Expired", "Refused")
_MARKS = {"Leaving": "executor leaves", "Settling": "replacement runs"}

Json = dict[str, Any]


class UnfinishedMoveError(TestbedError):
    """The move ended before its replacement ran."""


@dataclass(slots=True)
class Play:
    """Everything that the acts share. `folder` holds the jobs' data while they run."""

    testbed: Testbed
    screen: Screen
    watch: Watch
    figures: Figures
    folder: Path
    stack: ExitStack
    trail: Trail = field(default_factory=Trail)

    def mark(self, text: str) -> float:
        now = time.time()
        self.trail.mark(now, text)
        return now

    def job(self, name: str) -> Job:
        return Job(
            name=name,
            namespace=manifests.NAMESPACE,
            folder=self.folder / name,
            executors=EXECUTORS,
            stream=Stream(records_per_second=RECORDS_PER_SECOND),
            rounds=HASHES_PER_RECORD,
            trigger=TRIGGER,
            # As many tasks as executors: the slowest executor sets the pace, as it does in larger jobs.
            partitions=EXECUTORS,
            driver_node_selector={POOL_LABEL: SYSTEM},
        )

    def run(self, job: Job) -> RunningJob:
        """The job, fed and past its first batches; ended with the play at the latest."""
        running = RunningJob.submit(self.testbed, job)
        self.stack.callback(running.source.halt)
        self.watch.job = running
        running.await_executors()
        self.screen.say(f"{EXECUTORS} executors run; records flow at {job.stream.records_per_second} a second")
        running.feed()
        running.await_batches(_WARM_BATCHES)
        return running

    def show(self, found: Spread) -> None:
        where = ", ".join(f"{node} ×{count}" for node, count in found.per_node.items())
        self.screen.say(f"executors on {where}")
        self.screen.say(
            f"of their shuffle {found.cross_zone_ratio:.0%} crosses zones and {found.cross_rack_ratio:.0%} racks"
        )


def play(testbed: Testbed, screen: Screen, *, watch: Watch, figures: Figures, folder: Path) -> Played:
    """All four acts; raises TestbedError when one of them does not come to its end. `folder`: for the jobs' data."""
    with ExitStack() as stack:
        acts = Play(testbed, screen, watch, figures, folder, stack)
        testbed.create_namespace(manifests.NAMESPACE)
        testbed.create_namespace(manifests.BROKERS)
        default, first = by_default(acts)
        running, placed = by_ballast(acts)
        move, quiet_at, noise_at = off_the_hot_node(acts, placed)
        after = running_spread(running)
        until = time.time()
        batches = running.batches()
        durations = Durations.around(move, batches, quiet_at=quiet_at, noise_at=noise_at, until=until)
        _say_durations(acts, durations)
        records = compared(acts, running, first=first)
        findings = Findings(
            default=default,
            default_records=first,
            ballast=placed,
            move=move,
            durations=durations,
            records=records,
            busiest=watch.busiest,
        )
        scores = figures.history(quiet_at, until)
        return Played(findings, after, acts.trail, scores, batches, quiet_at, until)


def running_spread(running: RunningJob) -> Spread:
    return spread([each.node for each in running.running_executors() if each.node], pool_nodes())


def by_default(acts: Play) -> tuple[Spread, Comparison]:
    """(a) The job as kube-scheduler alone places it."""
    acts.screen.title("(a) kube-scheduler alone")
    acts.testbed.apply(manifests.broker("large-b1-1"))
    running = acts.run(acts.job("plain"))
    found = running_spread(running)
    acts.show(found)
    time.sleep(_LOOK_SECONDS)
    _say_batches(acts, running.batches()[_WARM_BATCHES:], words="batches took")
    records = running.finish()
    acts.screen.say(f"{records.source} records written, {records.sink} in the sink")
    return found, records


def by_ballast(acts: Play) -> tuple[RunningJob, Spread]:
    """(b) Ballast installed, and the same job under it."""
    acts.screen.title("(b) the same job under Ballast")
    install(acts.testbed, node_selector={POOL_LABEL: SYSTEM}, tolerations=TOLERATIONS)
    acts.screen.say("installed by helm; its pods are ready")
    acts.testbed.apply(manifests.topology(EXECUTORS), manifests.policy(acts.testbed.prometheus_url, levelling=False))
    await_gating(acts.testbed, manifests.NAMESPACE, labels=manifests.EXECUTOR_LABELS)
    running = acts.run(replace(acts.job("placed"), executor_labels=manifests.EXECUTOR_LABELS))
    found = running_spread(running)
    acts.show(found)
    _await_calm(acts)
    return running, found


def _await_calm(acts: Play) -> None:
    """Until the JVMs have compiled what they run: before, every node that hosts is hot."""

    def calm() -> bool:
        scores = acts.figures.scores()
        return bool(scores) and max(scores.values()) < CALM_SCORE

    wait_until(
        calm,
        what=f"all nodes are below {CALM_SCORE:g}",
        timeout_seconds=_CALM_SECONDS,
        poll_seconds=1.0,
        explain=lambda: str(acts.figures.scores()),
    )


def off_the_hot_node(acts: Play, placed: Spread) -> tuple[Move, float, float]:
    """(c) A noisy neighbour, and what Ballast does about it. With the times when levelling and noise began."""
    acts.screen.title("(c) a noisy neighbour on the node that hosts the most")
    policy = manifests.policy(acts.testbed.prometheus_url, levelling=True)
    acts.screen.say("the policy levels now; its settings, shorter than one would choose in production:")
    for line in manifests.shown(policy["spec"]):
        acts.screen.say(f"    {line}")
    acts.testbed.apply(policy)
    quiet_at = acts.mark("levelling on")
    acts.watch.count(scores=True)
    time.sleep(_QUIET_SECONDS)
    node = _busiest(placed)
    acts.testbed.apply(manifests.noise(node, NOISE_CORES))
    acts.watch.noisy = node
    noise_at = acts.mark("noise")
    acts.screen.say(f"a neighbour on {node} burns {NOISE_CORES:g} cores")
    move = _followed(acts)
    acts.screen.say("the application goes on with its new executor")
    time.sleep(_AFTER_SECONDS)
    acts.watch.count(scores=False)
    return move, quiet_at, noise_at


def _busiest(placed: Spread) -> str:
    """The node that hosts the most; of several, one that has a neighbour in its rack to take over from it."""
    most = max(placed.per_node.values())
    free = {spec.rack for spec in pool_nodes() if spec.name not in placed.per_node}
    candidates = [spec for spec in pool_nodes() if placed.per_node.get(spec.name) == most]
    return max(candidates, key=lambda spec: spec.rack in free).name


def _followed(acts: Play) -> Move:
    """The move from its decision to its end, told as it goes."""
    _tell_decision(acts, _awaited(acts, bool, what="a move is decided", timeout_seconds=_DECISION_SECONDS))
    told = ""

    def has_ended(document: Json) -> bool:
        nonlocal told
        told = _tell_phase(acts, document, told=told)
        return told in _ENDED

    move = _finished(_awaited(acts, has_ended, what="the move has ended", timeout_seconds=_MOVE_SECONDS))
    _tell_end(acts, move)
    return move


def _finished(document: Json) -> Move:
    try:
        return Move.of(document)
    except KeyError as error:
        name, status = document["metadata"]["name"], document["status"]
        raise UnfinishedMoveError(
            f"the move {name} ended {status['phase']} before a replacement ran: {status.get('message', '')}"
        ) from error


def _tell_decision(acts: Play, document: Json) -> None:
    spec = document["spec"]
    reason, predicted = spec["reason"], spec["predicted"]
    hits, scores = reason["hits"], reason["scores"]
    acts.watch.move = f"{spec['executor']['pod']}: {spec['from']} → {spec['to']}"
    acts.screen.say(
        f"decided after {hits.get('low', 0)} low and {hits.get('high', 0)} high hits: {spec['executor']['pod']} "
        f"from {spec['from']} to {spec['to']}"
    )
    acts.screen.say(
        f"predicted: {spec['from']} {scores['from']:.0f} → {predicted['hotAfter']:.0f}, "
        f"{spec['to']} {scores['to']:.0f} → {predicted['coldAfter']:.0f}; "
        f"traffic {predicted.get('localityDelta', 0):+.0%} dearer"
    )


def _tell_phase(acts: Play, document: Json, *, told: str) -> str:
    status = document.get("status", {})
    phase = str(status.get("phase", ""))
    if phase != told and phase not in ("", "Proposed", "Approved", *_ENDED):
        if phase in _MARKS:
            acts.mark(_MARKS[phase])
        replacement = status.get("replacement", {})
        landed = f": {replacement['pod']} runs on {replacement.get('node', '?')}" if phase == "Settling" else ""
        acts.screen.say(f"{phase.lower()}{landed}")
    return phase or told


def _tell_end(acts: Play, move: Move) -> None:
    acts.mark("judged")
    acts.screen.say(f"{move.phase}: {move.message}")
    acts.screen.say(
        f"it left in {move.seconds_to_leave:.1f} s, its replacement ran {move.seconds_to_replace:.1f} s later "
        f"and counts after another {WARMUP_SECONDS:.0f} s"
    )


def _awaited(acts: Play, holds: Callable[[Json], bool], *, what: str, timeout_seconds: float) -> Json:
    def current() -> Json | None:
        found = _first_move(acts)
        return found if found is not None and holds(found) else None

    def explain() -> str:
        return acts.testbed.kubectl("get", "bpol,move", "--all-namespaces", "--output=yaml")

    found = wait_until(current, what=what, timeout_seconds=timeout_seconds, poll_seconds=0.5, explain=explain)
    assert found is not None  # noqa: S101 -- wait_until returns what is true
    return found


def _first_move(acts: Play) -> Json | None:
    path = f"/apis/ballast.dev/v1alpha1/namespaces/{manifests.NAMESPACE}/executormoves"
    items = acts.testbed.api.get(path)["items"]
    return min(items, key=lambda item: str(item["metadata"]["creationTimestamp"]), default=None)


def compared(acts: Play, running: RunningJob, *, first: Comparison) -> Comparison:
    """(d) Both jobs' records, one by one."""
    acts.screen.title("(d) every record, counted in the source and found in the sink")
    records = running.finish()
    for name, each in (("under kube-scheduler", first), ("under Ballast, through the move", records)):
        acts.screen.say(
            f"{name}: {each.source} written, {each.sink} in the sink, {each.lost} lost, "
            f"{each.duplicated} duplicated, {each.altered} altered"
        )
    return records


def _say_durations(acts: Play, durations: Durations) -> None:
    for when, count, middle, high, longest in durations.table():
        if middle is not None:
            acts.screen.say(
                f"{when}: {count} batches, {middle:.2f} s at the median, {high:.2f} s at the 95th percentile, "
                f"{longest:.2f} s at the longest"
            )


def _say_batches(acts: Play, batches: list[Batch], *, words: str) -> None:
    middle, high = quantile_seconds(batches, 0.5), quantile_seconds(batches, 0.95)
    if middle is not None and high is not None:
        acts.screen.say(f"{words} {middle:.2f} s at the median, {high:.2f} s at the 95th percentile")
