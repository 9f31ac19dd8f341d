"""What happened over time: moves in a line for each policy, and every node by shade with the moves between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from types import MappingProxyType

import numpy as np

from ballast.cli.output import duration, points
from ballast.cli.picture.frame import (
    BOTTOM,
    LETTER,
    STRONG_LETTER,
    Drawing,
    Entry,
    Frame,
    Plot,
    Size,
    circle,
    fitting,
    legend,
)
from ballast.cli.picture.page import SHADES
from ballast.model.arrays import FloatArray
from ballast.simulation.trace import MoveRecord, Outcome, Trace

_TOP, _LANE, _GAP, _MOST_LANES, _ITEM = 18.0, 13.0, 8.0, 8, 10.0
MOST_MARKS = 300
"""Of one policy; what comes later is not drawn."""

_CROSS = "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5"
_SHAPES: Mapping[Outcome, tuple[str, str]] = MappingProxyType(
    {
        Outcome.HELPED: ("filled", circle(4.0)),
        Outcome.NOT_JUDGED: ("hollow", circle(4.0)),
        Outcome.DID_NOT_HELP: ("hollow", _CROSS),
        Outcome.NEVER_LEFT: ("hollow", "M-4 3.5L0 -4L4 3.5Z"),
        Outcome.NEVER_ARRIVED: ("filled", "M-4 -3.5L0 4L4 -3.5Z"),
        Outcome.UNDER_WAY: ("hollow", "M-3 -4L2 0L-3 4"),
    }
)
_WORDS: Mapping[Outcome, str] = MappingProxyType(
    {
        Outcome.HELPED: "helped",
        Outcome.NOT_JUDGED: "arrived, not judged",
        Outcome.DID_NOT_HELP: "did not help",
        Outcome.NEVER_LEFT: "never left",
        Outcome.NEVER_ARRIVED: "never arrived",
        Outcome.UNDER_WAY: "under way at the end",
    }
)


@dataclass(frozen=True, slots=True)
class _Spot:
    """A move's: where it stands, and what stands next to it."""

    move: MoveRecord
    x: float
    lane: int
    label: str
    after: bool
    """Whether the label stands at the right of the mark: there is room for it."""


def timeline(moves: Mapping[str, Sequence[MoveRecord]], *, seconds: float, name: str, title: str) -> Plot:
    """`moves`: by policy, in the order in which they are to stand."""
    return Plot.drawn(name, title, lambda size: _timeline(moves, size, seconds))


def _timeline(moves: Mapping[str, Sequence[MoveRecord]], size: Size, seconds: float) -> Drawing:
    size = Size(size.name, size.width, 10.0, size.labels)
    frame = Frame(size, seconds, 0.0)
    marks: list[str] = []
    y = 0.0
    for policy, made in moves.items():
        spots = _spots(made[:MOST_MARKS], frame)
        text = fitting(f"{policy}: {_count(len(made))}", size.width, letter=STRONG_LETTER)
        marks += [f'<text class="strong" x="0" y="{y + 12.0:.1f}">{escape(text)}</text>']
        marks += [_mark(spot, y + _TOP + _LANE * spot.lane + 6.0) for spot in spots]
        y += _TOP + _LANE * max((1 + spot.lane for spot in spots), default=0) + _GAP
    frame = Frame(size, seconds, y + BOTTOM)
    outcomes = {move.outcome for made in moves.values() for move in made}
    entries = [Entry(*_SHAPES[each], 4.0, _WORDS[each]) for each in Outcome if each in outcomes]
    below = legend(entries, size=size, y=frame.height)
    return Drawing(size, frame.height + below.height, "".join([*frame.time_axis(), *marks, below.marks]))


def _count(moves: int) -> str:
    return {0: "no moves", 1: "1 move"}.get(moves, f"{moves} moves")


