"""JSON of the API server, whatever the depth that a user has given to a part of it."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.document import PAGE, decoded, parsed, seconds

DEEP = [900, 1_000, 2_000, 10_000]


def nested(levels: int) -> bytes:
    return b'{"f:a":' * levels + b"{}" + b"}" * levels


def pod(levels: int, *, name: str = "deep") -> bytes:
    fields = b'[{"manager":"m]}\\"{","fieldsV1":' + nested(levels) + b"}]"
    return b'{"metadata":{"managedFields":' + fields + b',"name":"' + name.encode() + b'"},"spec":{"a":[1]}}'


@pytest.mark.parametrize("levels", DEEP)
def test_an_object_is_read_without_what_nests_too_deeply(levels: int) -> None:
    found = parsed(pod(levels))
    assert found["metadata"]["name"] == "deep"
    assert found["metadata"]["managedFields"][0]["manager"] == 'm]}"{'
    assert found["spec"] == {"a": [1]}


@pytest.mark.parametrize("levels", DEEP)
def test_a_page_with_such_an_object_has_all_of_its_objects(levels: int) -> None:
    page = b'{"metadata":{"resourceVersion":"7"},"items":[' + pod(levels) + b"," + pod(1, name="other") + b"]}"
    read = decoded(PAGE.decode, page)
    assert read.metadata.resource_version == "7"
    assert [parsed(item)["metadata"]["name"] for item in read.items or ()] == ["deep", "other"]


@pytest.mark.parametrize("bytes_", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
@pytest.mark.parametrize("levels", [1, 2_000])
def test_bytes_that_are_no_text_hide_no_object(bytes_: bytes, levels: int) -> None:
    """The API server returns those of managedFields as a user wrote them, and one pod ended every list and watch."""
    odd = pod(levels, name="odd").replace(b"f:a", b"f:" + bytes_, 1)
    page = decoded(PAGE.decode, b'{"items":[' + odd + b"," + pod(1, name="other") + b"]}")
    assert [parsed(item)["metadata"]["name"] for item in page.items or ()] == ["odd", "other"]


@pytest.mark.parametrize("text", [nested(2_000)[:-1], nested(2_000) + b"}", b"[" * 2_000, b'{"a":' * 2_000 + b'"'])
def test_what_is_no_object_is_refused_however_deep(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parsed(text)


SHALLOW = st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))


@given(st.dictionaries(st.text(), SHALLOW), st.sampled_from([None, 1]))
def test_all_that_is_not_too_deep_stays_as_it_is(document: dict[str, Any], indent: int | None) -> None:
    deep = json.dumps(document, indent=indent, ensure_ascii=False)
    end = deep.rstrip().removesuffix("}").rstrip()
    more = f'{end}{"," if document else ""}"~deep":{nested(sys.getrecursionlimit()).decode()}}}'
    found = parsed(more.encode())
    del found["~deep"]
    assert found == {name: value for name, value in document.items() if name != "~deep"}


@pytest.mark.parametrize(
    "text", ["0000-01-01T00:00:00Z", "-0001-12-31T01:00:00.000000Z", "10000-01-01T22:59:59.000000Z", "", None]
)
def test_a_time_that_can_not_be_counted_is_none(text: str | None) -> None:
    """The API server takes these years."""
    assert seconds(text) is None
