"""What the demonstration shows while it runs: a live picture in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from examples.demo.machine import Use
from tests.testbed.nodes import NodeSpec

_BAR_CELLS = 20
_HOT, _WARM = 70.0, 40.0
_PLAIN_EVERY_SECONDS = 10.0
_LINES = 14


@dataclass(frozen=True, slots=True)
class NodeState:
    spec: NodeSpec
    score: float | None
    executors: int
    hits: tuple[int, int]
    noisy: bool


@dataclass(frozen=True, slots=True)
class State:
    """One look at everything."""

    nodes: Sequence[NodeState]
    machine: Use | None
    batch_seconds: float | None
    records: int
    move: str


class Screen:
    """`with Screen() as screen:`; `say` adds a line, `show` replaces the picture."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console()
        self._started = time.monotonic()
        self._lines: list[Text] = []
        self._state: State | None = None
        self._plain_at = 0.0
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(get_renderable=self._picture, console=self._console, refresh_per_second=2)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def title(self, text: str) -> None:
        self._add(Text(text, style="bold"))

    def say(self, text: str) -> None:
        self._add(Text(text))

    def show(self, state: State) -> None:
        self._state = state
        now = time.monotonic()
        if self._live is None and now - self._plain_at >= _PLAIN_EVERY_SECONDS:
            self._plain_at = now
            self._console.print(Text(f"{self._elapsed()}    {_line(state)}", style="dim"), soft_wrap=True)

    def _add(self, text: Text) -> None:
        line = Text(f"{self._elapsed()}  ").append_text(text)
        if self._live is None:
            self._console.print(line, soft_wrap=True)
        else:
            self._lines = [*self._lines, line][-_LINES:]
            self._live.console.print(line, soft_wrap=True)

    def _elapsed(self) -> str:
        seconds = int(time.monotonic() - self._started)
        return f"{seconds // 60}:{seconds % 60:02}"

    def _picture(self) -> RenderableType:
        if self._state is None:
            return Text("")
        return Group(_table(self._state), Text(_foot(self._state), style="dim"))


def _table(state: State) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="dim")
    for name in ("zone", "rack", "node", "cores", "score", "", "executors", "hits low/high"):
        table.add_column(name)
    for node in state.nodes:
        low, high = node.hits
        table.add_row(
            node.spec.zone,
            node.spec.rack,
            node.spec.name + (" (noise)" if node.noisy else ""),
            f"{node.spec.cpu_quota_cores:g}",
            "–" if node.score is None else f"{node.score:.0f}",
            _bar(node.score),
            "●" * node.executors,
            f"{low}/{high}" if low or high else "",
        )
    return table


def _bar(score: float | None) -> Text:
    if score is None:
        return Text("")
    cells = min(_BAR_CELLS, round(score / 100.0 * _BAR_CELLS))
    style = "red" if score >= _HOT else "yellow" if score >= _WARM else "green"
    return Text("█" * cells, style=style).append("·" * (_BAR_CELLS - cells), style="dim")


def _foot(state: State) -> str:
    parts = [
        "" if state.machine is None else f"machine {state.machine}",
        "" if state.batch_seconds is None else f"last batch {state.batch_seconds:.1f} s",
        f"{state.records} records written" if state.records else "",
        state.move,
    ]
    return "  ·  ".join(part for part in parts if part)


def _line(state: State) -> str:
    """The picture in one line: only nodes with something to tell."""
    told = [
        f"{node.spec.name} {'?' if node.score is None else round(node.score)}"
        f"{' x' + str(node.executors) if node.executors else ''}"
        f"{f' hits {node.hits[0]}/{node.hits[1]}' if any(node.hits) else ''}"
        for node in state.nodes
        if node.executors or node.noisy or any(node.hits)
    ]
    return "  ".join([*told, "|", _foot(state)]) if told else _foot(state)
