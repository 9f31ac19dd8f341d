"""Decisions side by side: Ballast and what users write into their pods today, on one control plane and in one run.

A real API server and kube-scheduler, and nodes that exist in it alone, filled to 40-70 % unevenly. Every peer places
the same applications: one of 24; ten of 12 in turn and then one of 24; three that talk to each other and to nine
brokers; one that fits in no rack; one that fits in no zone; one that grows and shrinks. Ballast is the operator as the
chart starts it. Judged is what each application's executors and its traffic end up with; where a peer is better in a
figure, and not worse in one that weighs more, the aim is missed.

`python -m benchmarks.peers --seeds 1` is a short form. `--nodes 1000` plays one background and leaves out what takes
long there; `--seeds` and `--cases` ask for more.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import product
from pathlib import Path

from benchmarks.compared.arena import Arena
from benchmarks.compared.case import CASES, cases
from benchmarks.compared.figures import Figures, mean
from benchmarks.compared.judging import verdicts
from benchmarks.compared.kueue import kueue
from benchmarks.compared.peers import GROUP_API, GROUP_GATES, OURS, PEERS, SCHEDULER_PROFILES, Peer
from benchmarks.compared.pool import SHAPES, FilledPool
from benchmarks.load.replicas import install, replica
from benchmarks.load.server import Server
from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

CONNECTIONS = 16
POLICY = """
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: bench}
spec:
  nodeSelector: {matchLabels: {pool: bench}}
  externalNamespaces: [kafka]
  placement: {mode: Enforce}
  moves: {mode: Recommend}
"""
COLUMNS: Mapping[str, tuple[str, str]] = {
    "unplaced": ("not placed", ".1f"),
    "cross_zone": ("cross-zone", ".2f"),
    "cross_rack": ("cross-rack", ".2f"),
    "distance": ("distance", ".2f"),
    "most_on_a_node": ("most on a node", ".1f"),
    "nodes_used": ("nodes used", ".1f"),
    "seconds": ("seconds", ".1f"),
}

Table = dict[str, dict[str, list[Figures]]]
"""By row and peer, what each seed came to."""


MANY_NODES = 1000
FEW_CASES = ("one", "near", "apart", "rackless", "zoneless")
"""On many nodes, unless others are asked for."""


def run(pools: Sequence[FilledPool], peers: Sequence[Peer], names: Sequence[str]) -> Table:
    testbed = Testbed(progress=lambda text: print(text, flush=True))
    testbed.up(
        nodes=[],
        kubelet=False,
        prometheus=False,
        kwok=True,
        apiserver_arguments=[GROUP_GATES, f"--runtime-config={GROUP_API}=true"],
        scheduler_arguments=[GROUP_GATES],
        scheduler_profiles=SCHEDULER_PROFILES,
    )
    server = Server(testbed.api, connections=CONNECTIONS)
    try:
        install(testbed)
        testbed.apply(POLICY)
        testbed.add_fake_nodes(list(pools[0].nodes.values()))
        arena = Arena(testbed, server)
        arena.open_to(peers)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for peer in peers:
                if peer.queued_by:
                    stack.enter_context(kueue(testbed, folder, namespace=peer.namespace))
            operator = stack.enter_context(replica(testbed, "replica-1", folder))
            wait_until(operator.leads, what="the operator leads", timeout_seconds=120.0)
            table = _played(arena, pools, peers, names)
            operator.check()
            return table
    finally:
        server.close()
        testbed.down()


def _played(arena: Arena, pools: Sequence[FilledPool], peers: Sequence[Peer], names: Sequence[str]) -> Table:
    table: Table = defaultdict(lambda: defaultdict(list))
    for pool in pools:
        arena.fill(pool)
        for case, peer in product([each for each in cases(pool) if each.name in names], peers):
            if peer.takes_part(case):
                started = time.monotonic()
                for row, figures in arena.play(peer, pool, case).items():
                    table[row][peer.name].append(figures)
                print(f"seed {pool.seed}: {case.name}: {peer.name}: {time.monotonic() - started:.1f} s", flush=True)
    return table


def judged(table: Table, size: int) -> list[Result]:
    results = []
    for row, by_peer in table.items():
        others = {name: seeds for name, seeds in by_peer.items() if name != OURS.name}
        for each in verdicts(by_peer[OURS.name], others, flows=row.startswith("(iii)")):
            case, what = f"{size} nodes: {row}", COLUMNS[each.figure][0]
            unit = "s" if each.figure == "seconds" else "1"
            aim = Aim(round(each.best + each.noise, 3))
            results.append(Result(case, what, each.ours, unit, Baseline(each.peer, each.best), aim))
    return results


def markdown(table: Table) -> str:
    """One table of all cells, means over the seeds."""
    names = [name for name, _ in COLUMNS.values()]
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for row, by_peer in table.items():
        lines.append(f"| **{row}** |{' |' * len(names)}")
        for peer, seeds in by_peer.items():
            figures = mean(seeds)
            cells = [_text(getattr(figures, figure), form) for figure, (_, form) in COLUMNS.items()]
            lines.append(f"| {peer} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _text(value: float, form: str) -> str:
    return "–" if value != value else f"{value:{form}}"  # noqa: PLR0124 -- NaN


def _keep(table: Table, size: int) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    raw = {
        row: {peer: [asdict(each) for each in seeds] for peer, seeds in cells.items()} for row, cells in table.items()
    }
    (FOLDER / f"peers-{size}-cells.json").write_text(json.dumps(raw, indent=1, ensure_ascii=False) + "\n")
    (FOLDER / f"peers-{size}.md").write_text(markdown(table))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--nodes", type=int, default=96, choices=sorted(SHAPES))
    parser.add_argument("--seeds", type=int, help="how many backgrounds; 3 by default, 1 with 1000 nodes")
    parser.add_argument("--cases", nargs="+", choices=CASES, help="by default all, fewer with 1000 nodes")
    parser.add_argument("--peers", default="", help="only peers whose names contain one of these, separated by commas")
    asked = parser.parse_args()
    before = machine()
    wanted = [each for each in asked.peers.split(",") if each]
    peers = [peer for peer in PEERS if peer is OURS or not wanted or any(each in peer.name for each in wanted)]
    many = asked.nodes == MANY_NODES
    pools = [FilledPool(SHAPES[asked.nodes], seed) for seed in range(asked.seeds or (1 if many else 3))]
    table = run(pools, peers, asked.cases or (FEW_CASES if many else CASES))
    _keep(table, asked.nodes)
    results = judged(table, asked.nodes)
    write("peers", results, before=before)
    print(markdown(table))
    return 1 if any(result.met is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
