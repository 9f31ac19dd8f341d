"""The report as a page: whole, and needing nothing but itself."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from examples.demo.report import report, unfinished
from examples.demo.verdict import Verdict
from tests.unit.demo.builders import move, played

VOID = {"meta", "br", "hr"}
ORIGIN = "2026-11-22 21:00 UTC by ballast 0.1.0"
FETCHING = {"src", "href", "xlink:href", "srcset", "data"}


def page_of(**changes: Any) -> str:
    made = played(**changes)
    return report(made, Verdict.on(made.findings), made=ORIGIN)


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in FETCHING]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in FETCHING]


def test_the_verdict_is_followed_by_when_the_page_was_made() -> None:
    assert f"</h1><p>Made {ORIGIN}.</p>" in page_of()


@pytest.fixture
def page() -> Page:
    found = Page()
    found.feed(page_of())
    found.close()
    return found


def test_every_element_is_closed(page: Page) -> None:
    assert page.open == []


def test_it_asks_for_nothing_from_elsewhere(page: Page) -> None:
    assert page.fetched == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not re.search(r"https?:|url\(|@import", page_of())


def test_it_draws_two_zones_three_times_and_the_scores_and_the_batches_in_two_sizes(page: Page) -> None:
    assert page.tags.count("svg") == 2 * 3 + 2 * 2


def test_it_has_colors_for_dark_and_room_for_narrow_screens() -> None:
    text = page_of()
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


def test_names_from_the_cluster_can_not_break_out() -> None:
    assert "<script" not in page_of(move=move(message="<script>alert(1)</script>"))
    assert "<script" not in page_of(move=move(phase="Failed", message="<script>alert(1)</script>"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (page_of(), "Passed: nearer placement"),
        (
            page_of(move=move(reason="Inconclusive", message="why")),
            "Failed: the move ended Succeeded, Inconclusive: why",
        ),
        (unfinished(Verdict(["no executors run\nand a log"]), made=ORIGIN), "Failed: no executors run<"),
    ],
)
def test_its_first_words_are_the_verdict(text: str, words: str) -> None:
    body = text[text.index("<body>") :]
    assert re.sub(r"^<body><main><h1[^>]*>", "", body).startswith(words)
