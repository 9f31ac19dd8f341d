"""The picture of docs/routing.md: how much waits by how busy readers are, as multiples of round robin's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ballast.cli.picture.frame import BOTTOM, RIGHT, Drawing, Plot, Size

_HEIGHT, _HEAD = 260.0, 22.0
_LOWEST, _HIGHEST = 0.1, 10_000.0


def picture(busy: Sequence[float], lines: Mapping[str, Sequence[float]], *, bound: float) -> Plot:
    title = "Mean backlog as a multiple of round robin's, the worst case, by how busy readers are"
    return Plot.drawn("routing-loop", title, lambda size: _drawing(size, busy, lines, bound))


def _drawing(size: Size, busy: Sequence[float], lines: Mapping[str, Sequence[float]], bound: float) -> Drawing:
    def x(share: float) -> float:
        return size.left + (share - busy[0]) / (busy[-1] - busy[0]) * (size.width - size.left - RIGHT - 90.0)

    def y(ratio: float) -> float:
        of_all = math.log(max(ratio, _LOWEST) / _LOWEST) / math.log(_HIGHEST / _LOWEST)
        return _HEIGHT - BOTTOM - of_all * (_HEIGHT - BOTTOM - _HEAD)

    right = size.width - RIGHT
    marks = []
    for power in range(round(math.log10(_LOWEST)), round(math.log10(_HIGHEST)) + 1):
        at = y(10.0**power)
        marks.append(f'<line class="grid" x1="{size.left}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        words = f"{10.0**power:g} ×"
        marks.append(f'<text class="tick" x="{size.left - 6}" y="{at + 4:.1f}" text-anchor="end">{words}</text>')
    marks.append(f'<line class="axis" x1="{size.left}" x2="{right}" y1="{y(bound):.1f}" y2="{y(bound):.1f}"/>')
    marks += [
        f'<text class="tick" x="{x(share):.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{share:.0%}</text>'
        for share in busy
    ]
    for index, (name, ratios) in enumerate(lines.items()):
        points = " ".join(f"{x(share):.1f},{y(ratio):.1f}" for share, ratio in zip(busy, ratios, strict=True))
        marks.append(f'<polyline class="line series{index}" points="{points}"/>')
        marks.append(f'<text class="strong" x="{x(busy[-1]) + 8:.1f}" y="{y(ratios[-1]) - 4:.1f}">{name}</text>')
    return Drawing(size, _HEIGHT, "".join(marks))
