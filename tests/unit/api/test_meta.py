from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ballast.api import BalancingPolicy, ExecutorMove, SparkTopology
from ballast.api.move import ReasonScores
from ballast.errors import BallastError, InvalidField, InvalidResource


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "streaming"}, "spec": {"nodeSelector": {}, **spec}}


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(InvalidResource) as refusal:
        BalancingPolicy.parse(policy(interval="5x", moves={"minGain": 101}, color="red"))

    assert [problem.field for problem in refusal.value.problems] == [
        "spec.interval",
        "spec.moves.minGain",
        "spec.color",
    ]
    assert str(refusal.value).startswith("BalancingPolicy streaming is not valid:\n  spec.interval: '5x': write a dur")


def test_every_error_of_ours_has_one_root() -> None:
    assert issubclass(InvalidField, BallastError)
    assert issubclass(InvalidResource, BallastError)


def test_a_long_value_is_shown_in_part() -> None:
    assert len(str(InvalidField("spec.query", "x" * 5000, "shorten it"))) < 200


def test_an_error_does_not_repeat_the_credentials_of_an_address() -> None:
    shown = str(InvalidField("spec.metrics.prometheus.url", "http://me:hidden@prometheus:9090", "remove them"))
    assert shown == "spec.metrics.prometheus.url: 'http://***@prometheus:9090': remove them"


def test_what_the_server_adds_to_metadata_is_no_error() -> None:
    raw = policy()
    raw["metadata"] |= {"managedFields": [{}], "uid": "u", "generation": 4, "creationTimestamp": "2026-01-01T00:00:00Z"}

    metadata = BalancingPolicy.parse(raw).metadata

    assert (metadata.uid, metadata.generation) == ("u", 4)
    assert metadata.creation_timestamp == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_timestamp_that_yaml_has_read_already_is_no_error() -> None:
    raw = policy()
    raw["metadata"]["creationTimestamp"] = datetime(2026, 1, 1, tzinfo=UTC)

    assert BalancingPolicy.parse(raw).metadata.creation_timestamp == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_status_of_a_newer_operator_is_read_as_far_as_it_is_known() -> None:
    raw = policy() | {"status": {"observedGeneration": 3, "mood": "good", "nodes": {"total": 6, "asleep": 1}}}

    status = BalancingPolicy.parse(raw).status

    assert status.observed_generation == 3
    assert status.nodes is not None
    assert status.nodes.total == 6


def test_an_object_that_nobody_has_looked_at_says_so() -> None:
    assert BalancingPolicy.parse(policy()).status.observed_generation == -1


def test_another_kind_is_refused() -> None:
    with pytest.raises(InvalidResource, match="kind"):
        SparkTopology.parse(
            {"kind": "BalancingPolicy", "metadata": {"name": "a"}, "spec": {"components": [{"name": "a"}]}}
        )


def test_a_word_of_python_stands_in_for_from() -> None:
    move = ExecutorMove.parse(
        {
            "metadata": {"name": "m"},
            "spec": {
                "topologyName": "t",
                "executor": {"pod": "p", "uid": "u"},
                "sourceNodeName": "a",
                "targetNodeName": "b",
                "reason": {"strategy": "Manual", "scores": {"from": "90", "to": "30"}},
            },
        }
    )

    assert move.spec.reason is not None
    assert move.spec.reason.scores == ReasonScores(from_=90.0, to=30.0)
    assert move.to_dict()["spec"]["reason"]["scores"] == {"from": "90", "to": "30"}


def test_durations_and_quantities_are_written_as_the_user_wrote_them() -> None:
    spec = BalancingPolicy.parse(policy(interval="0.5m", moves={"maxStateSize": "1024Mi"})).to_dict()["spec"]

    assert (spec["interval"], spec["moves"]["maxStateSize"]) == ("0.5m", "1024Mi")


@pytest.mark.parametrize(
    ("spec", "field", "remedy"),
    [
        ({"moves": {"minGian": 1}}, "spec.moves.minGian", "did you mean minGain"),
        (
            {"shedding": {"transferShedder": {}}},
            "spec.shedding.transferShedder",
            "spec.shedding.advanced.transferShedder",
        ),
        ({"metrics": {"queries": {}}}, "spec.metrics.queries", "spec.metrics.advanced.queries"),
        ({"moves": {"budgets": [{"move": 1}]}}, "spec.moves.budgets[0].move", "did you mean moves"),
        ({"moves": {"zzz": 1}}, "spec.moves.zzz", "remove it or correct its spelling"),
    ],
)
def test_an_unknown_field_says_which_one_is_meant(spec: dict[str, Any], field: str, remedy: str) -> None:
    with pytest.raises(InvalidResource) as refused:
        BalancingPolicy.parse({"metadata": {"name": "p"}, "spec": spec})
    assert [remedy in problem.remedy for problem in refused.value.problems if problem.field == field] == [True]
