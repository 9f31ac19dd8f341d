from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.objects import difference

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
