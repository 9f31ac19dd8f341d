"""What each policy pays for what it brings: imbalance against moves, the size of a mark by the cost of locality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import hypot, isfinite

from ballast.cli.picture.frame import LETTER, Drawing, Plot, Scale, Size
from ballast.cli.picture.legend import Entry, Legend, circle, legend
from ballast.simulation.ranking import Estimate

_HEIGHT, _HEAD, _FOOT, _LEFT, _RIGHT = 330.0, 24.0, 42.0, 44.0, 30.0
_SMALLEST, _LARGEST = 5.0, 11.0
_ASIDE = 18.0
"""Room for marks without moves between them and the labels of the imbalance."""
_NEAR = 9.0
"""Marks that are no further apart, in pixels, share a label."""
_MOST_NUMBERS = 5


@dataclass(frozen=True, slots=True)
class Trade:
    """One policy's."""

    name: str
    moves: Estimate
    imbalance: Estimate
    """Points × hours."""
    locality: float
    """NaN where it is not known."""
    on_front: bool
    recommended: bool


def pareto(trades: Sequence[Trade], *, name: str, title: str) -> Plot:
    """`trades`: in the order in which tables number them, from 1 on."""
    return Plot.drawn(name, title, lambda size: _Field.of(trades, size).drawing())


@dataclass(frozen=True, slots=True)
class _Field:
    trades: Sequence[Trade]
    size: Size
    across: Scale
    up: Scale

    @classmethod
    def of(cls, trades: Sequence[Trade], size: Size) -> _Field:
        return cls(
            trades,
            Size(size.name, size.width, _LEFT, size.labels),
            across=Scale.up_to(
                _highest([each.moves for each in trades]), start=_LEFT + _ASIDE, end=size.width - _RIGHT
            ),
            up=Scale.up_to(_highest([each.imbalance for each in trades]), start=_HEIGHT - _FOOT, end=_HEAD),
        )

    def drawing(self) -> Drawing:
        marks = [*self._axes()]
        for trade in self.trades:
            marks += self._errors(trade)
        marks += [self._mark(trade) for trade in self.trades]
        below = self._legend()
        return Drawing(self.size, _HEIGHT + below.height + 4.0, "".join([*marks, *self._numbers(), below.marks]))

    def _place(self, trade: Trade) -> tuple[float, float]:
        return self.across.at(trade.moves.mean), self.up.at(trade.imbalance.mean)

    def _radius(self, locality: float) -> float:
        """Its area grows evenly from the lowest cost to the highest."""
        known = self._localities()
        if not isfinite(locality) or len(known) < 2:
            return _SMALLEST
        share = (locality - known[0]) / (known[-1] - known[0])
        radius: float = (_SMALLEST**2 + share * (_LARGEST**2 - _SMALLEST**2)) ** 0.5
        return radius

    def _localities(self) -> list[float]:
        """Those that differ, ascending."""
        return sorted({round(each.locality, 3) for each in self.trades if isfinite(each.locality)})

    def _axes(self) -> Iterator[str]:
        yield from self.up.axis(self.size)
        for value, x in self.across.ticks():
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_HEAD}" y2="{self.up.start}"/>'
            yield f'<text class="tick" x="{x:.1f}" y="{self.up.start + 16:.1f}" text-anchor="middle">{value:g}</text>'
        yield '<text class="tick" x="0" y="11">imbalance, point-hours</text>'
        right, below = self.size.width, self.up.start + 32
        yield f'<text class="tick" x="{right:.1f}" y="{below:.1f}" text-anchor="end">moves</text>'

    def _errors(self, trade: Trade) -> Iterator[str]:
        """The intervals, where there are any."""
        x, y = self._place(trade)
        if isfinite(trade.moves.half_width):
            low, high = self.across.at(max(trade.moves.low, 0.0)), self.across.at(trade.moves.high)
            yield f'<line class="error" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        if isfinite(trade.imbalance.half_width):
            low, high = self.up.at(max(trade.imbalance.low, 0.0)), self.up.at(trade.imbalance.high)
            yield f'<line class="error" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'

    def _mark(self, trade: Trade) -> str:
        x, y = self._place(trade)
        radius, style = self._radius(trade.locality), "filled" if trade.on_front else "hollow"
        ring = f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="{radius + 3.5:.1f}"/>' if trade.recommended else ""
        told = f"{trade.name}: {trade.moves.mean:.1f} moves, imbalance {trade.imbalance.mean:.1f}"
        if isfinite(trade.locality):
            told += f", locality cost {trade.locality:.2f}"
        return (
            f'<g><title>{escape(told)}</title>{ring}<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" '
            f'r="{radius:.1f}"/></g>'
        )

    def _numbers(self) -> Iterator[str]:
        """Next to the marks; one label for those that stand in nearly one place."""
        left = [(number, trade) for number, trade in enumerate(self.trades, start=1)]
        while left:
            here = self._place(left[0][1])
            near = [pair for pair in left if _distance(here, self._place(pair[1])) <= _NEAR]
            left = [pair for pair in left if pair not in near]
            text = ", ".join(str(number) for number, _ in near[:_MOST_NUMBERS]) + (
                "…" if len(near) > _MOST_NUMBERS else ""
            )
            aside = max(self._radius(trade.locality) + (5.0 if trade.recommended else 2.0) for _, trade in near)
            x, anchor = here[0] + aside, "start"
            if x + len(text) * LETTER > self.size.width:
                x, anchor = here[0] - aside, "end"
            y = here[1] - aside / 2.0
            yield f'<text class="strong" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'

    def _legend(self) -> Legend:
        small, large = circle(_SMALLEST), circle(_LARGEST)
        entries = [
            Entry("filled", small, _SMALLEST, "on the front"),
            Entry("hollow", small, _SMALLEST, "beaten by another"),
            Entry("ring", small, _SMALLEST, "recommended"),
        ]
        known = self._localities()
        if len(known) > 1:
            entries.append(Entry("hollow", small, _SMALLEST, f"locality cost {known[0]:.2f}"))
            entries.append(Entry("hollow", large, _LARGEST, f"{known[-1]:.2f}"))
        return legend(entries, size=self.size, y=_HEIGHT)


def _highest(estimates: Sequence[Estimate]) -> float:
    ends = [each.high if isfinite(each.half_width) else each.mean for each in estimates]
    return max([end for end in ends if isfinite(end)], default=0.0) or 1.0


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    return hypot(one[0] - other[0], one[1] - other[1])
