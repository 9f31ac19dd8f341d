"""The report: one page that needs nothing else, in light and dark, on narrow and wide screens."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

from ballast.cli.picture.page import page
from examples.demo import plots
from examples.demo.findings import Findings, Played
from examples.demo.manifests import MIN_HOT_SCORE
from examples.demo.pool import Spread, pool_nodes
from examples.demo.streaming.batches import quantile_seconds
from examples.demo.verdict import Verdict

_TITLE = "Ballast: what the demonstration found"
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2430; --soft: #66707e; --line: #d8dde4; --panel: #f5f7f9;
  --hot: #c8372d; --cold: #1f6fb5; --executor: #2f8a5b; --noise: #f3d3d0; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --ink: #e4e8ed; --soft: #98a2ae; --line: #333b45;
  --panel: #1c2229; --hot: #ff7b6e; --cold: #62b0f4; --executor: #57c48b; --noise: #4a2a29; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; }
p { margin: .3rem 0; max-width: 46rem; }
h1.passed::before { content: "✓ "; color: var(--executor); } h1.failed { color: var(--hot); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .7rem; margin: 1rem 0; }
.tile { background: var(--panel); border-radius: .5rem; padding: .7rem .9rem; }
.tile b { display: block; font-size: 1.35rem; line-height: 1.3; }
.tile span { color: var(--soft); font-size: .9rem; }
svg { display: block; width: 100%; height: auto; }
.zones { display: flex; flex-wrap: wrap; gap: .6rem; } .zones svg { flex: 1 1 21rem; max-width: 34rem; min-width: 0; }
.narrow { display: none; }
@media (max-width: 40rem) { .wide { display: none; } .narrow { display: block; } }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
svg .tick, svg .small { fill: var(--soft); } svg text.mark { fill: var(--soft); font-size: 10px;
  paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
svg .name { font-size: 10.5px; } svg .small { font-size: 9.5px; }
svg .grid { stroke: var(--line); stroke-width: 1; } svg line.mark { stroke: var(--soft); stroke-dasharray: 2 3; }
svg .limit { stroke: var(--hot); stroke-dasharray: 5 4; opacity: .6; }
svg .series { fill: none; stroke-width: 2.2; } svg .series.other { stroke: var(--soft); stroke-width: 1; opacity: .5; }
svg .series.hot { stroke: var(--hot); } svg .series.cold { stroke: var(--cold); }
svg text.hot { fill: var(--hot); } svg text.cold { fill: var(--cold); }
svg .stem { stroke: var(--cold); opacity: .35; } svg .dot { fill: var(--cold); }
svg .zone { fill: var(--panel); stroke: var(--line); } svg .rack { fill: none; stroke: var(--line); }
svg .node { fill: var(--paper); stroke: var(--soft); } svg .noisy { fill: var(--noise); stroke: var(--hot); }
svg .executor { fill: var(--executor); }
table { border-collapse: collapse; margin: .6rem 0; line-height: 1.3; }
th, td { text-align: right; vertical-align: baseline; padding: .25rem 0 .25rem 1rem; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
th { color: var(--soft); font-weight: 500; } td { font-variant-numeric: tabular-nums; }
"""


def report(played: Played, verdict: Verdict, *, made: str) -> str:
    """The whole page. `made`: when, and by which version."""
    body = [*_verdict(verdict, made), *_head(played.findings), *_placements(played), *_move(played), *_batches(played)]
    return page(_TITLE, body, style=_STYLE)


def unfinished(verdict: Verdict, *, made: str) -> str:
    """The page of a demonstration that did not come to its end."""
    return page(_TITLE, _verdict(verdict, made), style=_STYLE)


def _verdict(verdict: Verdict, made: str) -> Iterable[str]:
    style = "passed" if verdict.passed else "failed"
    yield f'<h1 class="{style}">{escape(verdict.headline)}</h1><p>Made {escape(made)}.</p>'
    told = [f"Not shown: {each}" for each in verdict.failures[1:]] + [f"Warning: {each}" for each in verdict.warnings]
    if told:
        yield f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in told)}</ul>"


