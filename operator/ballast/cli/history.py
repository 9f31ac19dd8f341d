"""`ballast history`: what happened in a cluster, out of Prometheus into Parquet."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

import typer

from ballast.cli.access import address
from ballast.cli.matchers import MatcherOption, matchers
from ballast.cli.output import console
from ballast.cli.source import SYSTEM_NAMESPACE
from ballast.cli.spark import progress, with_spark
from ballast.errors import InvalidField
from ballast.listing import named
from ballast.prometheus import Preset

if TYPE_CHECKING:
    from ballast.spark.history import Origin, Range

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LONGEST_NAME = 253
"""As of any resource of Kubernetes."""
_MOST_NAMED = 5

EXAMPLES = (
    "ballast history --prometheus http://prometheus:9090",
    "ballast history --prometheus http://prometheus:9090 --from 2026-11-18 --to 2026-11-19",
    "ballast history --prometheus http://prometheus:9090 --path s3a://data/ballast",
    "ballast history --prometheus http://prometheus:9090 --pool 'streaming=ip-10-0-.*'",
)


def history(
    prometheus: Annotated[
        str,
        typer.Option(help="Where Prometheus answers, such as http://localhost:9090.", metavar="URL", callback=address),
    ],
    path: Annotated[
        str, typer.Option(help="Folder to keep it in: a local path, or a URI such as s3a://…", metavar="FOLDER")
    ] = "history",
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="First day (UTC) to collect, also if it is there. Default: all days that are missing.",
            metavar="DAY",
        ),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last day (UTC). Default: today.", metavar="DAY")] = None,
    back: Annotated[
        int, typer.Option(min=1, max=3650, help="Days to go back where there is no history yet.", metavar="N")
    ] = 7,
    step: Annotated[str, typer.Option(help="Time between two samples of a series.", metavar="DURATION")] = "60s",
    window: Annotated[
        str, typer.Option(help="Time that rates are measured over, as in the policy.", metavar="DURATION")
    ] = "2m",
    delay: Annotated[
        str, typer.Option(help="How old samples are when all of them are there.", metavar="DURATION")
    ] = "5m",
    preset: Annotated[Preset, typer.Option(help="How Prometheus is set up.")] = Preset.KUBE_PROMETHEUS_STACK,
    matcher: MatcherOption = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=REGEX of its nodes' whole names, once for each. Default: the operator's policies.",
            metavar="POOL",
        ),
    ] = None,
    operator_namespace: Annotated[
        str,
        typer.Option(
            help="Where the operator runs: of the series of its metrics, others are left out.", metavar="NAMESPACE"
        ),
    ] = SYSTEM_NAMESPACE,
    header: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, sent to Prometheus.", metavar="HEADER")] = None,
    bearer_token_file: Annotated[
        str | None, typer.Option(help="File with a token for Prometheus.", metavar="FILE")
    ] = None,
    ca_file: Annotated[str | None, typer.Option(help="File with the certificates to trust.", metavar="FILE")] = None,
    certificate_file: Annotated[
        str | None, typer.Option(help="File with the certificate to show to Prometheus.", metavar="FILE")
    ] = None,
    key_file: Annotated[
        str | None, typer.Option(help="Its key, if that is not in the same file.", metavar="FILE")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Sent as X-Scope-OrgID.", metavar="ID")] = None,
    proxy: Annotated[
        str | None, typer.Option(help="HTTP proxy to go through.", metavar="URL", callback=address)
    ] = None,
    aws_region: Annotated[
        str | None,
        typer.Option(help="Sign for Amazon Managed Service for Prometheus in this region.", metavar="REGION"),
    ] = None,
    timeout: Annotated[str, typer.Option(help="For one answer of Prometheus.", metavar="DURATION")] = "2m",
    master: Annotated[
        str | None, typer.Option(help="Spark master. Default: spark-submit's own, or local[*].", metavar="URL")
    ] = None,
) -> None:
    """Keep usage, placements, moves and refusals as Parquet, a file or several for each day and pool.

    Days that are there and complete are left out, except those named by --from, which are collected again: a file is
    replaced only if it would change, in one moment, and never by one with fewer rows.
    """
    given = {
        "bearerTokenFile": bearer_token_file,
        "caFile": ca_file,
        "certificateFile": certificate_file,
        "keyFile": key_file,
        "tenant": tenant,
        "proxy": proxy,
        "awsRegion": aws_region,
        "timeout": timeout,
        "url": prometheus,
    }
    headers = {f"headers.{name}": value for name, value in _headers(header).items()}
    source = {**{name: value for name, value in given.items() if value is not None}, **headers}
    with with_spark():
        from ballast.spark.history import Origin, ask_once  # noqa: PLC0415 -- Spark takes seconds to load
        from ballast.spark.source.moment import span_ms  # noqa: PLC0415 -- as above

        span_ms(timeout, field="--timeout")
        origin = Origin(
            source,
            preset,
            step_ms=_step_ms(step),
            window_ms=_span_ms(window, field="--window", least="5s", most="1h"),
            operator=_namespace(operator_namespace),
            pools=_pools(pool),
            matchers=matchers(matcher),
        )
        now_ms = time.time_ns() // 1_000_000
        wanted = _range(first, last, back=back, now_ms=now_ms, delay_ms=span_ms(delay, field="--delay"))
        ask_once(source, now_ms=now_ms)
        _collect(origin, wanted, path=path, master=master)


def _step_ms(text: str) -> int:
    """Raises InvalidField."""
    from ballast.spark.history.schema import DAY_MS  # noqa: PLC0415 -- Spark takes seconds to load

    step_ms = _span_ms(text, field="--step", least="1s", most="1h")
    if DAY_MS % step_ms:
        # Steps are counted from midnight: over it, one that does not divide the day leaves a shorter one.
        below = next(ms for ms in range(step_ms, 0, -1000) if DAY_MS % ms == 0)
        above = next(ms for ms in range(step_ms, DAY_MS, 1000) if DAY_MS % ms == 0)
        remedy = f"write a span that divides a day: the nearest are {below // 1000}s and {above // 1000}s"
        raise InvalidField("--step", text, remedy)
    return step_ms


def _span_ms(text: str, *, field: str, least: str, most: str) -> int:
    """Raises InvalidField."""
    from ballast.spark.source.moment import span_ms  # noqa: PLC0415 -- as above

    milliseconds = span_ms(text, field=field)
    if milliseconds % 1000 or not span_ms(least, field=field) <= milliseconds <= span_ms(most, field=field):
        raise InvalidField(field, text, f"write a span of whole seconds, from {least} to {most}")
    return milliseconds


def _range(first: str | None, last: str | None, *, back: int, now_ms: int, delay_ms: int) -> Range:
    """Raises InvalidField."""
    from ballast.spark.history import Day, Range  # noqa: PLC0415 -- as above

    begin = Day.parse(first, field="--from") if first else None
    end = Day.parse(last, field="--to") if last else None
    today = Day.of(now_ms)
    for field, text, day in (("--from", first, begin), ("--to", last, end)):
        if day is not None and day > today:
            raise InvalidField(field, text, f"name a day that has begun: in UTC it is {today}")
    if begin is not None and end is not None and end < begin:
        raise InvalidField("--to", last, f"name a day that is not before {begin}")
    ripe_ms = now_ms - delay_ms
    return Range(begin, end, otherwise=Day.of(ripe_ms).plus(-back), ripe_ms=ripe_ms)


def _collect(origin: Origin, wanted: Range, *, path: str, master: str | None) -> None:
    from ballast.spark.history import (  # noqa: PLC0415 -- as above
        Store,
        checked_once,
        collected,
        newcomers,
        planned,
        strangers,
        unmeasured,
    )
    from ballast.spark.session import session  # noqa: PLC0415 -- as above
    from ballast.spark.source.moment import as_rfc3339  # noqa: PLC0415 -- as above

    spark = session("ballast history", master=master)
    store = Store(spark, path)
    done = []
    with store.alone(), progress(console()) as bar:
        stretches = planned(store, origin, wanted)
        for pool in newcomers(store, origin) if wanted.first is None and stretches else ():
            before = f"no day before {stretches[0].day} is there, collect them with --from"
            bar.console.print(f"pool {pool}: {before}", soft_wrap=True)
        for stretch in bar.track(stretches, description="days"):
            for each in collected(spark, store, origin, stretch):
                done.append(each)
                bar.console.print(str(each), soft_wrap=True)
        for sentence in unmeasured(done):
            bar.console.print(sentence, soft_wrap=True)
        left_out = strangers(origin, stretches) if stretches else []
        if left_out:
            bar.console.print(
                f"left out: metrics of the operator's that pods in {named(left_out, most=_MOST_NAMED)} export, and it "
                f"runs in {origin.operator} (--operator-namespace)",
                soft_wrap=True,
            )
        if not stretches:
            until = as_rfc3339(wanted.ripe_ms)
            bar.console.print(f"{path}: nothing to collect of what was known at {until}", soft_wrap=True)
    checked_once(done)


def _pools(texts: list[str] | None) -> dict[str, re.Pattern[str]]:
    """Raises InvalidField."""
    pools = {}
    for name, expression in _pairs(texts, field="--pool").items():
        if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
            raise InvalidField(
                "--pool", name, "name it as a policy: at most 253 lower-case letters, digits, dots and dashes"
            )
        try:
            pools[name] = re.compile(expression)
        except re.error as error:
            raise InvalidField(
                "--pool", expression, f"write a regular expression of Python's that whole names match ({error})"
            ) from None
    return pools


def _namespace(text: str) -> str:
    """Raises InvalidField. It becomes a part of queries."""
    if not _NAMESPACE.fullmatch(text):
        raise InvalidField("--operator-namespace", text, "write the name of a namespace")
    return text


def _headers(texts: list[str] | None) -> dict[str, str]:
    """Raises InvalidField. Only what is certainly a name is shown: the rest may be a secret."""
    for text in texts or ():
        if not re.fullmatch(r"[^\s:=]+=.+", text, re.DOTALL):
            name = re.match(r"([^\s:=]+)\s*[:=]\s*[^\s=]", text)
            raise InvalidField("--header", name[1] if name else "***", "write NAME=VALUE")
    return _pairs(texts, field="--header")


def _pairs(texts: list[str] | None, *, field: str) -> dict[str, str]:
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InvalidField(field, text, "write NAME=VALUE")
        if name in pairs:
            raise InvalidField(field, name, "it is given twice: leave one out")
        pairs[name] = value
    return pairs
