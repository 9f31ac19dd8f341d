from __future__ import annotations

from typing import Any

import pytest

from ballast.kube.constraint_reader import ConstraintReader
from ballast.model import Constraints, Requirement, Toleration
from tests.unit.kube.builders import expression, required


def asking(*terms: list[dict[str, Any]], **more: Any) -> Constraints:
    affinity = required(*({"matchExpressions": term} for term in terms))
    return ConstraintReader().read({"affinity": affinity, **more})


@pytest.mark.parametrize(
    "found",
    [
        asking(*([expression(f"key-{number}", "a")] for number in range(500))),
        asking([expression("key", *(f"value-{number}" for number in range(2_000)))]),
        asking(nodeSelector={f"key-{number}": "a" for number in range(2_000)}),
        asking(tolerations=[{"key": f"key-{number}"} for number in range(2_000)]),
    ],
    ids=["terms", "values", "selector", "tolerations"],
)
def test_of_a_pod_with_longer_demands_than_are_kept_nothing_is_read_and_it_says_so(found: Constraints) -> None:
    assert "longer than 16 KiB: Ballast reads none of them" in found.unread
    assert found == Constraints(unread=found.unread), "what is kept does not grow with the pod"
    assert not found.selects({"key": "value-0"}, "node-1")
    assert not asking([expression("key", *(f"value-{number}" for number in range(500)))]).unread


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
