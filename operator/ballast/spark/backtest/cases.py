"""What is to be run, and the key by which what has been run is known again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import ballast
from ballast.api import BalancingPolicy
from ballast.errors import InvalidField
from ballast.simulation.study import Case, Document

DECIDES = (
    "api",
    "files",
    "grouping",
    "model",
    "moves",
    "placement",
    "planner",
    "shedding",
    "simulation",
    "spark/backtest",
)
"""Packages and modules that a run's outcome depends on, and what is kept of it."""


@dataclass(frozen=True, slots=True)
class Window:
    """What all policies run in."""

    name: str
    digest: str
    """Of everything in it that a run depends on; names, sizes and times of files stand for what they hold."""
    seed: int = 1
    """The first; further ones count on from it."""
    metric_window_seconds: float | None = None
    """What its figures are means over; None where they are made as the policy says."""


@dataclass(frozen=True, slots=True)
class Run:
    case: Case
    document: Document
    key: str
    """Equal for runs that come to the same: same window, same spec, same seed, same program."""

    @property
    def policy(self) -> BalancingPolicy:
        return BalancingPolicy.parse(self.document)


def runs(policies: Mapping[str, Document], windows: Sequence[Window], *, seeds: int) -> list[Run]:
    """Every policy in every window with every seed, window by window.

    Raises InvalidField for a policy that goes by figures of another metric window than a window has.
    """
    edition = program(Path(ballast.__file__).parent)
    for window in windows:
        for name, document in policies.items():
            _check_metric_window(name, document, window)
    return [
        Run(Case(name, window.name, seed), document, _key(edition, window.digest, document, seed))
        for window in windows
        for seed in range(window.seed, window.seed + seeds)
        for name, document in policies.items()
    ]


def _check_metric_window(name: str, document: Document, window: Window) -> None:
    asked = BalancingPolicy.parse(document).spec.metrics.window.seconds
    if window.metric_window_seconds not in (None, asked):
        there = f"{window.metric_window_seconds:g}s"
        raise InvalidField(
            "metrics.window",
            f"{asked:g}s",
            f"of policy {name}: the figures of {window.name} are means over {there}, and scores over another time can't"
            f" be told from them. Say {there} in the policy (--grid metrics.window={there}), or collect a history with"
            f" --window {asked:g}s into another folder",
        )


def digest(*parts: object) -> str:
    """Of JSON-able values."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _key(edition: str, window: str, document: Document, seed: int) -> str:
    return digest(edition, window, document["spec"], seed)


def program(root: Path) -> str:
    """The program in that folder: its version, and the text of what decides, so that a changed checkout runs again."""
    files = (path for name in DECIDES for path in sorted([*root.glob(f"{name}.py"), *(root / name).rglob("*.py")]))
    code = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    return digest(version("ballast-operator"), code)
