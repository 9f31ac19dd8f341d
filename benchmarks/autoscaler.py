"""Executors that need new nodes, with Karpenter and its kwok provider: as Ballast releases them, and without Ballast.

A real API server, kube-scheduler and Karpenter, and nodes that exist in the API alone; Ballast is the operator as the
chart starts it. Applications start in an empty pool, grow and come to a full one; then most executors end and Karpenter
consolidates; then all nodes drift. The same applications, in turn with and without Ballast. Last, a move whose
replacement finds its destination taken.

`python -m benchmarks.autoscaler --seeds 1` is a short form.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from benchmarks.load.pods import JSON, POOL
from benchmarks.load.replicas import install, replica
from benchmarks.load.server import Server
from benchmarks.report import Aim, Baseline, Result, machine, write
from benchmarks.scaled.applications import Applications
from benchmarks.scaled.karpenter import ZONES, Karpenter, karpenter
from benchmarks.scaled.lost import move, stage
from tests.faults.metrics import Values, serving
from tests.testbed.nodes import NodeSpec
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

CONNECTIONS = 8
NODE_POOL = "bench"
OURS, WITHOUT = "with-ballast", "without-ballast"
POLICY = f"""
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {{name: bench}}
spec:
  nodeSelector: {{matchLabels: {{pool: bench}}}}
  namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {OURS}}}}}
  placement: {{mode: Enforce}}
  moves: {{mode: Disabled}}
