from __future__ import annotations

from typing import Any

import pytest

from ballast.controller.watching import News
from tests.unit.kube.builders import GATE, executor

JSON = dict[str, Any]


def policy(**metadata: Any) -> JSON:
    return {"metadata": {"uid": "uid-1", "generation": 1, **metadata}, "status": {}}


def test_a_new_object_is_news_once() -> None:
    news = News()
    assert news.of_spec(policy())
    assert not news.of_spec(policy())


def test_another_spec_is_news_and_a_status_is_none() -> None:
    news = News()
    news.of_spec(policy())
    assert not news.of_spec({**policy(), "status": {"nodes": {"total": 3}}})
    assert news.of_spec(policy(generation=2))


def test_an_object_that_goes_is_news() -> None:
    news = News()
    news.of_spec(policy())
    assert news.of_spec(policy(deletionTimestamp="2026-11-21T10:00:00Z"))


@pytest.mark.parametrize(
    "after",
    [
        executor(gates=[]),
        executor(gates=[GATE, {"name": "theirs"}]),
        executor(gates=[GATE], node="node-1"),
        executor(gates=[GATE], phase="Running"),
        executor(gates=[GATE], leaving=True),
    ],
)
def test_what_decisions_depend_on_is_news(after: JSON) -> None:
    news = News()
    assert news.of_pod(executor(gates=[GATE]))
    assert news.of_pod(after)


def test_what_nobody_decides_by_is_no_news() -> None:
    news = News()
    news.of_pod(executor(gates=[GATE]))
    assert not news.of_pod(executor(gates=[GATE], annotations={"seen": "yes"}))


def test_what_is_deleted_is_news_although_it_was_seen_leaving_and_is_forgotten() -> None:
    news = News()
    news.of_pod(executor(1, leaving=True))
    assert news.of_pod(executor(1, leaving=True), deleted=True)
    assert len(news) == 0
    news.of_spec(policy())
    assert news.of_spec(policy(), deleted=True)
    assert len(news) == 0
