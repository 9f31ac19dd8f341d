"""The page about simulated runs: figures, imbalance over time, and every node's usage with the moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ballast.cli.output import duration
from ballast.cli.picture.heat import Heat, heat_map
from ballast.cli.picture.lines import Line, lines
from ballast.cli.picture.page import grid, page
from ballast.cli.report.simulated import COLUMNS, MEANINGS, answer, figures_rows
from ballast.simulation.run_metrics import imbalance
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace


def simulated_page(scenario: Scenario, traces: Sequence[Trace], *, made: str) -> str:
    """The runs of one scenario next to each other. `made`: when the page was made, and by which version."""
    return page(f"Ballast: {scenario.name}", _body(scenario, traces, made))


def _body(scenario: Scenario, traces: Sequence[Trace], made: str) -> Iterator[str]:
    seconds = scenario.spec.duration.seconds
    yield f"<h1>{escape(scenario.name)}</h1>"
    yield f'<p><b>{escape(answer(traces))}</b></p><p class="soft">Made {escape(made)}.</p>'
    if scenario.spec.description:
        yield f"<p>{escape(scenario.spec.description.strip())}</p>"
    yield f'<p class="soft">{duration(seconds)}, {len(traces[0].nodes)} nodes, seed {traces[0].seed}</p>'
    yield "<h2>What each policy came to</h2>"
    yield '<p class="soft">Less is better in every column.</p>'
    yield "".join(
        f'<p class="soft"><b>{escape(column)}</b>: {escape(meaning)}</p>' for column, meaning in MEANINGS.items()
    )
    yield grid(COLUMNS, figures_rows(traces))
    yield "<h2>Imbalance</h2>"
    yield '<p class="soft">How far the nodes&#8217; usage deviates from their mean, in points.</p>'
    deviations = [Line(trace.policy, trace.times, imbalance(trace)) for trace in traces]
    yield lines(deviations, seconds=seconds, title="Imbalance over time, by policy")
    yield "<h2>Nodes</h2>"
    yield '<p class="soft">Percent of its capacity that is asked of each over time, and the moves as arrows.</p>'
    for trace in traces:
        moved = f"{len(trace.moves)} moves" if trace.moves else "nothing was moved"
        title = f"Usage of nodes over time under {trace.policy}, moves as arrows"
        plot = heat_map(Heat.of(trace), name="nodes", title=title)
        yield f"<h3>{escape(trace.policy)}: {moved}</h3>{plot.markup}"
