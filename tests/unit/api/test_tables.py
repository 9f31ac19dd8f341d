"""The models judge objects as the API server does: the tables are the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ballast.api import BalancingPolicy, ExecutorMove, GateSwitch, SparkTopology
from ballast.api.crd import KINDS, Kind, schema
from ballast.api.meta import Resource
from ballast.errors import InvalidResource
from tests.cluster.crds.table import Case, cases, value_at

INDEX = re.compile(r"\[\d+]")
MODELS: dict[str, type[Resource]] = {
    "sparktopology": SparkTopology,
    "balancingpolicy": BalancingPolicy,
    "executormove": ExecutorMove,
    "gateswitch": GateSwitch,
}


@pytest.mark.parametrize("case", cases("good"), ids=str)
def test_a_good_object_is_read_and_written_back_as_it_was(case: Case) -> None:
    written = MODELS[case.kind].parse(case.object).to_dict()

    assert_contains(written["spec"], case.object["spec"])


@pytest.mark.parametrize("case", cases("good"), ids=str)
def test_reading_what_was_written_changes_nothing(case: Case) -> None:
    read = MODELS[case.kind].parse(case.object)

    assert MODELS[case.kind].parse(read.to_dict()) == read


@pytest.mark.parametrize("case", cases("bad"), ids=str)
def test_a_bad_object_is_refused_with_the_field_and_the_remedy(case: Case) -> None:
    with pytest.raises(InvalidResource) as refusal:
        MODELS[case.kind].parse(case.object)

    named = [problem for problem in refusal.value.problems if is_within(problem.field, case.field)]
    assert named, str(refusal.value)
    assert any(all(part in problem.remedy for part in case.python) for problem in named), str(refusal.value)


@pytest.mark.parametrize("case", cases("bad"), ids=str)
def test_a_bad_object_is_refused_for_nothing_else(case: Case) -> None:
    with pytest.raises(InvalidResource) as refusal:
        MODELS[case.kind].parse(case.object)

    assert all(is_within(problem.field, case.field) for problem in refusal.value.problems), str(refusal.value)


@pytest.mark.parametrize("case", cases("defaults"), ids=str)
def test_the_models_have_the_defaults_of_the_table(case: Case) -> None:
    written = MODELS[case.kind].parse(case.object).to_dict()

    assert {path: value_at(written, path) for path in case.expect} == case.expect


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_table_has_every_default_of_the_definition(kind: Kind) -> None:
    named = {path for case in cases("defaults") if case.kind == kind.name.lower() for path in leaves(case.expect)}
    declared = set(defaults(schema(kind)))

    assert {path for path in declared if not any(is_within(other, path) for other in named)} == set()


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """The paths of all values, `[]` for any item of a list; that of an empty map or list, too."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{INDEX.sub('[]', name)}".removeprefix("."))
    elif isinstance(value, list) and value:
        for inner in value:
            yield from leaves(inner, f"{path}[]")
    else:
        yield path


def defaults(part: Any, path: str = "") -> Iterator[str]:
    """The paths of everything in a schema that has a default."""
    if "default" in part:
        yield path
    for name, inner in part.get("properties", {}).items():
        yield from defaults(inner, f"{path}.{name}".removeprefix("."))
    if "items" in part:
        yield from defaults(part["items"], f"{path}[]")


def is_within(field: str, outer: str) -> bool:
    """Whether `field` is `outer` or, for a map or a list, in it."""
    return field == outer or field.startswith((f"{outer}.", f"{outer}[]"))


def assert_contains(whole: Any, part: Any) -> None:
    """Every value of `part` is in `whole`, which may hold more fields."""
    if isinstance(part, dict):
        for name, value in part.items():
            assert_contains(whole[name], value)
    elif isinstance(part, list):
        assert len(whole) == len(part)
        for one, other in zip(whole, part, strict=True):
            assert_contains(one, other)
    else:
        assert whole == part
