"""Which plots a study is shown by: which windows, runs and policies; its Pareto front; plots as PNG files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import hypot, isfinite
from pathlib import Path
from statistics import fmean

from ballast.cli.picture.frame import LETTER, Drawing, Entry, Legend, Plot, Scale, Size, circle, legend
from ballast.cli.picture.lines import Course, small_multiples
from ballast.cli.picture.page import LIGHT, plain
from ballast.cli.picture.timeline import Heat, heat_map, timeline
from ballast.errors import BallastError, InvalidField
from ballast.simulation.ranking import Estimate, Ranking, Standing, figure
from ballast.simulation.study import Result, Study

MOST_POLICIES, MOST_WINDOWS = 12, 3


@dataclass(frozen=True, slots=True)
class Choice:
    """What is shown of a study that has more than a page holds."""

    policies: tuple[str, ...]
    """The first of the ranking, and what moves nothing."""
    before: str | None
    """What the recommended policy is set against: the one that moves nothing; where there is none, or where that is
    the recommended one, the one with the highest imbalance. None when there is no other policy."""
    windows: tuple[str, ...]
    """Those in which these two differ most in imbalance, most of all first."""
    seed: int
    """Of single runs: the lowest of their window."""

    @property
    def window(self) -> str:
        """Of single runs."""
        return self.windows[0]


def choice(study: Study, ranking: Ranking) -> Choice:
    order = [standing.policy for standing in ranking.standings]
    base = study.baseline
    first = order[:MOST_POLICIES]
    before = base if base != ranking.recommended else None
    if before is None:
        others = [policy for policy in order if policy != ranking.recommended]
        before = max(others, key=lambda policy: ranking.of(policy).mean("imbalance_point_hours"), default=None)
    windows = _telling(study, ranking.recommended, before)
    return Choice(
        policies=tuple(first if base is None or base in first else [*first, base]),
        before=before,
        windows=tuple(windows[:MOST_WINDOWS]),
        seed=min(result.case.seed for result in study.results if result.case.window == windows[0]),
    )


def _telling(study: Study, one: str, other: str | None) -> list[str]:
    """Windows, those first in which the two policies differ most."""
    if other is None:
        return list(study.windows)
    apart = {window: abs(_imbalance(study, one, window) - _imbalance(study, other, window)) for window in study.windows}
    return sorted(study.windows, key=lambda window: -apart[window])


def _imbalance(study: Study, policy: str, window: str) -> float:
    return fmean(figure(result, "imbalance_point_hours") for result in runs(study, policy, window))


def runs(study: Study, policy: str, window: str) -> list[Result]:
    """One for each seed."""
    return [result for result in study.of(policy) if result.case.window == window]


@dataclass(frozen=True, slots=True)
class Exhibits:
    chosen: Choice
    pareto: Plot
    imbalance: Mapping[str, Plot]
    """By window."""
    moves: Plot
    before: Plot | None
    after: Plot

    def __iter__(self) -> Iterator[Plot]:
        yield self.pareto
        yield from self.imbalance.values()
        yield self.moves
        if self.before is not None:
            yield self.before
        yield self.after


def exhibits(study: Study, ranking: Ranking) -> Exhibits:
    """All plots of a study."""
    chosen = choice(study, ranking)
    labels = {standing.policy: f"{number} {standing.policy}" for number, standing in enumerate(ranking.standings, 1)}
    return Exhibits(
        chosen=chosen,
        pareto=_pareto(ranking),
        imbalance={
            window: _multiples(study, chosen, window, name=f"imbalance-{number}", labels=labels)
            for number, window in enumerate(chosen.windows, start=1)
        },
        moves=_moves(study, chosen, labels),
        before=None if chosen.before is None else _nodes(study, chosen, chosen.before, name="nodes-before"),
        after=_nodes(study, chosen, ranking.recommended, name="nodes-after"),
    )


def _pareto(ranking: Ranking) -> Plot:
    trades = [_trade(standing, recommended=standing.policy == ranking.recommended) for standing in ranking.standings]
    return pareto(trades, name="pareto", title="Imbalance, moves and locality cost of each policy")


def _trade(standing: Standing, *, recommended: bool) -> Trade:
    return Trade(
        name=standing.policy,
        moves=standing.estimates["moves"],
        imbalance=standing.estimates["imbalance_point_hours"],
        locality=standing.mean("locality_cost"),
        on_front=standing.on_front,
        recommended=recommended,
    )


def _multiples(study: Study, chosen: Choice, window: str, *, name: str, labels: Mapping[str, str]) -> Plot:
    by_policy = {policy: [run.series for run in runs(study, policy, window)] for policy in chosen.policies}
    courses = [Course.of(labels[policy], series) for policy, series in by_policy.items()]
    seconds = max(each.duration_seconds for series in by_policy.values() for each in series)
    return small_multiples(courses, seconds=seconds, name=name, title=f"Imbalance over time by policy, in {window}")


def single(study: Study, chosen: Choice, policy: str) -> Result:
    """The run that is shown of a policy."""
    every: Sequence[Result] = runs(study, policy, chosen.window)
    return next(result for result in every if result.case.seed == chosen.seed)


def _moves(study: Study, chosen: Choice, labels: Mapping[str, str]) -> Plot:
    shown = {labels[policy]: single(study, chosen, policy) for policy in chosen.policies}
    seconds = max(result.series.duration_seconds for result in shown.values())
    moves = {label: result.moves for label, result in shown.items()}
    return timeline(moves, seconds=seconds, name="moves", title=f"Moves by policy, in {chosen.window}")


def _nodes(study: Study, chosen: Choice, policy: str, *, name: str) -> Plot:
    result = single(study, chosen, policy)
    return heat_map(_heat(result), name=name, title=f"Node scores under {policy}, in {chosen.window}")


def _heat(result: Result) -> Heat:
    series = result.series
    return Heat(series.nodes, series.times, series.scores, series.duration_seconds, result.moves)


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


_MARGIN, _TITLE = 14.0, 30.0
_TITLE_STYLE = "svg .title { font-size: 15px; font-weight: bold; }"
_ZOOM = 2.0
"""Pixels of the picture to one of the plot."""
_PROBE = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><style>{style}</style>{inside}</svg>'


class NoRendererError(BallastError):
    """What draws PNG is not installed, or has no font to write with."""


def write_pngs(plots: Iterable[Plot], folder: Path) -> list[Path]:
    """One file each, `NAME.png`; equal plots give equal bytes on one machine. Raises NoRendererError, InvalidField."""
    look_for_renderer()
    written = []
    for plot in plots:
        path = folder / f"{plot.name}.png"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_rendered(alone(plot), zoom=_ZOOM))
        except OSError as error:
            raise InvalidField("--png", str(folder), f"{error.strerror}; name a folder that can be written") from error
        written.append(path)
    return written


def alone(plot: Plot) -> str:
    """The wide drawing under its title, as an SVG file that needs no page."""
    drawing = plot.drawings[0]
    left, top = -_MARGIN, -_MARGIN - _TITLE
    width, height = drawing.size.width + 2 * _MARGIN, drawing.height + _TITLE + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="{left:g} {top:g} {width:g} {height:g}"><style>{plain()}{_TITLE_STYLE}</style>'
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="{LIGHT["paper"]}"/>'
        f'<text class="title" x="0" y="{-_TITLE / 2:g}">{escape(plot.title)}</text>{drawing.marks}</svg>\n'
    )


def _rendered(svg: str, *, zoom: float = 1.0) -> bytes:
    """Raises NoRendererError."""
    try:
        from resvg_py import svg_to_bytes  # noqa: PLC0415 -- part of an extra
    except ImportError as error:
        raise NoRendererError("--png needs resvg: pip install '.[spark]' from a checkout") from error
    return bytes(svg_to_bytes(svg_string=svg, zoom=zoom))


def look_for_renderer() -> None:
    """And for a font: a picture without its words would be worse than none. Raises NoRendererError."""
    blank, written = (_PROBE.format(style=plain(), inside=inside) for inside in ("", '<text x="2" y="15">x</text>'))
    if _rendered(blank) == _rendered(written):
        raise NoRendererError("--png finds no font to write with: install DejaVu Sans (Debian: fonts-dejavu-core)")
