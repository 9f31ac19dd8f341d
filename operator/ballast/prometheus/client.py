"""Asking Prometheus: a few queries at a time, each of them within its own deadline, and answers as plain values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import floor, inf
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from ballast.prometheus.endpoint import AnswerTooLongError, Endpoint, PrometheusError, shown
from ballast.prometheus.envelope import UNREADABLE, data_of
from ballast.prometheus.preset import Queries
from ballast.prometheus.series import Answer, Series, single

if TYPE_CHECKING:
    from ballast.prometheus.session import Transport

_AT_ONCE = 4
_QUOTES_OF_VALUE, _BYTES_OF_VALUE = 32, 512
"""More than usual, in the text of one series: each label has four quotes."""
_ANSWER_BYTES = 32 << 20
"""Of one answer at most: a hundred thousand series take about 20 MiB."""
_LONGEST_SINGLE_BYTES = 64 << 10
"""Of an answer that should have one series: a user's queries may select all series that there are."""
_NONE: Mapping[str, Sequence[str]] = {}
MOST_VALUES = 250_000
"""In all answers that are asked for together. As an object, a value takes half a kilobyte, and any pod may export very
many.
"""
_STORED_SECONDS = 1.0
"""A scrape carries the time at which it began, and is stored when it has ended."""


def settled(now: float) -> float:
    """The newest whole second of which all is stored at `now`, both in seconds since the epoch.

    What is asked about it has the same answer later, at any step of a range query of whole seconds.
    """
    return float(floor(now - _STORED_SECONDS))


class Prometheus:
    """A server that is asked instant queries. Thread-safe. `clock`: seconds since the epoch."""

    def __init__(self, endpoint: Endpoint, *, clock: Callable[[], float] = time.time) -> None:
        """Raises PrometheusError or InvalidField for an endpoint that can't be used."""
        from ballast.prometheus.session import Transport  # noqa: PLC0415 -- requests takes a third of a second

        self._transport = Transport(endpoint, clock=clock, most_bytes=_ANSWER_BYTES)
        self._short = Transport(endpoint, clock=clock, most_bytes=_LONGEST_SINGLE_BYTES)

    def query(self, text: str, *, at: float | None = None) -> Answer:
        """The result of one instant query, as of `at` (seconds since the epoch) or now. Raises PrometheusError."""
        return _asked(self._transport, text, at=at)

    def labels(self, text: str, *, at: float) -> tuple[Mapping[str, str], ...]:
        """Labels of the series of a short answer. Raises PrometheusError."""
        return tuple(series.labels for series in _asked(self._short, text, at=at).series)

    def ask(
        self, wanted: Queries, window_seconds: float, *, at: float | None = None, most_values: float = MOST_VALUES
    ) -> tuple[dict[str, Answer], dict[str, str]]:
        """As `query_all`, with fewer series of each namespace where there are too many of all."""
        texts, shortened = wanted.rendered(window_seconds), wanted.shortened(window_seconds)
        return self.query_all(texts, at=at, shortened=shortened, most_values=most_values)

    def query_all(
        self,
        texts: Mapping[str, str],
        *,
        at: float | None = None,
        shortened: Mapping[str, Sequence[str]] = _NONE,
        most_values: float = inf,
    ) -> tuple[dict[str, Answer], dict[str, str]]:
        """Answers by name, and for those that failed, why. All of them as of the same moment, if it is given.

        `shortened`: by name, what to ask instead where the answer is too long, one after the other. `most_values`: in
        all answers together; one that has more than are left is too long.
        """
        allowance = _Allowance(most_values)
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="prometheus") as threads:
            asked = {
                name: threads.submit(self._outcome, text, shortened.get(name, ()), at=at, allowance=allowance)
                for name, text in texts.items()
            }
        answers: dict[str, Answer] = {}
        failures: dict[str, str] = {}
        for name, future in asked.items():
            if isinstance(outcome := future.result(), Answer):
                answers[name] = outcome
            else:
                failures[name] = outcome
        return answers, failures

    def _outcome(self, text: str, instead: Sequence[str], *, at: float | None, allowance: _Allowance) -> Answer | str:
        """The answer, or why there is none: the error itself would keep the text of a long answer in memory."""
        try:
            return self._longest_read(text, instead, at=at, allowance=allowance)
        except PrometheusError as error:
            return str(error)

    def _longest_read(self, text: str, instead: Sequence[str], *, at: float | None, allowance: _Allowance) -> Answer:
        """The answer to `text`, or to the first of `instead` whose answer is not too long."""
        try:
            return _asked(self._transport, text, at=at, allowance=allowance)
        except AnswerTooLongError:
            if not instead:
                raise
        # After the error, which keeps the text of the long answer.
        return replace(self._longest_read(instead[0], instead[1:], at=at, allowance=allowance), shortened=True)

    def single_all(self, texts: Mapping[str, str], *, at: float, within_seconds: float) -> dict[str, Answer]:
        """The answers to queries that users have written, by name, each reduced to its one value if it has one.

        Queries that fail, or could not begin within `within_seconds`, are left out: the pass waits for the others.
        """
        until = time.monotonic() + within_seconds

        def ask(text: str) -> Answer | None:
            if time.monotonic() >= until:
                return None
            try:
                return _one_value(_asked(self._short, text, at=at))
            except PrometheusError:
                return None

        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="prometheus") as threads:
            answers = zip(texts, threads.map(ask, texts.values()), strict=True)
            return {name: answer for name, answer in answers if answer is not None}


