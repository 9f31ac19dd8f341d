"""`ballast size`: how large a pipeline should be, from what is declared and what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from math import inf
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from ballast import files
from ballast.api.topology_sizing import Goal, Sizing
from ballast.cli.access import address
from ballast.cli.output import AS_TEXT, TextOption, saved, show, writable, write
from ballast.cli.picture.page import ReportOption, origin
from ballast.errors import BallastError, InvalidField

_LONGEST_LINE_CHARACTERS = 256 << 20
"""Of a log: plans of SQL that Spark writes into one event have tens of megabytes."""
_COMPRESSED = (".zstd", ".zst")
_MOST_TIMES, _LEAST_CHARACTERS = 200, 256 << 20
"""By how much a compressed file may grow, and what any may say. Event logs grow twenty times."""
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


def _read(path: Path, option: str, reader: Any) -> Any:
    """What the reader makes of the file's lines. Raises InvalidField, naming the option."""
    with _opened(path, option) as file:
        try:
            return reader(_lines_of(file, path, option), str(path))
        except UnicodeDecodeError as error:
            raise InvalidField(option, str(path), "not text: name the right file, uncompressed") from error


@contextmanager
def _opened(path: Path, option: str) -> Iterator[IO[str]]:
    """Also a file that Spark compressed with zstd."""
    try:
        with path.open("rb") as raw:
            if path.suffix in _COMPRESSED:
                yield TextIOWrapper(_decompressed(raw, path, option), encoding="utf-8")
            elif path.suffix in (".lz4", ".snappy", ".lzf"):
                remedy = "this compression is Spark's own: write logs with spark.eventLog.compression.codec=zstd"
                raise InvalidField(option, str(path), remedy)
            else:
                yield TextIOWrapper(raw, encoding="utf-8")
    except OSError as error:
        raise InvalidField(option, str(path), f"{error.strerror or error}; name a file that can be read") from error


def _lines_of(file: IO[str], path: Path, option: str) -> Iterator[str]:
    """Raises InvalidField for one that is longer than any of Spark's: what is compressed may be as long as it likes.

    Likewise for a file that says far more than what is compressed of logs.
    """
    left = max(_LEAST_CHARACTERS, _MOST_TIMES * path.stat().st_size) if path.suffix in _COMPRESSED else inf
    while line := file.readline(_LONGEST_LINE_CHARACTERS + 1):
        if len(line) > _LONGEST_LINE_CHARACTERS:
            told = f"a line has more than {_LONGEST_LINE_CHARACTERS >> 20} Mi characters: name the right file"
            raise InvalidField(option, str(path), told)
        left -= len(line)
        if left < 0:
            told = f"it says more than {_MOST_TIMES} times of its length: name the right file, or decompress it"
            raise InvalidField(option, str(path), told)
        yield line


def _decompressed(raw: IO[bytes], path: Path, option: str) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra, needed for compressed logs only
    except ImportError:
        remedy = "install ballast-operator[spark] to read compressed logs, or decompress it: zstd -d FILE"
        raise InvalidField(option, str(path), remedy) from None
    return pa.CompressedInputStream(raw, "zstd")


def _event_log(path: Path) -> Any:
    """A file, a rolling log's folder, or a folder with one log in it."""
    from ballast.sizing import event_log  # noqa: PLC0415 -- unused without this option

    if not path.is_dir():
        return _read(path, "--event-log", event_log.read)
    parts = _parts(path)
    if not parts:
        remedy = "no event log in this folder: name the folder of spark.eventLog.dir, or a log in it"
        raise InvalidField("--event-log", str(path), remedy)
    return event_log.read(_lines(parts), str(path))


def _lines(parts: Sequence[Path]) -> Iterator[str]:
    for part in parts:
        with _opened(part, "--event-log") as file:
            yield from _lines_of(file, part, "--event-log")


def _parts(folder: Path) -> list[Path]:
    """The files of one application's log, in order. Raises InvalidField for several applications."""
    rolling = [each for each in folder.iterdir() if each.is_dir() and each.name.startswith("eventlog_v2_")]
    single = [each for each in folder.iterdir() if each.is_file() and not each.name.startswith((".", "appstatus_"))]
    if folder.name.startswith("eventlog_v2_"):
        return sorted((each for each in single if each.name.startswith("events_")), key=_place)
    if len(rolling) + len(single) > 1:
        names = ", ".join(sorted(each.name for each in (*rolling, *single))[:5])
        raise InvalidField("--event-log", str(folder), f"several logs in this folder: name one of {names}")
    return _parts(rolling[0]) if rolling else single


def _place(part: Path) -> int:
    """events_2_… comes before events_10_…."""
    number = part.name.split("_")[1]
    return int(number) if number.isascii() and number.isdecimal() else 0


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
    from ballast.sizing import gc_log as gc  # noqa: PLC0415 -- numpy, unused for --help
    from ballast.sizing import progress as batches  # noqa: PLC0415 -- as above
    from ballast.sizing.facts import Facts  # noqa: PLC0415 -- as above

    return Facts(
        declared=declared,
        progress=None if progress is None else _read(progress, "--progress", batches.read),
        log=None if event_log is None else _event_log(event_log),
        gc=None if gc_log is None else _read(gc_log, "--gc-log", gc.read),
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
