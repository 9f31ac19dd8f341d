from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ballast.kube.constraint_reader import MOST_DEMANDS, MOST_VALUES, ConstraintReader
from ballast.model import Constraints, Requirement, Toleration
from tests.unit.kube.builders import expression, required


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
        Constraints(affinity_terms=((Requirement("zone", "In", ("a",)),),)),
        Constraints(tolerations=(Toleration("spot", "Exists"), Toleration("gpu", "Equal", "yes", "NoSchedule"))),
    ]
    assert all(reader.read(spec) is value for spec, value in zip(specs, found, strict=True)), "read once"


def test_a_toleration_without_an_effect_tolerates_every_one() -> None:
    (found,) = ConstraintReader().read({"tolerations": [{"key": "spot"}]}).tolerations
    assert (found.operator, found.value, found.effect) == ("Equal", "", "")
