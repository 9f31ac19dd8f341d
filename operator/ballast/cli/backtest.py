"""`ballast backtest`: what policies would have come to, over many windows and seeds, on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from ballast.cli.output import AS_TABLE, MetricsOption, Screen, capitals, folder, saved, show, writable, write
from ballast.cli.picture.backtested import backtested_page, to_apply
from ballast.cli.picture.exhibits import exhibits, look_for_renderer, write_pngs
from ballast.cli.picture.page import ReportOption, origin
from ballast.cli.report.runs import EXPLAINED, backtested_document, backtested_report
from ballast.cli.situation import load
from ballast.cli.spark import progress, with_spark
from ballast.errors import InvalidField
from ballast.simulation.policies import FILES, Axis, candidates, scenario_in, shared_figures
from ballast.simulation.ranking import Ranking, ranking
from ballast.simulation.recorded.executors import Arrivals
from ballast.simulation.recorded.known import Known, known
from ballast.simulation.replay import Replay
from ballast.simulation.study import Document, Study

if TYPE_CHECKING:
    from ballast.spark.backtest import Job, Run, Selection, Source

EXAMPLES = (
    "ballast backtest --history history --policies a.yaml b.yaml --from 2026-11-14 --to 2026-11-21",
    "ballast backtest --scenario flash-crowd.yaml --policies AvgShedder ThresholdShedder --seeds 5",
    "ballast backtest --scenario *.yaml --policies a.yaml b.yaml --out s3a://data/backtest",
    "ballast backtest --scenario day.yaml --grid 'shedding.avgShedder.lowThreshold=10,15,20'",
    "ballast backtest --scenario day.yaml --policies a.yaml b.yaml --report backtest.html --png plots",
)
COLUMNS = tuple(f"{capitals(column):<22} {meaning}" for column, meaning in EXPLAINED.items())

_DEFAULT = ("AvgShedder",)
_OUT = "backtest"
_WINDOW = "1d"
_ONE_SEED = "what was recorded holds no chances: each case was run once, for more seeds would tell nothing new"


class SeveralValues(TyperCommand):
    """What follows the value of an option that may be repeated is one more of it: `--policies a.yaml b.yaml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        repeated = {
            name for option in self.params if getattr(option, "multiple", False) for name in getattr(option, "opts", ())
        }
        return super().parse_args(ctx, list(spelled_out(args, repeated)))


def spelled_out(arguments: Iterable[str], repeated: Iterable[str]) -> Iterator[str]:
    """With the option's name before each of its values."""
    names, option, due = frozenset(repeated), "", False
    for text in arguments:
        if text.startswith("-"):
            name, equals, _ = text.partition("=")
            option = name if name in names else ""
            due = bool(option) and not equals
        elif option and not due:
            yield option
        else:
            due = False
        yield text


COMMAND = SeveralValues


def backtest(
    scenario: Annotated[
        list[Path] | None, typer.Option(metavar="FILE…", help="Described loads, such as examples/scenarios.")
    ] = None,
    history: Annotated[
        str | None, typer.Option(metavar="PATH", help="What `ballast history` has kept: a path, or a URI.")
    ] = None,
    pool: Annotated[list[str] | None, typer.Option(metavar="NAME…", help="Of the history. Default: all pools.")] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="Day of the history (UTC) to begin with, or a time.")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Last day of the history (UTC), or the time to end at.")
    ] = None,
    window: Annotated[
        str | None, typer.Option(metavar="SPAN", help="The history is run in pieces of this length. Default: 1d.")
    ] = None,
    placements: Annotated[
        Arrivals | None,
        typer.Option(
            help="Where executors of the history begin: as recorded (the default), or where the policy puts them."
        ),
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of `ballast snapshot`: zones, speeds and topologies of the history's pool."),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            metavar="POLICY…",
            help="Files of BalancingPolicies, or strategies: SHEDDING[/UNIT][+PLACEMENT]. Default: AvgShedder.",
        ),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH=A,B…", help="Try these values of a field of the spec, in all combinations."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Runs of each policy in a scenario; of a history one.")
    ] = 1,
    baseline: Annotated[
        bool, typer.Option(help="Run the first policy without its moves, too, unless one moves nothing.")
    ] = True,
    out: Annotated[str, typer.Option(metavar="DIR", help="Where results are kept: a path, or a URI.")] = _OUT,
    master: Annotated[
        str | None, typer.Option(help="Spark master. Default: spark-submit's own, or local[*].", metavar="URL")
    ] = None,
    report: ReportOption = None,
    png: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write each plot of the page, too, as a PNG file.", callback=folder),
    ] = None,
    recommended: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the recommended policy, too, ready for kubectl apply.", callback=writable
        ),
    ] = None,
    output: MetricsOption = AS_TABLE,
) -> None:
    """Run policies in every window with every seed, and rank them by what came of it.

    Each run is a task of Spark. What has been run is kept below --out and not run again, so that a run that was
    interrupted goes on. A policy that only recommends, or waits for approval, is run as if it enforced.
    """
    if png is not None:
        look_for_renderer()
    recorded = _Recorded(pool, first, last, window, placements, snapshot)
    if bool(scenario) == (history is not None):
        given = "(absent)" if history is None else history
        raise InvalidField("--history", given, "name either a history or files of scenarios with --scenario")
    if history is None:
        recorded.refuse()
    worlds = [scenario_in(path, option="--scenario") for path in scenario or ()]
    axes = [Axis.parse(text) for text in grid or ()]
    named = policies or _DEFAULT
    figures = {} if not worlds or all(text.endswith(FILES) for text in named) else shared_figures(worlds)
    chosen = candidates(named, axes, figures=figures, baseline=baseline)
    with with_spark():
        from ballast.spark.backtest import Job, Recordings, Scenarios, Store  # noqa: PLC0415 -- Spark takes seconds
        from ballast.spark.session import session  # noqa: PLC0415 -- as above

        described, (selection, how) = Scenarios(worlds), recorded.asked()
        spark = session("ballast backtest", master=master)
        source: Source = described if history is None else Recordings(spark, history, selection, how)
        job = Job(spark, source, Store(spark, out))
        study, found = _ranked(job, chosen, seeds=seeds if history is None else 1, out=out)
    if history is not None and seeds > 1:
        study = replace(study, remarks=(_ONE_SEED,))
    _draw(study, found, report=report, png=png)
    if recommended is not None:
        saved(recommended, to_apply(study, found), field="--recommended")
    if output.for_programs:
        write(backtested_document(study, found), output)
    else:
        show(*backtested_report(study, found, output.form), form=output.form)


def _draw(study: Study, found: Ranking, *, report: Path | None, png: Path | None) -> None:
    if report is None and png is None:
        return
    shown = exhibits(study, found)
    if report is not None:
        saved(report, backtested_page(study, found, shown, made=origin()), field="--report")
    if png is not None:
        write_pngs(shown, png)
        typer.echo(f"wrote {png}", err=True)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """Which part of a history, and how it is run; texts are the user's."""

    pools: list[str] | None
    first: str | None
    last: str | None
    window: str | None
    placements: Arrivals | None
    snapshot: Path | None

    def refuse(self) -> None:
        """Raises InvalidField for the first option that was given: there is no history."""
        given = {
            "--pool": " ".join(self.pools or ()) or None,
            "--from": self.first,
            "--to": self.last,
            "--window": self.window,
            "--placements": self.placements,
            "--snapshot": self.snapshot,
        }
        for option, value in given.items():
            if value is not None:
                raise InvalidField(
                    option, str(value), "leave it out: it is about a --history, of which a --scenario knows nothing"
                )

    def asked(self) -> tuple[Selection, Replay]:
        """Raises BallastError for what can be no part of any history."""
        from ballast.spark.backtest import Selection  # noqa: PLC0415 -- Spark takes seconds to load
        from ballast.spark.backtest.recordings import moment_ms  # noqa: PLC0415 -- as above
        from ballast.spark.source.moment import span_ms  # noqa: PLC0415 -- as above

        start_ms = moment_ms(self.first, field="--from") if self.first else None
        end_ms = moment_ms(self.last, field="--to", end=True) if self.last else None
        if self.last and start_ms is not None and end_ms is not None and end_ms <= start_ms:
            raise InvalidField("--to", self.last, f"name a time after --from {self.first}")
        span = span_ms(self.window or _WINDOW, field="--window")
        told = known(load(self.snapshot, option="--snapshot").snapshot) if self.snapshot is not None else Known()
        how = Replay(arrivals=self.placements or Arrivals.RECORDED, known=told)
        return Selection(tuple(self.pools or ()), start_ms, end_ms, span), how


def _ranked(job: Job, policies: dict[str, Document], *, seeds: int, out: str) -> tuple[Study, Ranking]:
    """Runs what is missing. Raises BallastError or PySparkException; what has been kept stays."""
    from ballast.spark.backtest import runs  # noqa: PLC0415 -- Spark takes seconds to load

    wanted = runs(policies, job.source.windows, seeds=seeds)
    with job.store.alone():
        _run(job, wanted, out=out)
        study = job.store.study(wanted, left_out=job.source.left_out)
        found = ranking(study)
        job.store.publish(found)
    return study, found


def _run(job: Job, wanted: Sequence[Run], *, out: str) -> None:
    missing = job.missing(wanted)
    told = Screen(stderr=True, highlight=False)
    kept = len({run.key for run in wanted}) - len(missing)
    told.print(f"{len(wanted)} runs, {kept} of them reused from {out}, {len(missing)} to do", soft_wrap=True)
    with progress(told) as bar:
        task = bar.add_task("runs", total=len(missing))
        try:
            job.run(missing, lambda ended: bar.advance(task, ended))
        except KeyboardInterrupt:
            told.print(f"Interrupted. What has ended is kept in {out}: the same command goes on.", soft_wrap=True)
            raise
