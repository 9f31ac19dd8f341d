"""`python -m examples.demo`: the main job, from an empty machine to a report. Exit code 0 only if all was shown."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from rich.console import Console

from ballast.cli.picture.page import origin
from examples.demo.acts import play
from examples.demo.figures import Figures
from examples.demo.findings import Played
from examples.demo.installation import keep_logs
from examples.demo.machine import Machine
from examples.demo.manifests import WINDOW_SECONDS
from examples.demo.pool import RACK_MEGABITS, ZONE_MEGABITS, nodes, pool_nodes
from examples.demo.report import report, unfinished
from examples.demo.screen import Screen
from examples.demo.verdict import Verdict
from examples.demo.watch import Watch
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed

OUTPUT = Path(__file__).parents[2] / "build" / "demo"
_MOST_SEEDS = 10_000


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where summary.json and report.html go")
    parser.add_argument("--seed", type=int, help="of the draw of the noisy node (default: another one in every run)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = options(arguments)
    output: Path = chosen.output
    output.mkdir(parents=True, exist_ok=True)
    for name in ("summary.json", "report.html"):
        (output / name).unlink(missing_ok=True)
    seed = SystemRandom().randrange(_MOST_SEEDS) if chosen.seed is None else chosen.seed
    started = time.monotonic()
    with Screen(Console()) as screen:
        screen.say(f"seed {seed}")
        try:
            played = _perform(screen, output, seed=seed)
        except TestbedError as error:
            verdict = Verdict([str(error)])
            _write(output, {**verdict.summary(), "seed": seed}, unfinished(verdict, made=origin()))
        else:
            verdict = Verdict.on(played.findings)
            _write(output, {**verdict.summary(), **played.findings.summary()}, report(played, verdict, made=origin()))
        _say(screen, verdict, output)
        screen.title(f"done in {time.monotonic() - started:.0f} s: {output / 'summary.json'}, {output / 'report.html'}")
    return 0 if verdict.passed else 1


def _perform(screen: Screen, output: Path, *, seed: int) -> Played:
    screen.title("a real control plane, a kubelet for nine nodes, Prometheus")
    testbed = Testbed(progress=screen.say)
    data = tempfile.TemporaryDirectory(prefix="ballast-demo-")
    up = testbed.up(nodes=nodes(), network=True, rack_megabits=RACK_MEGABITS, zone_megabits=ZONE_MEGABITS)
    with data as folder, up:
        try:
            specs = pool_nodes()
            figures = Figures(
                testbed.prometheus_url,
                capacity_cores={spec.name: spec.cpu_quota_cores or 1.0 for spec in specs},
                addresses=testbed.node_addresses,
                window_seconds=WINDOW_SECONDS,
            )
            with Watch(screen, figures=figures, specs=specs, machine=Machine(WINDOW_SECONDS)) as watch:
                return play(testbed, screen, watch=watch, figures=figures, folder=Path(folder), seed=seed)
        finally:
            keep_logs(testbed, output / "logs")


def _write(output: Path, summary: dict[str, object], page: str) -> None:
    (output / "summary.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n")
    (output / "report.html").write_text(page)


def _say(screen: Screen, verdict: Verdict, output: Path) -> None:
    screen.title(verdict.headline)
    for failure in verdict.failures:
        screen.say(f"not shown: {failure.splitlines()[0]}")
    for warning in verdict.warnings:
        screen.say(f"warning: {warning}")
    if not verdict.passed:
        screen.say(f"more is in {output / 'summary.json'}, and the logs of all parts in {output / 'logs'}")


if __name__ == "__main__":
    sys.exit(main())
