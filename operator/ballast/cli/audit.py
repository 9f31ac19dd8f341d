"""`ballast audit`: whether streaming queries lost or duplicated records, by the ledger that they wrote."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ballast.cli.output import AS_TABLE, Format, Output, output_option, show, table, write
from ballast.cli.spark import with_spark
from ballast.errors import BallastError

if TYPE_CHECKING:
    from ballast.spark.audit.verdict import Entry, Status, Verdict

EXAMPLES = (
    "ballast audit /data/ledger",
    "ballast audit s3a://data/ledger --query clicks --timeout 5m",
    "ballast audit /data/ledger -o prometheus > /var/lib/node_exporter/ballast_audit.prom",
)

COLUMNS = (
    "BALANCED    micro-batches of which every stage consumed what was emitted to it",
    "OPEN        stages disagree, or one is not recorded yet, and the timeout is not over",
    "RECOMPUTED  stages disagree, but Spark before 4.3 ran tasks again and so counted records twice",
    "UNBALANCED  stages disagree: records were lost, duplicated or changed",
    "UNRECORDED  not in the ledger, but later micro-batches are",
    "RECORDS     that the sources emitted",
)


def audit(
    ledger: Annotated[
        str, typer.Argument(metavar="LEDGER", help="Folder of the ledger: a local path, or a URI such as s3a://…")
    ],
    query: Annotated[str | None, typer.Option(help="Only this query. If unset: all.", metavar="NAME")] = None,
    timeout: Annotated[
        str, typer.Option(help="Time for the stages of a micro-batch to agree.", metavar="DURATION")
    ] = "1m",
    output: Annotated[
        Output,
        output_option(
            Format.TABLE, Format.JSON, Format.YAML, Format.JSONPATH, Format.PROMETHEUS, more="; prometheus: as metrics"
        ),
    ] = AS_TABLE,
) -> None:
    """Show for each micro-batch whether its stages agree, and where they don't.

    Exit code 0: no micro-batch is unbalanced or unrecorded. 1: at least one is, or the ledger can't be read.
    """
    with with_spark():
        from ballast.spark.audit.verdict import verdicts  # noqa: PLC0415 -- Spark takes seconds to load
        from ballast.spark.source.moment import span_ms  # noqa: PLC0415 -- as above

        timeout_ms = span_ms(timeout, field="--timeout")
        entries = [entry for entry in _entries(ledger) if query in (None, entry.query)]
        if not entries:
            of_query = f" of the query {query}" if query is not None else ""
            raise BallastError(f"{ledger}: no micro-batch{of_query} is recorded here yet")
        found = verdicts(entries, now_ms=time.time_ns() // 1_000_000, timeout_ms=timeout_ms)
    _print(found, output)
    if any(verdict.status.is_finding for verdict in found):
        raise typer.Exit(1)


def _entries(ledger: str) -> list[Entry]:
    from ballast.spark.audit.ledger import read, read_anywhere  # noqa: PLC0415 -- as above

    if "://" not in ledger:
        return read(Path(ledger))
    from ballast.spark.session import session  # noqa: PLC0415 -- as above

    return read_anywhere(session("ballast audit"), ledger)


def _print(found: Sequence[Verdict], output: Output) -> None:
    if output.form is Format.TABLE:
        show(*_tables(found))
    elif output.form is Format.PROMETHEUS:
        typer.echo("\n".join(_metrics(found)))
    else:
        write([_document(verdict) for verdict in found], output)


def _counts(found: Sequence[Verdict]) -> dict[str, Counter[Status]]:
    counts: dict[str, Counter[Status]] = {}
    for verdict in found:
        counts.setdefault(verdict.query, Counter())[verdict.status] += 1
    return counts


def _tables(found: Sequence[Verdict]) -> list[Any]:
    from ballast.spark.audit.verdict import Status  # noqa: PLC0415 -- as above

    records: Counter[str] = Counter()
    for verdict in found:
        records[verdict.query] += verdict.records
    rows = [
        [query, str(counts.total()), *(str(counts[status]) for status in Status), str(records[query])]
        for query, counts in _counts(found).items()
    ]
    numbers = ["BATCHES", *(status.upper() for status in Status), "RECORDS"]
    parts: list[Any] = [table(["QUERY", *numbers], rows, right=numbers, cut=["QUERY"])]
    details = [
        [verdict.query, str(verdict.batch), verdict.status.value, words]
        for verdict in found
        if verdict.status is not Status.BALANCED
        for words in ([str(gap) for gap in verdict.gaps] or ["nothing is recorded"])
    ]
    if details:
        columns = ["QUERY", "BATCH", "STATUS", "WHERE"]
        parts += [Text(), table(columns, details, right=["BATCH"], cut=["QUERY"], wrap=["WHERE"])]
    return [*parts, *_without(found)]


def _without(found: Sequence[Verdict]) -> list[Text]:
    """What is balanced only because nothing was recorded, as where a sink has lost whole micro-batches."""
    last = {(verdict.query, stage): verdict.batch for verdict in found for stage in verdict.without}
    lines = [
        f"{query}: micro-batches up to {batch} are judged without {stage}, of which nothing is recorded there"
        for (query, stage), batch in sorted(last.items())
    ]
    return [Text("\n".join(["", *lines]), overflow="fold")] if lines else []


def _document(verdict: Verdict) -> dict[str, Any]:
    return {
        "query": verdict.query,
        "batch": verdict.batch,
        "status": verdict.status.value,
        "records": verdict.records,
        "without": list(verdict.without),
        "gaps": [
            {
                "stage": gap.stage,
                "after": list(gap.after),
                "expected": gap.expected.count,
                "consumed": None if gap.consumed is None else gap.consumed.count,
                "difference": gap.difference,
            }
            for gap in verdict.gaps
        ],
    }


def _metrics(found: Sequence[Verdict]) -> list[str]:
    from ballast.spark.audit.verdict import Status  # noqa: PLC0415 -- as above

    name = "ballast_audit_batches"
    return [
        f"# HELP {name} Micro-batches in the ledger, by what the audit says of them.",
        f"# TYPE {name} gauge",
        *(
            f'{name}{{query="{_escaped(query)}",status="{status}"}} {counts[status]}'
            for query, counts in _counts(found).items()
            for status in Status
        ),
    ]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
