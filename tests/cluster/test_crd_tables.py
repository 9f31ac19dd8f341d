"""The real API server judges the tables of good and bad objects."""

from __future__ import annotations

import pytest

from tests.cluster.crds.server import Server
from tests.cluster.crds.table import Case, cases, value_at

pytestmark = pytest.mark.cluster
ACCEPTED = [case for case in cases("updates") if not case.field]
REFUSED = [case for case in cases("updates") if case.field]


@pytest.mark.parametrize("case", cases("good"), ids=str)
def test_a_good_object_is_taken_without_a_warning(case: Case, crd_server: Server) -> None:
    answer = crd_server.create(case.object)

    assert (answer.code, answer.warnings) == (201, ""), answer.message


@pytest.mark.parametrize("case", cases("bad"), ids=str)
def test_a_bad_object_is_refused_with_the_field_and_the_remedy(case: Case, crd_server: Server) -> None:
    answer = crd_server.create(case.object)

    assert answer.code in {400, 422}, answer
    assert case.field in answer.message
    assert [part for part in case.says if part not in answer.message] == [], answer.message


@pytest.mark.parametrize("case", cases("bad"), ids=str)
def test_a_refusal_speaks_of_rules_that_could_be_judged(case: Case, crd_server: Server) -> None:
    answer = crd_server.create(case.object)

    assert "evaluating rule" not in answer.message


@pytest.mark.parametrize("case", cases("defaults"), ids=str)
def test_every_default_arrives(case: Case, crd_server: Server) -> None:
    answer = crd_server.create(case.object)

    assert answer.code == 201, answer.message
    assert {path: value_at(answer.body, path) for path in case.expect} == case.expect


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_an_allowed_change_is_taken(case: Case, crd_server: Server) -> None:
    with crd_server.existing(case.before) as stored:
        answer = crd_server.replace(stored, case.object)

    assert answer.code == 200, answer.message


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_forbidden_change_is_refused_with_the_field_and_the_remedy(case: Case, crd_server: Server) -> None:
    with crd_server.existing(case.before) as stored:
        answer = crd_server.replace(stored, case.object)

    assert answer.code == 422, answer
    assert case.field in answer.message
    assert [part for part in case.says if part not in answer.message] == [], answer.message
