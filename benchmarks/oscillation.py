"""Does levelling leave a balanced pool alone, and still act on a real gap?

A simulated day of noise about balance for ours and for the rule of Pulsar's AvgShedder; then the passes until a gap of
20 points on one node is acted upon, in a calm pool and through the same noise.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import fmean, median

from tests.properties.noisy_pool import acted_upon, first_acted_upon, pulsar_unloads
from tests.properties.score_noise import DAY_PASSES, NOISES, Noise

BALANCE = 75.0
GAP = 20.0
LEARNED_PASSES = 240
WAITED_PASSES = 60
SIZES = (6, 20, 100)


@dataclass(frozen=True, slots=True)
class Row:
    noise: str
    memory_minutes: float
    nodes: int
    seeds: int
    moves_a_day: float
    """Pairs that unit Usage acts upon."""
    pulsar_unloads_a_day: float
    calm_gap_passes: int | None
    """Passes until a lasting gap is acted upon, in a fifth of the noise."""
    noisy_gap_seen_ratio: float
    """Share of gaps seen within an hour through the noise."""
    noisy_gap_passes: float | None
    """Median of those seen."""


def measure(kind: str, *, memory_minutes: float, nodes: int, seeds: int) -> Row:
    noise = NOISES[kind]
    days = [BALANCE + noise(nodes, DAY_PASSES, memory_minutes, seed) for seed in range(seeds)]
    waits = [_wait(noise, memory_minutes, nodes, seed, share=1.0) for seed in range(seeds)]
    calm = [_wait(noise, memory_minutes, nodes, seed, share=0.2) for seed in range(seeds)]
    seen = [wait for wait in waits if wait is not None]
    return Row(
        noise=kind,
        memory_minutes=memory_minutes,
        nodes=nodes,
        seeds=seeds,
        moves_a_day=fmean(len(list(acted_upon(day))) for day in days),
        pulsar_unloads_a_day=fmean(pulsar_unloads(day) for day in days),
        calm_gap_passes=None if None in calm else max(wait for wait in calm if wait is not None),
        noisy_gap_seen_ratio=len(seen) / seeds,
        noisy_gap_passes=median(seen) if seen else None,
    )


def _wait(noise: Noise, memory_minutes: float, nodes: int, seed: int, *, share: float) -> int | None:
    rows = BALANCE + share * noise(nodes, LEARNED_PASSES + WAITED_PASSES, memory_minutes, 1000 + seed)
    rows[LEARNED_PASSES:, 0] += GAP
    return first_acted_upon(rows, "n000", after=LEARNED_PASSES)


def rows(seeds: int = 20) -> Iterable[Row]:
    for kind in NOISES:
        for nodes in SIZES:
            yield measure(kind, memory_minutes=5.0, nodes=nodes, seeds=seeds)
    for memory_minutes in (2.0, 10.0, 30.0):
        yield measure("even", memory_minutes=memory_minutes, nodes=20, seeds=seeds)


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for row in rows(seeds):
        print(json.dumps(asdict(row)), flush=True)


if __name__ == "__main__":
    main()
