"""`ballast size`: how large a pipeline should be, from what is declared and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ballast import files
from ballast.api.topology_sizing import Goal, Sizing
from ballast.cli import log_files
from ballast.cli.access import address
from ballast.cli.output import AS_TEXT, TextOption, saved, show, writable, write
from ballast.cli.picture.page import ReportOption, origin
from ballast.errors import BallastError, InvalidField

EXAMPLES = (
    "ballast size --progress progress.jsonl --event-log event-log --gc-log gc.log",
    "ballast size --progress progress.jsonl --report sizing.html --set rate=2x",
    "ballast size -f topology.yaml --prometheus http://localhost:9090 --application spark-0123",
    "ballast size --event-log event-log --write-conf sized.conf",
    "ballast size --gc-log gc.log --fail-on-warnings -o json",
)

COLUMNS = (
    "FROM      Measured, Declared or Assumed: that of the weakest input",
    "INTERVAL  bounds of the value: at 95 %, or what is plausible for an assumption",
    "SOURCE    the field, file or query; of a computed value its weakest inputs",
    "READY     there are always records for the stage",
    "ROOM      what follows takes its records promptly",
)


def size(
    filename: Annotated[
        str | None,
        typer.Option(
            "--filename", "-f", metavar="FILE", help="A SparkTopology with spec.sizing; - reads standard input."
        ),
    ] = None,
    goal: Annotated[
        Goal | None,
        typer.Option(case_sensitive=False, help="What to size for first. If unset: spec.sizing.goal, or Throughput."),
    ] = None,
    progress: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="StreamingQueryProgress as JSON, one a line, or a driver's log; of batches of several sizes.",
        ),
    ] = None,
    event_log: Annotated[
        Path | None, typer.Option("--event-log", metavar="FILE|DIR", help="Spark's event log, also of a batch job.")
    ] = None,
    gc_log: Annotated[
        Path | None, typer.Option("--gc-log", metavar="FILE", help="An executor's GC log (-Xlog:gc*), Java 9 or later.")
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this Prometheus for Spark's own metrics.", callback=address),
    ] = None,
    application: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Its id, or NAMESPACE/ID, where Prometheus has several applications."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="What if: rate=2x, or a value such as partitions=24. Repeatable."
        ),
    ] = None,
    write_conf: Annotated[
        Path | None,
        typer.Option(
            "--write-conf",
            metavar="FILE",
            help="Write the configuration for spark-submit --properties-file.",
            callback=writable,
        ),
    ] = None,
    report: ReportOption = None,
    fail_on_warnings: Annotated[
        bool, typer.Option("--fail-on-warnings", help="Exit with 1 if there is a warning or a broken GC rule.")
    ] = False,
    output: TextOption = AS_TEXT,
) -> None:
    """Recommend parallelism, batch size, memory and JVM options. Nothing is applied.

    Every value says whether it was measured, declared or assumed, from what, and how sure. Without --prometheus no
    server is asked.
    """
    from ballast.cli.report.sized import broken, sized_document, sized_report, spark_properties  # noqa: PLC0415 -- numpy
    from ballast.sizing.recommendation import recommend  # noqa: PLC0415 -- loads numpy, unused for --help

    changes = _changes(settings or ())
    declared = _declared(filename, goal)
    read = _facts(declared, progress, event_log, gc_log, prometheus=prometheus, application=application)
    facts = replace(read, what_if=changes)
    found = recommend(facts)
    if write_conf is not None:
        saved(write_conf, spark_properties(found), field="--write-conf")
    if report is not None:
        from ballast.cli.picture.sized import sized_page  # noqa: PLC0415 -- as above

        saved(report, sized_page(found, facts, made=origin()), field="--report")
    if output.for_programs:
        write(sized_document(found), output)
    else:
        show(*sized_report(found))
    if fail_on_warnings and broken(found):
        raise typer.Exit(1)


def _changes(settings: Sequence[str]) -> dict[str, str]:
    """By input. Raises InvalidField for a setting without `=`."""
    changes = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not text:
            raise InvalidField("--set", setting, "write NAME=VALUE, such as rate=2x or partitions=24")
        changes[name.strip()] = text.strip()
    return changes


def _declared(filename: str | None, goal: Goal | None) -> Sizing:
    """Raises BallastError for what is no SparkTopology with spec.sizing."""
    sizing = Sizing() if filename is None else _from_file(filename)
    return sizing if goal is None else sizing.model_copy(update={"goal": goal})


def _from_file(filename: str) -> Sizing:
    from ballast.api.topology import SparkTopology  # noqa: PLC0415 -- unused without a file

    documents = files.documents(Path(filename), option="--filename", remedy="name a file with a SparkTopology")
    found = [each for each in documents if isinstance(each, dict) and each.get("kind") == "SparkTopology"]
    if len(found) != 1:
        told = f"{len(found)} SparkTopologies in it; name a file with exactly one"
        raise InvalidField("--filename", filename, told)
    topology = SparkTopology.of_file(found[0], filename)
    if topology.spec.sizing is None:
        remedy = "set it (`ballast docs sizing` shows how), or leave out -f and give measurements"
        raise InvalidField(f"{filename}: spec.sizing", "(absent)", remedy)
    return topology.spec.sizing


def _event_log(path: Path) -> Any:
    """A file, a rolling log's folder, or a folder with one log in it."""
    from ballast.sizing import event_log  # noqa: PLC0415 -- unused without this option

    if not path.is_dir():
        return log_files.read(path, "--event-log", event_log.read)
    parts = log_files.parts_of(path, "--event-log")
    if not parts:
        remedy = "no event log in this folder: name the folder of spark.eventLog.dir, or a log in it"
        raise InvalidField("--event-log", str(path), remedy)
    return event_log.read(log_files.lines(parts, "--event-log"), str(path))


def _facts(
    declared: Sizing,
    progress: Path | None,
    event_log: Path | None,
    gc_log: Path | None,
    *,
    prometheus: str | None,
    application: str | None,
) -> Any:
    """Facts without any what-if. Raises BallastError for an input that can't be read."""
    from ballast.sizing import gc_log_reader as gc  # noqa: PLC0415 -- numpy, unused for --help
    from ballast.sizing import progress as batches  # noqa: PLC0415 -- as above
    from ballast.sizing.facts import Facts  # noqa: PLC0415 -- as above

    return Facts(
        declared=declared,
        progress=None if progress is None else log_files.read(progress, "--progress", batches.read),
        log=None if event_log is None else _event_log(event_log),
        gc=None if gc_log is None else log_files.read(gc_log, "--gc-log", gc.read),
        metrics=None if prometheus is None else _metrics(prometheus, application),
    )


def _metrics(url: str, application: str | None) -> Any:
    from ballast.prometheus import Endpoint, Prometheus, Queries  # noqa: PLC0415 -- unused without --prometheus
    from ballast.sizing.executor_metrics import QUERIES, WINDOW_SECONDS, read  # noqa: PLC0415 -- as above

    answers, failures = Prometheus(Endpoint(url)).ask(Queries.of_each_namespace(QUERIES), WINDOW_SECONDS)
    if failures:
        name, words = next(iter(failures.items()))
        raise _UnansweredError(
            f"--prometheus: {url.rpartition('@')[2]}: {name}: {words}: name a Prometheus that answers"
        )
    samples = {
        name: [(series.labels, series.values[-1]) for series in answer.series if series.values]
        for name, answer in answers.items()
    }
    return read(samples, application=application)


class _UnansweredError(BallastError):
    """Prometheus gave no answer."""