def _spots(moves: Sequence[MoveRecord], frame: Frame) -> list[_Spot]:
    """With `from → to` next to each, or, where that takes too much room, without."""
    named = _in_lanes(moves, frame, [f"{_short(move.source)} → {_short(move.target)}" for move in moves])
    if all(spot.lane < _MOST_LANES for spot in named):
        return named
    bare = _in_lanes(moves, frame, [""] * len(moves))
    return [replace(spot, lane=spot.lane % _MOST_LANES) for spot in bare]


def _in_lanes(moves: Sequence[MoveRecord], frame: Frame, labels: Sequence[str]) -> list[_Spot]:
    """Each in the first lane that is free where it stands."""
    spots: list[_Spot] = []
    free: list[float] = []
    for move, label in zip(moves, labels, strict=True):
        x, wide = frame.x(move.decided_at), _ITEM + len(label) * LETTER
        after = x + wide <= frame.size.width
        left, right = (x - 5.0, x + wide) if after else (x - wide, x + 5.0)
        lane = next((index for index, until in enumerate(free) if until <= left), len(free))
        free[lane : lane + 1] = [right]
        spots.append(_Spot(move, x, lane, label, after))
    return spots


def _short(node: str) -> str:
    return fitting(node, 13 * LETTER)


def _mark(spot: _Spot, y: float) -> str:
    style, path = _SHAPES[spot.move.outcome]
    told = escape(_told(spot.move))
    drawn = f'<path class="{style}" transform="translate({spot.x:.1f} {y:.1f})" d="{path}"/>'
    return f"<g><title>{told}</title>{drawn}{_label(spot, y) if spot.label else ''}</g>"


def _label(spot: _Spot, y: float) -> str:
    x, anchor = (spot.x + 7.0, "start") if spot.after else (spot.x - 7.0, "end")
    return f'<text class="tick" x="{x:.1f}" y="{y + 4.0:.1f}" text-anchor="{anchor}">{escape(spot.label)}</text>'


def _told(move: MoveRecord) -> str:
    measured = "" if move.measured_gain is None else f", {points(move.measured_gain)} measured"
    return (
        f"{duration(move.decided_at)}: {move.executor}, {move.source} → {move.target}, gap narrower by "
        f"{points(move.gain)} points predicted{measured}, {_WORDS[move.outcome]}"
    )


# Every node over time, by shade, with the moves between them.

_HEAD, _LEGEND = 10.0, 26.0
MOST_ROWS, _MOST_COLUMNS = 60, 160
_MOST_ARROWS = 400


@dataclass(frozen=True, slots=True, eq=False)
class Heat:
    """What a heat map shows."""

    nodes: tuple[str, ...]
    times: FloatArray
    """Seconds."""
    values: FloatArray
    """Times × nodes: percent of the node's capacity; NaN where unknown, or where there was no such node."""
    duration_seconds: float
    moves: Sequence[MoveRecord]

    @classmethod
    def of(cls, trace: Trace) -> Heat:
        return cls(trace.nodes, trace.times, trace.usage, trace.duration_seconds, trace.moves)

    @property
    def crowded(self) -> bool:
        """Only part of the nodes is shown."""
        return len(self.nodes) > MOST_ROWS


def heat_map(heat: Heat, *, name: str, title: str) -> Plot:
    """Shades of ten points each; all above 90 share the last."""
    shown = _rows(heat)
    return Plot.drawn(name, title, lambda size: _heat_map(heat, shown, size))


def _rows(heat: Heat) -> list[int]:
    """Columns of the values to show: all, or of many those that moves concern and the ones that vary most."""
    if not heat.crowded:
        return list(range(len(heat.nodes)))
    moved = {name for move in heat.moves for name in (move.source, move.target)}
    spread = np.nanmax(heat.values, axis=0, initial=0.0) - np.nanmin(heat.values, axis=0, initial=1000.0)
    order = sorted(range(len(heat.nodes)), key=lambda i: (heat.nodes[i] not in moved, -float(spread[i])))
    return sorted(order[:MOST_ROWS])


