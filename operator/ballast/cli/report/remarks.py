"""What a look found next to the pools: what keeps others from being seen, and what helps."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from ballast.cli.source import Seen

_FORWARD = "Is Prometheus out of reach from here only? Forward it (`kubectl port-forward`) and say --prometheus URL."


def remarks(seen: Seen) -> list[RenderableType]:
    """Lines for people, to end a report with."""
    problems = [Text.assemble(("Problem ", "red"), problem, overflow="fold") for problem in seen.problems]
    unreachable = any(each.snapshot.metrics.reason == "Unreachable" for each in seen.situations)
    # A file's metrics may have been queried from another place.
    advice = [Text(), Text(_FORWARD, style="dim")] if unreachable and not seen.from_file else []
    return [*problems, *advice]
