"""The four acts: kube-scheduler alone, Ballast's placement, a move off a hot node, and the records compared."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from examples.demo import manifests
from examples.demo.figures import Figures
from examples.demo.findings import Durations, Findings, Move, Placed, Played, Trail
from examples.demo.following import Follower
from examples.demo.installation import await_gating, install
from examples.demo.pool import POOL_LABEL, SYSTEM, TOLERATIONS, Spread, cores_of, pool_nodes, spread
from examples.demo.screen import Screen
from examples.demo.streaming.application import Job
from examples.demo.streaming.batches import between, quantile_seconds
from examples.demo.streaming.records import Comparison, Stream
from examples.demo.streaming.running import RunningJob
from examples.demo.watch import Watch
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

EXECUTORS = 6
STREAM = Stream(records_per_second=200, padding=2_000)
HASHES_PER_RECORD = 60
TRIGGER = "4 seconds"
"""Most of a small batch's work is its own: the longer between two of them, the less the machine has to do."""
NOISE_RATIO = 0.65
"""Of the node's own cores, what the neighbor burns."""
CALM_SCORE = 55.0
_CALM_SECONDS = 300.0
_WARM_BATCHES = 6
_LOOK_BATCHES = 8
"""How many batches of a placement are compared."""
_NOISY_BATCHES = 5
"""So many next to the noise, before the policy levels."""
_AFTER_BATCHES = 5


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

    def job(self, name: str) -> Job:
        return Job(
            name=name,
            namespace=manifests.NAMESPACE,
            folder=self.folder / name,
            executors=EXECUTORS,
            stream=STREAM,
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
        self._await_calm()
        return running

    def _await_calm(self) -> None:
        """Until the JVMs have compiled what they run: before, every node that hosts is hot."""
        wait_until(
            lambda: max(self.figures.latest().values(), default=100.0) < CALM_SCORE,
            what=f"all nodes are below {CALM_SCORE:g}",
            timeout_seconds=_CALM_SECONDS,
            poll_seconds=1.0,
            explain=lambda: str(self.figures.latest()),
        )

    def look(self, running: RunningJob) -> Placed:
        """The job as it is placed, for some batches."""
        self.watch.count(scores=True)
        began, before = time.time(), self.testbed.crossed()
        running.await_batches(_LOOK_BATCHES)
        crossed, until = self.testbed.crossed().since(before), time.time()
        self.watch.count(scores=False)
        batches = [batch for batch in running.batches() if batch.ended_at >= began and batch.started_at < until]
        found = Placed(running_spread(running), batches, crossed)
        self._tell(found)
        return found

    def _tell(self, found: Placed) -> None:
        where = ", ".join(f"{node} ×{count}" for node, count in found.spread.per_node.items())
        self.screen.say(f"executors on {where}")
        self.screen.say(
            f"of their shuffle {found.spread.cross_zone_ratio:.0%} crosses zones and "
            f"{found.spread.cross_rack_ratio:.0%} racks; measured with the driver's traffic: "
            f"{found.zone_bytes_per_record:,.0f} bytes a record across zones, "
            f"{found.rack_bytes_per_record:,.0f} across racks"
        )
        middle, high = found.median_seconds, quantile_seconds(found.batches, 0.95)
        if middle is not None and high is not None:
            self.screen.say(f"batches took {middle:.2f} s at the median, {high:.2f} s at the 95th percentile")


def play(testbed: Testbed, screen: Screen, *, watch: Watch, figures: Figures, folder: Path, seed: int) -> Played:
    """All four acts; raises TestbedError when one of them does not come to its end. `folder`: for the jobs' data."""
    with ExitStack() as stack:
        acts = Play(testbed, screen, watch, figures, folder, stack)
        testbed.create_namespace(manifests.NAMESPACE)
        testbed.create_namespace(manifests.BROKERS)
        default, first = by_default(acts)
        quiet_at = time.time()
        running, placed = by_ballast(acts)
        move, noise_at = off_the_hot_node(acts, running, noisy=noisy_node(placed.spread, seed=seed))
        after, until, batches = running_spread(running), time.time(), running.batches()
        quiet_at = max(quiet_at, placed.batches[0].started_at)
        durations = Durations.around(move, batches, quiet_at=quiet_at, noise_at=noise_at, until=until)
        _say_durations(acts, durations)
        records = compared(acts, running, first=first)
        findings = Findings(
            seed=seed,
            default=default,
            default_records=first,
            ballast=placed,
            move=move,
            durations=durations,
            records=records,
            uses=watch.uses,
        )
        scores = figures.history(quiet_at, until)
        return Played(
            findings, after, acts.trail, scores, between(batches, since=quiet_at, until=until), quiet_at, until
        )


def running_spread(running: RunningJob) -> Spread:
    return spread([each.node for each in running.running_executors() if each.node], pool_nodes())


def noisy_node(placed: Spread, *, seed: int) -> str:
    """Drawn among the nodes that host executors."""
    return Random(seed).choice(sorted(placed.per_node))  # noqa: S311 -- no secret


def by_default(acts: Play) -> tuple[Placed, Comparison]:
    """(a) The job as kube-scheduler alone places it."""
    acts.screen.title("(a) kube-scheduler alone")
    acts.testbed.apply(manifests.broker("large-b1-1"))
    running = acts.run(acts.job("plain"))
    found = acts.look(running)
    records = running.finish()
    acts.screen.say(f"{records.source} records written, {records.sink} in the sink")
    return found, records


def by_ballast(acts: Play) -> tuple[RunningJob, Placed]:
    """(b) Ballast installed, and the same job under it."""
    acts.screen.title("(b) the same job under Ballast")
    install(acts.testbed, node_selector={POOL_LABEL: SYSTEM}, tolerations=TOLERATIONS)
    acts.screen.say("installed by helm; its pods are ready")
    acts.testbed.apply(manifests.topology(EXECUTORS), manifests.policy(acts.testbed.prometheus_url, leveling=False))
    await_gating(acts.testbed, manifests.NAMESPACE, labels=manifests.EXECUTOR_LABELS)
    running = acts.run(replace(acts.job("placed"), executor_labels=manifests.EXECUTOR_LABELS))
    return running, acts.look(running)


def off_the_hot_node(acts: Play, running: RunningJob, *, noisy: str) -> tuple[Move, float]:
    """(c) A noisy neighbor, and what Ballast does about it. With the time when the noise began."""
    acts.screen.title(f"(c) a noisy neighbor on {noisy}, drawn among the nodes that host executors")
    acts.watch.count(scores=True)
    cores = NOISE_RATIO * cores_of(noisy)
    acts.testbed.apply(manifests.noise(noisy, cores))
    acts.watch.noisy = noisy
    noise_at = acts.trail.mark_now("noise")
    acts.screen.say(f"a neighbor on {noisy} burns {cores:.2g} cores; nothing is done about it yet")
    running.await_batches(_NOISY_BATCHES)
    policy = manifests.policy(acts.testbed.prometheus_url, leveling=True)
    acts.screen.say("the policy levels now; it is the default one except for its times, which suit a demonstration:")
    for line in manifests.shown(policy["spec"]):
        acts.screen.say(f"    {line}")
    acts.testbed.apply(policy)
    acts.trail.mark_now("leveling on")
    move = Follower(acts.testbed, acts.screen, acts.watch, acts.trail, manifests.NAMESPACE).follow()
    acts.screen.say("the application goes on with its new executor")
    running.await_batches(_AFTER_BATCHES)
    acts.watch.count(scores=False)
    return move, noise_at


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