def _head(found: Findings) -> Iterable[str]:
    records, move = found.records, found.move
    gain = "unknown" if move.measured_gain is None else f"{move.measured_gain:.0f}"
    yield (
        "<p>A stateful streaming job of six executors on eight unequal nodes: placed by kube-scheduler, placed by "
        f"Ballast, and one executor moved off a node that a neighbor made hot. Seed {found.seed}.</p>"
    )
    before, after = (_number(quantile_seconds(each, 0.5)) for each in (found.durations.before, found.durations.after))
    yield _tiles(
        (
            f"{found.default.zone_bytes_per_record:,.0f} → {found.ballast.zone_bytes_per_record:,.0f}",
            "bytes a record cross zones: kube-scheduler, Ballast",
        ),
        (
            f"{_number(found.default.median_seconds)} → {_number(found.ballast.median_seconds)} s",
            "median batch: kube-scheduler, Ballast",
        ),
        (f"{before} → {after} s", "median batch: next to the noise, after the move"),
        (f"{gain} points", f"narrower is the gap; {move.predicted_gain:.0f} were predicted"),
        (f"{records.lost} lost, {records.duplicated} twice", f"of {records.source} records"),
    )


def _tiles(*tiles: tuple[str, str]) -> str:
    inner = "".join(f'<div class="tile"><b>{escape(b)}</b><span>{escape(span)}</span></div>' for b, span in tiles)
    return f'<div class="tiles">{inner}</div>'


def _placements(played: Played) -> Iterable[str]:
    found = played.findings
    yield "<h2>Where the executors are</h2>"
    yield (
        "<p>A dot is an executor. All of them exchange with each other, so with a share p in each zone, 1 − Σ p² "
        "crosses zones.</p>"
    )
    yield _placed("kube-scheduler alone", found.default.spread)
    yield _placed("Ballast", found.ballast.spread)
    yield _placed(f"After the move; the neighbor is on {found.move.source}", played.after, noisy=found.move.source)
    yield "<p>What nodes really sent each other, the driver's node included:</p>"
    yield _bytes(found)


def _placed(title: str, spread: Spread, *, noisy: str = "") -> str:
    shares = f"{spread.cross_zone_ratio:.0%} across zones, {spread.cross_rack_ratio:.0%} across racks"
    picture = plots.placement(pool_nodes(), spread, noisy=noisy)
    return f'<h3>{escape(title)}: {shares}</h3><div class="zones">{picture}</div>'


def _bytes(found: Findings) -> str:
    rows = "".join(
        f"<tr><td>{name}</td><td>{each.zone_bytes_per_record:,.0f}</td><td>{each.rack_bytes_per_record:,.0f}</td>"
        f"<td>{_number(each.median_seconds)}</td></tr>"
        for name, each in (("kube-scheduler alone", found.default), ("Ballast", found.ballast))
    )
    heads = "<th></th><th>bytes a record across zones</th><th>across racks</th><th>median batch, s</th>"
    return f"<table><tr>{heads}</tr>{rows}</table>"


def _move(played: Played) -> Iterable[str]:
    move = played.findings.move
    yield "<h2>The move</h2>"
    yield (
        f"<p>{escape(move.executor)} left {escape(move.source)} after {move.hits} hits, in "
        f"{move.seconds_to_leave:.1f} s; {escape(move.replacement)} ran on {escape(move.landed_on)} "
        f"{move.seconds_to_replace:.1f} s later. {escape(f'{move.phase}, {move.reason}: {move.message}')}.</p>"
    )
    marks, ends = played.trail.marks, {"hot": move.source, "cold": move.landed_on}
    yield _in_both_sizes(lambda size: plots.scores(played.scores, marks, **ends, threshold=MIN_HOT_SCORE, size=size))
    yield (
        f"<p>The dashed line is minHotScore, {MIN_HOT_SCORE}; the gray lines are the other nodes. Figures are means "
        "over the policy's window.</p>"
    )


def _batches(played: Played) -> Iterable[str]:
    yield "<h2>Batch durations</h2>"
    points = [(batch.started_at, batch.seconds) for batch in played.batches]
    span = {"start": played.quiet_at, "end": played.until}
    yield _in_both_sizes(lambda size: plots.durations(points, played.trail.marks, **span, size=size))
    rows = "".join(
        f"<tr><td>{when}</td><td>{count}</td><td>{_number(middle)}</td><td>{_number(high)}</td><td>{_number(top)}</td></tr>"
        for when, count, middle, high, top in played.findings.durations.table()
    )
    yield f"<table><tr><th></th><th>batches</th><th>p50, s</th><th>p95, s</th><th>longest, s</th></tr>{rows}</table>"


def _in_both_sizes(draw: Callable[[plots.Size], str]) -> str:
    """Of which the style sheet shows the one that fits."""
    return f'<div class="wide">{draw(plots.WIDE)}</div><div class="narrow">{draw(plots.NARROW)}</div>'


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
