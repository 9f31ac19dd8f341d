from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.errors import Conflict
from ballast.kube.kinds import EXECUTOR_MOVE, POD
from ballast.kube.objects import delete_object, difference, ensure_created, write_status
from tests.apiserver import Answer, scripted

JSON = dict[str, Any]


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({"a": 1}, {"a": 1}, {}, id="equal"),
        pytest.param({"a": 1}, {"a": 2}, {"a": 2}, id="changed"),
        pytest.param({"a": 1}, {}, {"a": None}, id="gone"),
        pytest.param({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 2}}, id="inside"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, {"a": [1]}, id="lists whole"),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="another shape"),
        pytest.param({}, {"a": {}}, {"a": {}}, id="an empty object"),
    ],
)
def test_a_merge_patch_holds_what_differs(old: JSON, new: JSON, patch: JSON) -> None:
    assert difference(old, new) == patch


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


LEAVES = st.one_of(st.integers(0, 3), st.booleans(), st.text("ab", max_size=2), st.lists(st.integers(0, 2), max_size=2))
OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), LEAVES, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), st.one_of(LEAVES, inner), max_size=3),
)


@given(OBJECTS, OBJECTS)
def test_the_patch_leads_from_the_old_to_the_new(old: JSON, new: JSON) -> None:
    assert merged(old, difference(old, new)) == new


@given(OBJECTS)
def test_equal_objects_need_no_patch(one: JSON) -> None:
    assert difference(one, one) == {}


SEEN: JSON = {"metadata": {"name": "m", "namespace": "ns", "uid": "u-1", "resourceVersion": "7"}}


CONFLICT = Answer(409, {"reason": "Conflict", "message": "the object has been modified"})


def after(*, version: str, **changes: Any) -> Answer:
    """The object that was seen, with another version."""
    return Answer(body={"status": {}, **SEEN, "metadata": {**SEEN["metadata"], "resourceVersion": version}, **changes})


def test_a_status_is_written_however_often_the_object_s_other_metadata_change(tmp_path: Path) -> None:
    written = Answer(body={"metadata": {"name": "m"}, "status": {"phase": "Refused"}})
    with scripted(CONFLICT, after(version="8"), CONFLICT, after(version="9"), written) as script:
        found = write_status(script.client(tmp_path), EXECUTOR_MOVE, SEEN, {"phase": "Refused"})
    assert found == written.body
    versions = [asked.body["metadata"]["resourceVersion"] for asked in script.writes]
    assert versions == ["7", "8", "9"]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"status": {"phase": "Leaving"}}, id="status"),
        pytest.param({"metadata": {**SEEN["metadata"], "generation": 2}}, id="spec"),
        pytest.param({"metadata": {**SEEN["metadata"], "uid": "u-2"}}, id="another object"),
        pytest.param({"metadata": {**SEEN["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}, id="it goes"),
    ],
)
def test_a_status_is_not_written_over_what_was_not_seen(tmp_path: Path, changed: JSON) -> None:
    with scripted(CONFLICT, after(version="8", **changed)) as script, pytest.raises(Conflict):
        write_status(script.client(tmp_path), EXECUTOR_MOVE, SEEN, {"phase": "Refused"})
    assert len(script.writes) == 1


def test_a_status_is_not_written_for_ever(tmp_path: Path) -> None:
    with scripted(CONFLICT, *[after(version="8"), CONFLICT] * 9) as script, pytest.raises(Conflict):
        write_status(script.client(tmp_path), EXECUTOR_MOVE, SEEN, {"phase": "Refused"})
    assert len(script.writes) == 4


@pytest.mark.parametrize(("answer", "deleted"), [(Answer(), True), (Answer(404), False)], ids=["there", "gone"])
def test_exactly_the_object_that_was_seen_is_deleted(answer: Answer, tmp_path: Path, *, deleted: bool) -> None:
    with scripted(answer) as script:
        assert delete_object(script.client(tmp_path), EXECUTOR_MOVE, SEEN) is deleted
    (asked,) = script.asked
    assert asked.path == "/apis/ballast.dev/v1alpha1/namespaces/ns/executormoves/m"
    assert asked.body["preconditions"] == {"uid": "u-1"}


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        pytest.param([Answer(201, SEEN)], (SEEN, True), id="it was created"),
        pytest.param([Answer(409, {"reason": "AlreadyExists"}), Answer(body=SEEN)], (SEEN, False), id="it was there"),
    ],
)
def test_an_object_is_created_unless_one_of_its_name_is_there(
    answers: list[Answer], found: tuple[JSON, bool], tmp_path: Path
) -> None:
    body = {"metadata": {"name": "m", "namespace": "ns"}}
    with scripted(*answers) as script:
        assert ensure_created(script.client(tmp_path), POD, body) == found
    assert {asked.path.split("?")[0].removesuffix("/m") for asked in script.asked} == {"/api/v1/namespaces/ns/pods"}
