"""What executors would ask for without the place that Ballast gave them."""

from __future__ import annotations

import pytest

from ballast.kube.actions import release_patch
from ballast.kube.constraint_reader import ConstraintReader
from ballast.kube.pods import Held
from ballast.model import DEFAULT_LEVELS, Constraints, Pin, Placement, Requirement
from ballast.placement.tie import untied
from tests.builders import an_executor

ZONE, RACK, HOST = (level.label for level in DEFAULT_LEVELS.ordered)
WHOLE = ("a", "a-1", "n1")


def one(key: str, value: str) -> dict[str, object]:
    return {"key": key, "operator": "In", "values": [value]}


TEMPLATES = [
    [],
    [[one("disk", "ssd")]],
    [[one(ZONE, "a")]],
    [[one(HOST, "n1")]],
    [[one(RACK, "a-1"), one(ZONE, "a")]],
    [[{"key": ZONE, "operator": "In", "values": ["a", "b"]}], [one("disk", "ssd")]],
]


def affinity(terms: list[list[dict[str, object]]]) -> dict[str, object] | None:
    if not terms:
        return None
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


def released(terms: list[list[dict[str, object]]], pin: Pin, location: tuple[str | None, ...]) -> Constraints:
    """The constraints that a pod of this template has after its release."""
    held = Held("1", ("ballast.dev/placement",), affinity(terms), has_affinity=bool(terms))
    patch = release_patch(held, Placement("ns/e", "u", "n1", location, pin), DEFAULT_LEVELS)
    (change,) = [op for op in patch.operations if op["op"] == "add"]
    added = change["value"]
    tied = added if change["path"] == "/spec/affinity" else {"nodeAffinity": added}
    return ConstraintReader().read({"affinity": tied})


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("pin", [Pin.ZONE, Pin.RACK, Pin.NODE])
@pytest.mark.parametrize("location", [WHOLE, ("a", None, "n1"), ("a", "a-1", None)])
def test_whatever_release_ties_is_taken_off_again(
    template: list[list[dict[str, object]]], pin: Pin, location: tuple[str | None, ...]
) -> None:
    own = ConstraintReader().read({"affinity": {"nodeAffinity": affinity(template) or {}}})
    executor = an_executor("e", constraints=released(template, pin, location), pinned=True)
    assert executor.constraints != own
    assert untied(executor, DEFAULT_LEVELS).constraints == own


def test_an_executor_that_ballast_did_not_tie_keeps_its_affinity() -> None:
    own = Constraints(affinity_terms=((Requirement(ZONE, "In", ("a",)),),))
    executor = an_executor("e", constraints=own)
    assert untied(executor, DEFAULT_LEVELS) is executor
