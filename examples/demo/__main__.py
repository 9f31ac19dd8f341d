"""`python -m examples.demo`: the main job, from an empty machine to a report. Exit code 0 only if all was shown."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from examples.demo.acts import play
from examples.demo.figures import Figures
from examples.demo.findings import BUSY_LIMIT_PERCENT, Played
from examples.demo.installation import keep_logs
from examples.demo.machine import Machine
from examples.demo.manifests import WINDOW_SECONDS
from examples.demo.pool import nodes, pool_nodes
from examples.demo.report import report
from examples.demo.screen import Screen
from examples.demo.watch import Watch
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed

OUTPUT = Path(__file__).parents[2] / "build" / "demo"


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where summary.json and report.html go")
    parser.add_argument(
        "--busy-limit",
        type=float,
        default=BUSY_LIMIT_PERCENT,
        help="percent of the whole machine that may be busy while scores count",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = options(arguments)
    output: Path = chosen.output
    output.mkdir(parents=True, exist_ok=True)
    for name in ("summary.json", "report.html"):
        (output / name).unlink(missing_ok=True)
    started = time.monotonic()
    with Screen(Console()) as screen:
        try:
            played = _perform(screen, output)
        except TestbedError as error:
            for line in (f"failed: {error}", *getattr(error, "__notes__", ())):
                screen.say(line)
            return 1
        _write(played, output)
        failures = played.findings.failures(busy_limit_percent=chosen.busy_limit)
        for failure in failures:
            screen.say(f"not shown: {failure}")
        if failures:
            screen.say(f"the logs of all parts are in {output / 'logs'}")
        busiest = played.findings.busiest
        screen.say(f"the machine was at most {busiest} while scores counted" if busiest else "")
        screen.title(f"done in {time.monotonic() - started:.0f} s: {output / 'summary.json'}, {output / 'report.html'}")
    return 1 if failures else 0


def _perform(screen: Screen, output: Path) -> Played:
    screen.title("a real control plane, a kubelet for nine nodes, Prometheus")
    testbed = Testbed(progress=screen.say)
    data = tempfile.TemporaryDirectory(prefix="ballast-demo-")
    with data as folder, testbed.up(nodes=nodes()):
        try:
            specs = pool_nodes()
            figures = Figures(
                testbed.prometheus_url,
                capacity_cores={spec.name: spec.cpu_quota_cores or 1.0 for spec in specs},
                addresses=testbed.node_addresses,
                window_seconds=WINDOW_SECONDS,
            )
            with Watch(screen, figures=figures, specs=specs, machine=Machine(WINDOW_SECONDS)) as watch:
                return play(testbed, screen, watch=watch, figures=figures, folder=Path(folder))
        except BaseException as error:
            error.add_note(f"the logs of all parts are in {output / 'logs'}")
            raise
        finally:
            keep_logs(testbed, output / "logs")


def _write(played: Played, output: Path) -> None:
    (output / "summary.json").write_text(json.dumps(played.findings.summary(), indent=2) + "\n")
    (output / "report.html").write_text(report(played))


if __name__ == "__main__":
    sys.exit(main())
