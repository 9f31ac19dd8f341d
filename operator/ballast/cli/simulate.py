"""`ballast simulate`: what policies would do with a described load, in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ballast.api import BalancingPolicy
from ballast.cli.output import AS_TABLE, MetricsOption, Screen, capitals, duration, saved, show, write
from ballast.cli.picture.lines import Line, lines
from ballast.cli.picture.page import ReportOption, grid, origin, page
from ballast.cli.picture.timeline import Heat, heat_map
from ballast.cli.report.runs import (
    MEANINGS,
    RUN_COLUMNS,
    figures_rows,
    simulated_answer,
    simulated_document,
    simulated_report,
)
from ballast.errors import InvalidField
from ballast.model import Policy
from ballast.runtime import planning_runtime
from ballast.simulation.engine import Progress as Told
from ballast.simulation.engine import simulate as run
from ballast.simulation.policies import FILES, enforced, from_name, in_file, policy_in, scenario_in
from ballast.simulation.run_metrics import imbalance
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace

EXAMPLES = (
    "ballast simulate examples/scenarios/flash-crowd.yaml",
    "ballast simulate scenario.yaml --policy policy.yaml --policy AvgShedder/Traffic --policy None",
    "ballast simulate scenario.yaml --policy AvgShedder --policy ThresholdShedder --report runs.html",
    "ballast simulate scenario.yaml --policy ThresholdShedder+RoundRobin --seed 7 -o json",
)

COLUMNS = tuple(f"{capitals(column):<22} {meaning}" for column, meaning in MEANINGS.items())
_DEFAULT = ("AvgShedder", "None")


def simulate(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO", help="A file, such as one of examples/scenarios.")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="POLICY",
            help="A file of BalancingPolicies or a strategy: SHEDDING[/UNIT][+PLACEMENT]. May be repeated. "
            "Default: AvgShedder and None (no moves).",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Random seed. Default: the scenario's seed.")
    ] = None,
    report: ReportOption = None,
    output: MetricsOption = AS_TABLE,
) -> None:
    """Run a scenario under one or several policies, and compare what comes of it.

    The planner is the operator's own. A policy that only recommends, or waits for approval, is run as if it enforced.
    """
    world = scenario_in(scenario)
    traces = traced(world, named(policy or _DEFAULT, world), seed)
    if report is not None:
        saved(report, simulated_page(world, traces, made=origin()), field="--report")
    if output.for_programs:
        write(simulated_document(world, traces), output)
    else:
        show(*simulated_report(world, traces, output.form), form=output.form)


def named(policies: Iterable[str], world: Scenario) -> dict[str, Policy]:
    """Policies by what the table calls them. Raises BallastError for one that is not valid or stands there twice."""
    found: dict[str, Policy] = {}
    for text in policies:
        for policy in _read(text, world):
            if policy.name in found:
                raise InvalidField("--policy", text, f"there is a policy {policy.name} already: rename one")
            found[policy.name] = enforced(policy)
    return found


def _read(text: str, world: Scenario) -> list[Policy]:
    if not text.endswith(FILES):
        return [from_name(text, world)]
    return [policy_in(BalancingPolicy.parse(raw), world) for raw in in_file(Path(text))]


def traced(world: Scenario, policies: dict[str, Policy], seed: int | None) -> list[Trace]:
    """One run each, with a bar on stderr where that is a terminal."""
    with _bar(world.name) as bar, planning_runtime():
        return [run(world, each, seed=seed, label=name, progress=bar(name)) for name, each in policies.items()]


@contextmanager
def _bar(title: str) -> Iterator[_Bar]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    console = Screen(stderr=True)
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as p:
        yield _Bar(title, p)


class _Bar:
    def __init__(self, title: str, progress: Progress) -> None:
        self._title, self._progress = title, progress

    def __call__(self, policy: str) -> Told:
        task = self._progress.add_task(f"{self._title}: {policy}", total=1.0)
        return lambda share: self._progress.update(task, completed=share)


def simulated_page(scenario: Scenario, traces: Sequence[Trace], *, made: str) -> str:
    """The runs of one scenario next to each other. `made`: when the page was made, and by which version."""
    return page(f"Ballast: {scenario.name}", _body(scenario, traces, made))


def _body(scenario: Scenario, traces: Sequence[Trace], made: str) -> Iterator[str]:
    seconds = scenario.spec.duration.seconds
    yield f"<h1>{escape(scenario.name)}</h1>"
    yield f'<p><b>{escape(simulated_answer(traces))}</b></p><p class="soft">Made {escape(made)}.</p>'
    if scenario.spec.description:
        yield f"<p>{escape(scenario.spec.description.strip())}</p>"
    yield f'<p class="soft">{duration(seconds)}, {len(traces[0].nodes)} nodes, seed {traces[0].seed}</p>'
    yield "<h2>What each policy came to</h2>"
    yield '<p class="soft">Less is better in every column.</p>'
    yield "".join(
        f'<p class="soft"><b>{escape(column)}</b>: {escape(meaning)}</p>' for column, meaning in MEANINGS.items()
    )
    yield grid(RUN_COLUMNS, figures_rows(traces))
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
