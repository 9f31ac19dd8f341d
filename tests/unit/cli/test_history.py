from __future__ import annotations

import pytest

from ballast.errors import BallastError
from ballast.spark import session
from ballast.spark.history import Day, Done, unmeasured
from tests.unit.cli.program import run
from tests.unit.spark.faults import Answer, failure, matrix, serving


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--pool", "streaming"], "--pool: 'streaming': write NAME=VALUE"),
        (["--pool", "a=n1", "--pool", "a=n2"], "--pool: 'a': it is given twice: leave one out"),
        (["--pool", "a/b=n1"], "--pool: 'a/b': name it as a policy: at most 253 lower-case letters"),
        (["--pool", "a=n[1"], "--pool: 'n[1': write a regular expression of Python's that whole names match (unter"),
        (["--operator-namespace", 'x"} or up'], "--operator-namespace: 'x\"} or up': write the name of a namespace"),
        (["--header", "=secret"], "--header: '***': write NAME=VALUE"),
        (["--header", "secret"], "--header: '***': write NAME=VALUE"),
        (["--header", "secret="], "--header: '***': write NAME=VALUE"),
        (["--header", "Bearer secret=="], "--header: '***': write NAME=VALUE"),
        (["--header", "Authorization: Basic secret=="], "--header: 'Authorization': write NAME=VALUE"),
        (["--header", "Authorization: secret"], "--header: 'Authorization': write NAME=VALUE"),
        (["--header", "X=secret", "--header", "X=2"], "--header: 'X': it is given twice: leave one out"),
        (["--step", "2h"], "--step: '2h': write a span of whole seconds, from 1s to 1h"),
        (["--step", "7m"], "--step: '7m': write a span that divides a day: the nearest are 400s and 432s"),
        (["--window", "1500ms"], "--window: '1500ms': write a span of whole seconds, from 5s to 1h"),
        (["--from", "2999-01-01"], "--from: '2999-01-01': name a day that has begun: in UTC it is 2"),
        (["--from", "2026-01-01", "--to", "2999-01-01"], "--to: '2999-01-01': name a day that has begun"),
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
    assert told.code == 2
    assert words in told.err
    assert "secret" not in told.err


def test_an_address_without_its_scheme_is_refused_before_spark_is_started() -> None:
    told = run("history", "--prometheus", "prometheus:9090")
    assert told.code == 2
    assert "'prometheus:9090': write an address with its scheme" in told.err


def test_a_password_in_an_address_without_its_scheme_is_not_shown() -> None:
    told = run("history", "--prometheus", "me:secret@prometheus:9090")
    assert "'prometheus:9090': write an address with its scheme" in told.err
    assert "secret" not in told.err


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str, *, master: str | None = None) -> None:
        raise AssertionError(f"{name}: Spark was started, on {master}")

    monkeypatch.setattr(session, "session", refused)


@pytest.mark.usefixtures("without_spark")
def test_a_prometheus_that_cannot_be_reached_is_told_before_spark_is_started() -> None:
    told = run("history", "--prometheus", "http://127.0.0.1:1")
    assert told.code == 1
    assert told.err.startswith("Error: --prometheus: http://127.0.0.1:1: can't be reached: ")
    assert "Connection refused" in told.err
    assert "kubectl port-forward" in told.err
    assert len(told.err.splitlines()) == 1


@pytest.mark.usefixtures("without_spark")
def test_a_prometheus_that_is_silent_is_waited_for_as_long_as_was_said() -> None:
    with serving(Answer(never=True), Answer(never=True)) as server:
        told = run("history", "--prometheus", server.url, "--timeout", "200ms")
    assert told.code == 1
    assert "no answer within 0.2 s" in told.err


@pytest.mark.usefixtures("without_spark")
def test_a_prometheus_that_lets_nobody_in_is_told_before_spark_is_started() -> None:
    with serving(failure(403, "forbidden", "who are you")) as server:
        told = run("history", "--prometheus", server.url)
    assert told.code == 1
    assert "who are you" in told.err
    assert "--bearer-token-file" in told.err


def test_spark_is_started_once_prometheus_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(name: str, *, master: str | None = None) -> None:
        raise BallastError(f"{name} starts Spark on {master}")

    monkeypatch.setattr(session, "session", started)
    with serving(matrix()) as server:
        told = run("history", "--prometheus", server.url, "--master", "local[1]")
    assert told.err == "Error: ballast history starts Spark on local[1]\n"
    assert [asked.path for asked in server.asked] == ["/api/v1/query_range"]


def test_37_signals_without_any_value_are_named() -> None:
    day = Day.parse("2026-11-18", field="--from")
    nodes = frozenset({"nodeCpu", "nodeMemory"})
    done = [
        Done(day, "streaming", rows=9, empty=nodes | {"nodePressure"}),
        Done(day.plus(1), "streaming", rows=9, empty=nodes),
        Done(day, "whole", rows=9),
        Done(day, "without-rows", empty=frozenset()),
        Done(day, None),
    ]
    (told,) = unmeasured(done)
    assert told.startswith("pool streaming: no values of nodeCpu, nodeMemory: --preset names")
