from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from ballast.kube.answer import LONGEST_PAGE_BYTES
from ballast.kube.errors import AnswerTooLong, Gone
from ballast.kube.kinds import POD
from ballast.kube.objects import Query, read_list
from tests.apiserver import Answer, Asked, scripted

EXPIRED = Answer(410, {"message": "the provided continue parameter is too old"})


def page(*names: str, more: str = "") -> Answer:
    metadata: dict[str, Any] = {"resourceVersion": "9", **({"continue": more} if more else {})}
    return Answer(body={"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


def name(item: dict[str, Any]) -> str:
    return str(item["metadata"]["name"])


def test_pages_are_joined_and_the_newest_state_is_asked_for(tmp_path: Path) -> None:
    with scripted(page("a", "b", more="next"), page("c")) as script:
        listing = read_list(script.client(tmp_path), Query(POD, labels="x=y", fields="spec.nodeName=n"), name)
        asked = [parse_qs(urlparse(request.path).query) for request in script.asked]
    assert (listing.items, listing.resource_version) == (["a", "b", "c"], "9")
    first = {"limit": ["500"], "labelSelector": ["x=y"], "fieldSelector": ["spec.nodeName=n"]}
    assert asked == [first, {**first, "continue": ["next"]}]


def test_a_list_that_cannot_be_continued_is_started_again(tmp_path: Path) -> None:
    with scripted(page("old", more="next"), EXPIRED, page("a", more="next"), page("b")) as script:
        assert read_list(script.client(tmp_path), Query(POD), name).items == ["a", "b"]


def test_a_list_that_never_ends_is_given_up(tmp_path: Path) -> None:
    with scripted(EXPIRED) as script, pytest.raises(Gone):
        read_list(script.client(tmp_path), Query(POD), name)


def test_no_objects_are_an_empty_list(tmp_path: Path) -> None:
    with scripted(Answer(body={"metadata": {"resourceVersion": "1"}, "items": None})) as script:
        assert read_list(script.client(tmp_path), Query(POD), name).items == []


def long_pods(count: int) -> Callable[[Asked], Answer]:
    """A server with so many pods of a quarter of the longest page, and then as many short ones."""

    def answer(asked: Asked) -> Answer:
        query = parse_qs(urlparse(asked.path).query)
        first = int(query.get("continue", ["0"])[0])
        names = [str(number) for number in range(first, min(2 * count, first + int(query["limit"][0])))]
        last = first + len(names)
        whole = page(*names, more=str(last) if last < 2 * count else "")
        for item in whole.body["items"][: max(0, count - first)]:
            item["spec"] = "x" * (LONGEST_PAGE_BYTES // 4)
        return whole

    return answer


def test_of_objects_that_are_long_fewer_are_asked_for_at_a_time(tmp_path: Path) -> None:
    """A user may create hundreds of pods of a megabyte and a half, and a page of them is more than our memory."""
    with scripted() as script:
        script.by = long_pods(5)
        listing = read_list(script.client(tmp_path), Query(POD, page=32), name)
        limits = [int(parse_qs(urlparse(request.path).query)["limit"][0]) for request in script.asked]
    assert listing.items == [str(number) for number in range(10)]
    assert limits == [32, 4, 1, 1, 1, 1, 1, 1, 4]


def test_one_object_that_is_too_long_ends_the_list(tmp_path: Path) -> None:
    text = "x" * (LONGEST_PAGE_BYTES + 1)
    with scripted(Answer(text=text)) as script, pytest.raises(AnswerTooLong, match="more than 16 MiB"):
        read_list(script.client(tmp_path), Query(POD, page=2), name)