def _heat_map(heat: Heat, shown: Sequence[int], size: Size) -> Drawing:
    tall = 22.0 if len(shown) <= 12 else 12.0 if len(shown) <= 30 else 7.0
    frame = Frame(size, heat.duration_seconds, _HEAD + tall * len(shown) + BOTTOM)
    rows = {heat.nodes[column]: _HEAD + tall * row for row, column in enumerate(shown)}
    marks = [_row(heat, column, rows[name], tall, frame) for name, column in zip(rows, shown, strict=True)]
    if tall >= 12.0:
        marks += [_name(name, y + tall / 2.0 + 3.5, size) for name, y in rows.items()]
    marks += [_arrow(frame.x(each.decided_at), rows[each.source], rows[each.target], tall)
              for each in heat.moves[:_MOST_ARROWS] if each.source in rows and each.target in rows]  # fmt: skip
    marks += [*frame.time_axis(), *_legend(frame.height + 4.0, size)]
    return Drawing(size, frame.height + _LEGEND, "".join(marks))


def _row(heat: Heat, column: int, y: float, tall: float, frame: Frame) -> str:
    known = heat.values[:, column][np.isfinite(heat.values[:, column])]
    told = f"{known.min():.0f} to {known.max():.0f} %, mean {known.mean():.0f}" if len(known) else "no metrics"
    title = f"<title>{escape(heat.nodes[column])}: {told}</title>"
    return f'<g class="node">{title}{"".join(_stretches(heat, column, y, tall, frame))}</g>'


def _stretches(heat: Heat, column: int, y: float, tall: float, frame: Frame) -> Iterable[str]:
    """One rectangle for as long as the shade stays the same."""
    columns = np.array_split(np.arange(len(heat.times)), min(_MOST_COLUMNS, len(heat.times)))
    shades = [_shade(heat.values[part, column]) for part in columns]
    starts = [float(heat.times[part[0]]) for part in columns]
    ends = [*starts[1:], heat.duration_seconds]
    first = 0
    for index in range(1, len(shades) + 1):
        if index == len(shades) or shades[index] != shades[first]:
            if shades[first] is not None:
                left, right = frame.x(starts[first]), frame.x(ends[index - 1])
                yield (
                    f'<rect class="h{shades[first]}" x="{left:.1f}" y="{y + 0.5:.1f}" width="{right - left:.1f}" '
                    f'height="{tall - 1:.1f}"/>'
                )
            first = index


def _shade(values: FloatArray) -> int | None:
    known = values[np.isfinite(values)]
    return min(SHADES - 1, int(known.mean() // 10.0)) if len(known) else None


def _name(name: str, y: float, size: Size) -> str:
    short = escape(fitting(name, size.left - 6.0, letter=STRONG_LETTER))
    return f'<text class="name" x="{size.left - 6}" y="{y:.1f}" text-anchor="end">{short}</text>'


def _arrow(x: float, source: float, target: float, tall: float) -> str:
    begin, end = source + tall / 2.0, target + tall / 2.0
    tip = 4.0 if end > begin else -4.0
    path = f'd="M{x:.1f} {begin:.1f}V{end:.1f}m-3 {-tip:.1f}l3 {tip:.1f}l3 {-tip:.1f}"'
    start = f'<circle class="start" cx="{x:.1f}" cy="{begin:.1f}" r="2"/>'
    return f'<path class="halo" {path}/><path class="move" {path}/>{start}'


def _legend(y: float, size: Size) -> Iterable[str]:
    wide = min(34.0, (size.width - size.left - 40.0) / SHADES)
    for shade in range(SHADES):
        x = size.left + wide * shade
        yield f'<rect class="h{shade}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="8"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{10 * shade}</text>'
    yield f'<text class="tick" x="{size.left + wide * SHADES + 5:.1f}" y="{y + 8:.1f}">%</text>'
