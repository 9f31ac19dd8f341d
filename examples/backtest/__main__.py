"""`python -m examples.backtest`: history, backtest and the recommendation applied, each as a user would run it.

Prometheus and the API server are real ones; Prometheus holds two days of a described cluster (`cluster`).
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from examples.backtest.cluster import openmetrics
from tests.spark.filled_prometheus import holding
from tests.testbed.testbed import Testbed

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "build" / "backtest"
POLICY = Path(__file__).parent / "policy.yaml"
PICTURE = "imbalance-1.png"
HISTORY = "ballast history --prometheus {url} --pool streaming=streaming-.* --from 2026-11-18 --to 2026-11-19"
BACKTEST = (
    "ballast backtest --history history --policies policy.yaml"
    " --grid shedding.avgShedder.minHotScore=50,60,70"
    " --recommended recommended.yaml --report backtest.html --png plots"
)
APPLY = "kubectl apply -f recommended.yaml"


@dataclass(frozen=True, slots=True)
class Shell:
    folder: Path
    environment: Mapping[str, str]

    def run(self, command: str, **known: str) -> None:
        """Print the command as it is and what it says; ends all when it fails."""
        words = shlex.split(command.format(**known))
        typer.echo(f"$ {shlex.join(words)}")
        ended = subprocess.run(
            words,
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        typer.echo(ended.stdout)
        if ended.returncode:
            sys.exit(f"{words[0]} ended with {ended.returncode}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.backtest", description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where history, page and pictures go")
    parser.add_argument("--picture", type=Path, help=f"also copy {PICTURE} there")
    chosen = parser.parse_args(arguments)
    output: Path = chosen.output
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    shutil.copy(POLICY, output)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory(prefix="ballast-backtest-") as folder:
        with holding(openmetrics(), Path(folder)) as prometheus:
            Shell(output, {"PATH": path}).run(HISTORY, url=prometheus.url)
        Shell(output, {"PATH": path}).run(BACKTEST)
    if chosen.picture:
        shutil.copy(output / "plots" / PICTURE, chosen.picture)
    _apply(output)
    return 0


def _apply(output: Path) -> None:
    with Testbed().up(kubelet=False, scheduler=False, prometheus=False) as testbed:
        testbed.apply(ROOT / "crds" / "ballast.dev_balancingpolicies.yaml")
        kubectl = Path(testbed.binary("kubectl"))
        path = f"{kubectl.parent}{os.pathsep}{os.environ['PATH']}"
        Shell(output, {"KUBECONFIG": str(testbed.kubeconfig), "PATH": path}).run(APPLY)


if __name__ == "__main__":
    sys.exit(main())
