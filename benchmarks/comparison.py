"""PIP-364's table of judgments with figures in its cells, for Pulsar's combinations and Ballast's strategies.

Writes docs/comparison.md next to the figures; fails unless Ballast's default is, or equals, the best in each column.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ballast.simulation.scenario import Scenario
from benchmarks.leveled.contestants import NOTHING, OURS, Contestant
from benchmarks.report import Aim, Baseline, Result, machine, write
from tests.reference.pulsar.comparison import (
    COLUMNS,
    SCENARIOS,
    Combination,
    Judgment,
    beaten,
    combinations,
    judged,
    rows,
    run,
    table,
)
from tests.reference.pulsar.uncoupled import Placement

PAGE = Path("docs/comparison.md")
INTRODUCTION = """# How strategies compare

PIP-364 judges Pulsar's combinations of a shedding and a placement strategy by five questions, in words. Here are
values: every combination on the proposal's worked examples (`examples/scenarios/pip364-*.yaml`) and on a day that is
level except for noise (`noisy-day.yaml`), simulated from scrape to scrape with the metrics that a real pool would show.
Less is better everywhere; the best of a column is bold. `make comparison` writes this page.

"""
NOTES = """
- **Pulsar:** one strategy says what is unloaded, another one then chooses where each goes. Nothing is predicted, and
  what was unloaded rests for half an hour. AvgShedder and TransferShedder name the destination themselves, so that
  no placement strategy has a part in their moves: every other one would repeat the row that each of them has.
- **Ballast:** the same shedding strategies inside Ballast's planner, which chooses the destination in the same
  decision, predicts both scores and refuses what would not help. `placement.strategy` has no part in its moves.
- **Task metrics:** tasks take longer on busier nodes (see [scenarios](scenarios.md)), and Ballast moves executors on
  evidence only. Four of the examples run one application of many executors. The other two run applications of one
  executor, which have no others to be compared with.
