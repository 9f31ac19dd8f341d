from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from ballast.kube.errors import Gone
from ballast.kube.kinds import POD
from ballast.kube.objects import Query, read_list
from tests.unit.kube.scripted import Answer, scripted

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
