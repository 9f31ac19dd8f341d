from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ballast.kube.constraint_reader import MOST_DEMANDS, MOST_VALUES, ConstraintReader, Volumes, read_volume
from ballast.model import Constraints, Requirement, Toleration
from tests.unit.kube.builders import expression, required

CLAIM = {"namespace": "analytics", "name": "data", "uid": "c"}


def volumes(
    *terms: dict[str, Any], labels: dict[str, str] | None = None, phase: str = "Bound", claim: Any = CLAIM
) -> Volumes:
    """One."""
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}} if terms else {}
    spec = affinity | ({"claimRef": claim} if claim else {})
    raw = {"metadata": {"name": "pv-1", "labels": labels or {}}, "spec": spec, "status": {"phase": phase}}
    return Volumes.of([read_volume(raw)])


ZONE_A = ((Requirement("zone", "In", ("a",)),),)


def test_a_bound_claim_demands_what_its_volume_demands() -> None:
    found = volumes({"matchExpressions": [expression("zone", "a")]})
    assert found.node_terms("analytics", ("data",)) == (ZONE_A,)


def test_unbound_unknown_and_everywhere_reachable_claims_demand_nothing() -> None:
    local = {"matchExpressions": [expression("zone", "a")]}
    assert volumes(local, phase="Available", claim=None).node_terms("analytics", ("data",)) == ()
    assert volumes().node_terms("analytics", ("data", "other")) == ()
    assert volumes(local).node_terms("elsewhere", ("data",)) == ()


@pytest.mark.parametrize("phase", ["Available", "Released", "Failed"])
def test_a_volume_whose_claim_is_gone_or_not_bound_yet_demands_nothing_of_a_claim_of_that_name(phase: str) -> None:
    found = volumes({"matchExpressions": [expression("zone", "a")]}, phase=phase)
    assert found.node_terms("analytics", ("data",)) == ()


def test_a_zone_label_stands_in_for_node_affinity() -> None:
    found = volumes(labels={"topology.kubernetes.io/zone": "a__b"})
    assert found.node_terms("analytics", ("data",)) == (
        ((Requirement("topology.kubernetes.io/zone", "In", ("a", "b")),),),
    )


def asking(*terms: list[dict[str, Any]], **more: Any) -> Constraints:
    affinity = required(*({"matchExpressions": term} for term in terms))
    return ConstraintReader().read({"affinity": affinity, **more})


def test_as_many_demands_as_templates_have_are_read() -> None:
    found = asking([expression(f"key-{number}", "a") for number in range(MOST_DEMANDS)])
    assert not found.unread
    assert len(found.affinity_terms[0]) == MOST_DEMANDS


@pytest.mark.parametrize(
    "found",
    [
        asking(*([expression(f"key-{number}", "a")] for number in range(MOST_DEMANDS + 1))),
        asking(*([] for _ in range(MOST_DEMANDS + 1))),
        asking([expression("key", *(f"value-{number}" for number in range(MOST_VALUES + 1)))]),
        asking(nodeSelector={f"key-{number}": "a" for number in range(MOST_DEMANDS + 1)}),
        asking(tolerations=[{"key": f"key-{number}"} for number in range(MOST_DEMANDS + 1)]),
    ],
    ids=["terms", "empty terms", "values", "selector", "tolerations"],
)
def test_of_a_pod_with_more_demands_nothing_is_read_and_it_says_so(found: Constraints) -> None:
    assert "Ballast reads none of them" in found.unread
    assert found == Constraints(unread=found.unread), "what is kept does not grow with the pod"
    assert not found.selects({"key": "value-0"}, "node-1")


SPREAD = st.lists(st.integers(0, 60), min_size=5, max_size=5)


@given(SPREAD)
@example([20, 20, 20, 20, 20])
@example([20, 20, 20, 20, 21])
@example([0, 0, 0, 0, 100])
def test_all_ways_to_demand_count_together(spread: list[int]) -> None:
    selected, tolerated, on_labels, on_fields, empty = spread
    affinity = required(
        {
            "matchExpressions": [expression(f"label-{number}", "a") for number in range(on_labels)],
            "matchFields": [expression(f"field-{number}", "a") for number in range(on_fields)],
        },
        *({} for _ in range(empty)),
    )
    found = ConstraintReader().read(
        {
            "nodeSelector": {f"key-{number}": "a" for number in range(selected)},
            "tolerations": [{"key": f"key-{number}"} for number in range(tolerated)],
            "affinity": affinity,
        }
    )
    demands = selected + tolerated + max(1, on_labels + on_fields) + empty
    assert bool(found.unread) == (demands > MOST_DEMANDS)


@given(st.integers(1, MOST_VALUES - 1), st.integers(0, 2))
def test_values_count_together_over_all_requirements(of_labels: int, over: int) -> None:
    of_fields = MOST_VALUES - of_labels - 1 + over
    term = {
        "matchExpressions": [expression("label", *map(str, range(of_labels)))],
        "matchFields": [expression("field", *map(str, range(of_fields)))],
    }
    found = ConstraintReader().read(
        {"affinity": required(term, {"matchExpressions": [{"key": "x", "operator": "Exists"}]})}
    )
    assert bool(found.unread) == (of_labels + of_fields > MOST_VALUES)


def test_pods_that_differ_in_one_constraint_only_are_told_apart() -> None:
    tolerations = [{"key": "spot", "operator": "Exists"}, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    specs: list[dict[str, Any]] = [
        {},
        {"nodeSelector": {"pool": "streaming"}},
        {"affinity": required({"matchExpressions": [expression("zone", "a")]})},
        {"tolerations": tolerations},
    ]
    reader = ConstraintReader()
    found = [reader.read(spec) for spec in specs]
    assert found == [
        Constraints(),
        Constraints(node_selector=(("pool", "streaming"),)),
        Constraints(affinity_terms=ZONE_A),
        Constraints(tolerations=(Toleration("spot", "Exists"), Toleration("gpu", "Equal", "yes", "NoSchedule"))),
    ]
    assert all(reader.read(spec) is value for spec, value in zip(specs, found, strict=True)), "read once"


def test_a_toleration_without_an_effect_tolerates_every_one() -> None:
    (found,) = ConstraintReader().read({"tolerations": [{"key": "spot"}]}).tolerations
    assert (found.operator, found.value, found.effect) == ("Equal", "", "")
