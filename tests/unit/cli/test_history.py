from __future__ import annotations

import pytest

from tests.unit.cli.program import run


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pool", "streaming"], "--pool: 'streaming': write NAME=VALUE"),
        (["--header", "=x"], "--header: '=x': write NAME=VALUE"),
        (["--step", "often"], "--step: 'often': write a span such as 15s"),
        (["--from", "yesterday"], "--from: 'yesterday': write a day such as 2026-11-21"),
        (["--timeout", "soon"], "--timeout: 'soon': write a span such as 15s"),
        (["--to", "2026-13-01"], "--to: '2026-13-01': write a day"),
        (
            ["--from", "2026-11-21", "--to", "2026-11-20"],
            "--to: '2026-11-20': name a day that is not before 2026-11-21",
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_named_before_spark_is_started(options: list[str], words: str) -> None:
    told = run("history", "--prometheus", "http://prometheus:9090", *options)
    assert told.code == 1
    assert words in told.err


def test_an_address_without_its_scheme_is_refused_before_spark_is_started() -> None:
    told = run("history", "--prometheus", "prometheus:9090")
    assert told.code == 2
    assert "'prometheus:9090': write an address with its scheme" in told.err