"""
ONE, MORE, SMALL = 24, 36, {f"small-{number}": 8 for number in range(4)}
STARTS: Mapping[str, Mapping[str, int]] = {
    "one of 24, empty pool": {"one": ONE},
    "12 more of it": {"one": MORE},
    "four of 8 at once, full pool": SMALL,
}
KEPT_RATIO = 1 / 3
CONSOLIDATE_AFTER = "5s"
STEADY_SECONDS = 40.0
"""Karpenter looks every ten seconds, and once more 15 seconds after it has decided."""
PATIENCE_SECONDS = 300.0
LATER_SECONDS = 5.0
"""Executors wait for others for `placement.debounce`, 0.3 s; Karpenter waits 1 s for more pods."""
NOMINATED_SECONDS = 8.0
_LOOK_SECONDS = 1.0
_NONE = Aim(0.0)

Figures = dict[str, dict[str, float]]
"""By case, value by metric."""


@dataclass(frozen=True, slots=True)
class Bench:
    testbed: Testbed
    server: Server
    autoscaler: Karpenter

    def story(self, namespace: str, seed: int) -> Figures:
        """All that happens to the applications; nothing of them is left on return."""
        random = Random(f"drivers {seed}")
        drivers = {name: f"system-{random.choice(ZONES)}" for name in ("one", *SMALL)}
        applications = Applications(self.server, namespace, drivers)
        self.autoscaler.pool(NODE_POOL, {**POOL, "version": "1"})
        found: Figures = {}
        try:
            for case, wanted in STARTS.items():
                seconds = applications.grow(wanted)
                found[case] = self._situation(applications) | {"seconds to all bound": seconds}
                self._tell(namespace, case, found[case])
            with applications.replaced():
                for case, act in (("two thirds end", self._ends(seed)), ("all nodes drift", self._drifts)):
                    found[case] = act(applications)
                    self._tell(namespace, case, found[case])
        finally:
            applications.clear()
            self.autoscaler.clear(NODE_POOL)
        return found

    def _tell(self, namespace: str, case: str, figures: Mapping[str, float]) -> None:
        self.autoscaler.check()
        print(f"{namespace}: {case}: { ({name: round(value, 2) for name, value in figures.items()}) }", flush=True)

    def _situation(self, applications: Applications) -> dict[str, float]:
        nodes = self.autoscaler.nodes(NODE_POOL)
        return {
            "executors without a node": float(applications.without_node()),
            "cross-zone share": applications.cross_zone(nodes),
            "nodes": float(len(nodes)),
            "cores of nodes": sum(float(node["status"]["capacity"]["cpu"]) for node in nodes),
        }

    def _ends(self, seed: int) -> Callable[[Applications], dict[str, float]]:
        def act(applications: Applications) -> dict[str, float]:
            random = Random(f"ends {seed}")
            kept = {
                name: frozenset(random.sample(range(count), round(count * KEPT_RATIO)))
                for name, count in sorted(applications.wanted.items())
            }
            applications.shrink(kept)
            self.autoscaler.consolidate(NODE_POOL, after=CONSOLIDATE_AFTER)
            seconds = self._until_steady(applications)
            self.autoscaler.consolidate(NODE_POOL, after="Never")
            kept_by_pods = self.autoscaler.kept_by_pods(NODE_POOL)
            print("\n".join(f"kept: {node}: {words}" for node, words in kept_by_pods.items()), flush=True)
            return self._situation(applications) | {
                "seconds until nothing changes": seconds,
                "nodes that pods keep from consolidation": float(len(kept_by_pods)),
            }

        return act

    def _drifts(self, applications: Applications) -> dict[str, float]:
        self.autoscaler.drift(NODE_POOL, {**POOL, "version": "2"})
        started = time.monotonic()
        while (left := self._of_before()) and time.monotonic() < started + PATIENCE_SECONDS:
            time.sleep(_LOOK_SECONDS)
        seconds = time.monotonic() - started
        applications.until_bound()
        return self._situation(applications) | {
            "nodes that have not drifted": float(left),
            "seconds until all have": seconds,
        }

    def _of_before(self) -> int:
        return sum(node["metadata"]["labels"].get("version") == "1" for node in self.autoscaler.nodes(NODE_POOL))

    def _until_steady(self, applications: Applications) -> float:
        """Seconds until the last change, once there has been none for a while."""
        started = changed = time.monotonic()
        before: object = None
        while time.monotonic() < min(changed + STEADY_SECONDS, started + PATIENCE_SECONDS):
            now = (sorted(_names(self.autoscaler.claims(NODE_POOL))), applications.without_node())
            if now != before:
                before, changed = now, time.monotonic()
            time.sleep(_LOOK_SECONDS)
        return changed - started


def _names(items: list[JSON]) -> Iterator[str]:
    return (each["metadata"]["name"] for each in items)


def run(seeds: int) -> list[Result]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        testbed = Testbed(progress=lambda text: print(text, flush=True))
        testbed.up(nodes=[], kubelet=False, prometheus=False, kwok=True)
        stack.callback(testbed.down)
        server = Server(testbed.api, connections=CONNECTIONS)
        stack.callback(server.close)
        metrics = stack.enter_context(serving())
        install(testbed)
        testbed.apply(POLICY)
        testbed.add_fake_nodes([NodeSpec(f"system-{zone}", zone=zone, cpu="64", memory="256Gi") for zone in ZONES])
        testbed.create_namespace(OURS, labels={"ballast.dev/gate": "enabled"})
        testbed.create_namespace(WITHOUT)
        autoscaler = stack.enter_context(karpenter(testbed, folder))
        operator = stack.enter_context(replica(testbed, "replica-1", folder))
        wait_until(operator.leads, what="the operator leads", timeout_seconds=120.0)
        bench = Bench(testbed, server, autoscaler)
        by_side: dict[str, list[Figures]] = defaultdict(list)
        for seed in range(seeds):
            for namespace in (WITHOUT, OURS):
                by_side[namespace].append(bench.story(namespace, seed))
                operator.check()
        return [*compared(by_side[OURS], by_side[WITHOUT]), *_lost(testbed, metrics, autoscaler)]


def compared(ours: list[Figures], without: list[Figures]) -> Iterator[Result]:
    """Means over the seeds, and of what must not be at all, the worst."""
    for case, metrics in ours[0].items():
        for metric in metrics:
            mine, theirs = [each[case][metric] for each in ours], [each[case][metric] for each in without]
            base = fmean(theirs)
            aim = _aim(metric, base)
            value = max(mine) if aim is _NONE else fmean(mine)
            unit = "s" if metric.startswith("seconds") else "1"
            yield Result(case, metric, value, unit, Baseline("without", max(theirs) if aim is _NONE else base), aim)


def _aim(metric: str, without: float) -> Aim | None:
    if metric in ("executors without a node", "nodes that pods keep from consolidation", "nodes that have not drifted"):
        return _NONE
    if metric == "seconds to all bound":
        return Aim(round(without + LATER_SECONDS, 1))
    return Aim(round(without, 3)) if metric == "cross-zone share" else None


def _lost(testbed: Testbed, metrics: Values, autoscaler: Karpenter) -> Iterator[Result]:
    case = "a move whose destination is taken"
    with stage(testbed, metrics, autoscaler) as driver:
        found = move(driver)
    print(f"{case}: {found}", flush=True)
    never = float("inf")
    yield Result(case, "replacements without a node", float(found.bound_seconds is None), "1", aim=_NONE)
    nominated = never if found.nominated_seconds is None else found.nominated_seconds
    yield Result(case, "seconds nominated", nominated, "s", aim=Aim(NOMINATED_SECONDS))
    yield Result(
        case, "seconds until it has a node", never if found.bound_seconds is None else found.bound_seconds, "s"
    )
    yield Result(case, "replacements deleted meanwhile", float(found.deleted), "1")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.autoscaler", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how often everything happens (default: 3)")
    seeds = parser.parse_args().seeds
    before = machine()
    results = run(seeds)
    write("autoscaler", results, before=before)
    return 1 if any(result.met is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
