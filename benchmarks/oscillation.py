"""Does leveling leave a balanced pool alone, and still act on a real gap?

A simulated day of noise about balance, alike over several minutes, for ours and for the rule of Pulsar's AvgShedder;
then the passes until a gap of 20 points on one node is acted on, in a calm pool and through the same noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.properties.noisy_pool import acted_upon, first_acted_upon, pulsar_unloads
from tests.properties.score_noise import DAY_PASSES, NOISES, Noise

BALANCE = 75.0
GAP = 20.0
SOON_PASSES = 15
LEARNED_PASSES = 240
WAITED_PASSES = 60
SEEDS = range(20)
SIZES = (6, 20, 100)
CALM = 0.2
"""Share of the noise in a calm pool."""


def run() -> Iterator[Result]:
    for kind in NOISES:
        for nodes in SIZES:
            yield from measured(kind, nodes, memory_minutes=5.0, aims=True)
    for memory_minutes in (2.0, 10.0, 30.0):
        yield from measured("even", 20, memory_minutes=memory_minutes, aims=False)


def measured(kind: str, nodes: int, *, memory_minutes: float, aims: bool) -> Iterator[Result]:
    noise = NOISES[kind]
    case = f"{kind} noise over {memory_minutes:g} min, {nodes} nodes"
    days = [BALANCE + noise(nodes, DAY_PASSES, memory_minutes, seed) for seed in SEEDS]
    pulsar = Baseline("unloads by Pulsar's rule", fmean(pulsar_unloads(day) for day in days))
    acted = fmean(len(list(acted_upon(day))) for day in days)
    yield Result(case, "acted on without a gap", acted, "pairs/day", pulsar, Aim(0) if aims else None)
    calm = [_wait(noise, memory_minutes, nodes, seed, share=CALM) for seed in SEEDS]
    yield Result(case, "passes until a gap is acted on, calm", max(calm), "passes", aim=Aim(SOON_PASSES))
    noisy = [_wait(noise, memory_minutes, nodes, seed, share=1.0) for seed in SEEDS]
    for passes in (SOON_PASSES, WAITED_PASSES):
        seen = fmean(wait <= passes for wait in noisy)
        yield Result(case, f"gaps acted on through the full noise within {passes} passes", seen, "ratio")


def _wait(noise: Noise, memory_minutes: float, nodes: int, seed: int, *, share: float) -> int:
    """Passes until the gap is acted on; one more than were tried when it isn't."""
    rows = BALANCE + share * noise(nodes, LEARNED_PASSES + WAITED_PASSES, memory_minutes, 1000 + seed)
    rows[LEARNED_PASSES:, 0] += GAP
    return first_acted_upon(rows, "n000", after=LEARNED_PASSES) or WAITED_PASSES + 1


if __name__ == "__main__":
    at_start = machine()
    write("oscillation", list(run()), before=at_start)
