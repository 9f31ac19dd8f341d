"""The moves of each policy in the order of time: from where to where, and what came of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from types import MappingProxyType

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
from ballast.simulation.trace import MoveRecord, Outcome

_HEAD, _LANE, _GAP, _MOST_LANES, _ITEM = 18.0, 13.0, 8.0, 8, 10.0
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
        marks += [_mark(spot, y + _HEAD + _LANE * spot.lane + 6.0) for spot in spots]
        y += _HEAD + _LANE * max((1 + spot.lane for spot in spots), default=0) + _GAP
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