- **Settings** are the same in all rows. The examples: scores over a minute, up to 100 moves at once, no cooldown, no
  budgets, no minimum gain, and no least score or throughput (`avgShedder.minHotScore`,
  `thresholdShedder.minThroughput`). The noisy day: scores over a minute, six moves at once, no cooldown, no budgets.
  Pulsar's way knows no such limits of moves. Thresholds and hits are as by default. "The default" is thus the default
  strategy with its thresholds and hits. [Below](#without-any-setting) is the policy that says nothing, with its limits.
- **Unequal machines:** three nodes and one four times as large. How many points hottest and coldest are apart at the
  end, beyond the 15 that count as level.
- **Over placement, over unloading:** moves, over all runs, whose destination ended too far above the mean, or whose
  source ended too far below it. The mean weighs nodes by their capacity.
- **Slow balancing:** executions until the pool was level, in the mean over the examples that were leveled, and how
  many were not.
- **Minutes**, in the mean over the examples that were leveled, are judged among the combinations that move nothing on
  the noisy day. A strategy that acts on a single look is quick where nothing is noisy; the moves of a noisy day are the
  price.
"""
WORST = """
## Worst cases

`make bench BENCH=adversary` searches for the pools and loads in which Ballast does worst. It writes each to a file that
`ballast plan -f` or `ballast simulate` reads. Of what it has found, these cases are not mended:

- **A neighbor's surge on all fast nodes at once, for five minutes:** imbalance 1.9 times that without moves, in the
  mean over five seeds. Executors go to small, slow nodes after few minutes of a gap above `highThreshold`; the surge
  ends when they arrive, and only later moves bring them back. With `avgShedder.highHits: 8` nothing is lost there,
  and every other large gap is acted on six passes later.
- **An executor that bursts after its move:** imbalance 1.04 times that without moves. No metric before the move shows
  it.
- **Constant load that is still being leveled:** in a pool of unequal nodes, two of six moves came in the second half of
  an hour, and five of eleven in the second half of two. One move at a time and the cooldown make it slow; imbalance is
  0.68 and 0.78 of that without moves.
- **A move back within an hour:** one, of an application of one executor whose load strays by 80 %, alike over half an
  hour. Imbalance is 0.95 of that without moves.
- **Twelve executors of ten sizes in a pool that is nearly full:** up to 1.5 times the optimum was found after 1 200
  steps of search. Such a set now has up to 6 000, which take a third of a second; 20 000 steps came within 1 % of the
  optimum.
"""

AS_THEY_COME = {
    "No moves": NOTHING,
    "Default policy of Ballast": OURS,
    "Defaults of Pulsar: ThresholdShedder + LeastLongTermRate": Contestant(
        "ThresholdShedder", Placement.LEAST_LONG_TERM_RATE
    ),
    "Defaults of Pulsar: AvgShedder": Contestant("AvgShedder/Traffic", Placement.AVG_SHEDDER),
    "Defaults of Pulsar: TransferShedder": Contestant("TransferShedder", Placement.LEAST_RESOURCE_USAGE),
}
DEFAULTS = """
## Without any setting

The same examples and the same noisy day without any setting: the policy that users of Ballast get by default,
all limits of moves included, and strategies of Pulsar with the thresholds, and the minute from one look to the next,
that Pulsar ships. Nothing is bold here: a policy with limits is to do little within the hour or two of an example.

"""
DEFAULTS_NOTES = """
- By default Ballast waits longer and moves less at a time: it unloads nodes above `avgShedder.minHotScore` only, by
  scores over minutes, within `moves.budgets`, `maxConcurrent` and `cooldown`. So most examples end before they are
  level. `profile: Aggressive` sets wider limits.
- Pulsar has no such limits: ThresholdShedder levels half of the examples, and moves 140 times on a day that needs none.
"""


def as_they_come() -> str:
    """The table of those without any setting."""
    judgments: dict[str, Judgment] = {}
    for title, contestant in AS_THEY_COME.items():
        print(title, flush=True)
        judgments[title] = judged({name: contestant.run(bare(name), bare(name).spec.seed) for name in SCENARIOS})
    return rows(judgments)


def bare(name: str) -> Scenario:
    """A scenario without figures of a policy."""
    found = Scenario.read(Path(f"examples/scenarios/{name}.yaml"))
    return found.model_copy(update={"spec": found.spec.model_copy(update={"policy": {}})})


def main() -> int:
    before = machine()
    scenarios = {name: Scenario.read(Path(f"examples/scenarios/{name}.yaml")) for name in SCENARIOS}
    judgments: dict[Combination, Judgment] = {}
    for combination in combinations():
        print(combination.name if combination.placement else f"Ballast: {combination.name}", flush=True)
        judgments[combination] = judged({name: run(combination, world) for name, world in scenarios.items()})
    without_settings = DEFAULTS + as_they_come() + DEFAULTS_NOTES
    PAGE.write_text(INTRODUCTION + table(judgments) + NOTES + without_settings + WORST, encoding="utf-8")
    write("comparison", [_result(column, judgments) for column in COLUMNS], before=before)
    lost = beaten(judgments)
    if lost:
        print(f"the default is beaten in: {', '.join(lost)}", file=sys.stderr)
    return 1 if lost else 0


def _result(column: str, judgments: dict[Combination, Judgment]) -> Result:
    ours = next(_figure(judgment, column) for each, judgment in judgments.items() if each.ours)
    best = min(_figure(judgment, column) for each, judgment in judgments.items() if not each.ours)
    return Result("the default", column, ours, "1", Baseline("the best other", best), Aim(best))


def _figure(judgment: Judgment, column: str) -> float:
    """One number for each column: what was never leveled outweighs all rounds."""
    if column == "slowness":
        return 1000.0 * judgment.unleveled + judgment.rounds
    return float(getattr(judgment, column))


if __name__ == "__main__":
    sys.exit(main())