class _Allowance:
    """How many values answers may still have: each takes some fifteen times the memory that its text does.

    Thread-safe. One answer at a time is read from its text.
    """

    def __init__(self, most_values: float) -> None:
        self._left, self._lock = most_values, Lock()

    def read(self, body: bytes) -> Answer:
        """Raises PrometheusError; AnswerTooLongError where it has more values than are left."""
        # Each has its time in brackets. A series may have any number of labels, and these any length.
        values = max(body.count(b"["), body.count(b'"') // _QUOTES_OF_VALUE, len(body) // _BYTES_OF_VALUE)
        with self._lock:
            if values > self._left:
                raise AnswerTooLongError(
                    f"its answers have too many values ({values} in this one): select fewer series"
                )
            self._left -= values
            return parsed(body)


def _asked(transport: Transport, text: str, *, at: float | None, allowance: _Allowance | None = None) -> Answer:
    fetched = transport.instant(text, at=at)
    answer = parsed(fetched.body) if allowance is None else allowance.read(fetched.body)
    return replace(answer, ahead_seconds=fetched.ahead_seconds)


def _one_value(answer: Answer) -> Answer:
    """The answer without labels, which may be as long as the answer."""
    value = single(answer)
    return replace(answer, series=() if value is None else (Series({}, (value,)),))


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    """Of an instant vector: time and number."""
    values: list[tuple[float, str]] | None = None
    """Of a range."""


# Built when this module is loaded: msgspec 0.22 crashes where several threads are the first to decode a type at once.
_SAMPLE = msgspec.json.Decoder(_Sample)


def parsed(body: bytes) -> Answer:
    """The series of a query's answer; what of it is malformed is counted. Raises PrometheusError if all of it is."""
    data = data_of(body)
    if data.result_type not in ("vector", "matrix"):
        raise PrometheusError(f"it gives a {shown(data.result_type)}, not a vector: wrap it in vector(…)")
    try:
        found = [_series(raw) for raw in msgspec.json.decode(data.result, type=list[msgspec.Raw])]
    except UNREADABLE:
        raise PrometheusError("its answer is not one of Prometheus") from None
    sound = tuple(each for each in found if each is not None)
    return Answer(sound, malformed=len(found) - len(sound))


def _series(raw: msgspec.Raw) -> Series | None:
    try:
        sample = _SAMPLE.decode(raw)
        points = [sample.value] if sample.value is not None else sample.values
        if points is None:
            return None
        return Series(sample.metric, tuple(float(text) for _, text in points), ranged=sample.value is None)
    except (*UNREADABLE, ValueError):
        return None
