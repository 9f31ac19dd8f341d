"""What keeps an executor off a node."""

from __future__ import annotations

import pytest

from ballast.model import Constraints, Node, Reason, Requirement, Taint, Toleration
from ballast.placement.admission import Admission, refusal
from tests.builders import a_node, an_executor

GPU = Taint("gpu", "true", "NoSchedule")
ZONE_A = (Requirement("zone", "In", ("a",)),)


@pytest.mark.parametrize(
    ("node", "constraints", "reason"),
    [
        (a_node("n"), Constraints(), None),
        (a_node("n", ready=False), Constraints(), Reason.NODE_UNAVAILABLE),
        (a_node("n", schedulable=False), Constraints(), Reason.NODE_UNAVAILABLE),
        (a_node("n", leaving="DeletionCandidate"), Constraints(), Reason.NODE_LEAVING),
        (a_node("n", taints=(GPU,)), Constraints(), Reason.TAINTED),
        (a_node("n", taints=(GPU,)), Constraints(tolerations=(Toleration("gpu", "Exists"),)), None),
        (a_node("n", taints=(Taint("slow", "", "PreferNoSchedule"),)), Constraints(), None),
        (a_node("n", labels={"disk": "fast"}), Constraints(node_selector=(("disk", "fast"),)), None),
        (a_node("n", labels={"disk": "slow"}), Constraints(node_selector=(("disk", "fast"),)), Reason.NOT_ADMITTED),
        (a_node("n", labels={"zone": "a"}), Constraints(affinity_terms=(ZONE_A,)), None),
        (a_node("n", labels={"zone": "b"}), Constraints(affinity_terms=(ZONE_A,)), Reason.NOT_ADMITTED),
        (a_node("n", labels={"zone": "a"}), Constraints(affinity_terms=((),)), Reason.NOT_ADMITTED),
        (a_node("n", labels={"zone": "b"}), Constraints(volume_terms=((ZONE_A,),)), Reason.VOLUME_PINNED),
        (a_node("n", labels={"zone": "a"}), Constraints(volume_terms=((ZONE_A,),)), None),
    ],
)
def test_a_refusal_names_what_stands_in_the_way(node: Node, constraints: Constraints, reason: Reason | None) -> None:
    found = refusal(an_executor("e-1", constraints=constraints), node)
    assert (found[0] if found else None) == reason
    assert Admission([node]).mask(constraints).tolist() == [reason is None]


def test_a_refusal_tells_the_node_by_name() -> None:
    found = refusal(an_executor("e-1"), a_node("n-17", ready=False))
    assert found == (Reason.NODE_UNAVAILABLE, "n-17 is not ready")


def test_a_mask_is_computed_once_for_equal_constraints() -> None:
    admission = Admission([a_node("n", labels={"zone": "a"})])
    assert admission.mask(Constraints(affinity_terms=(ZONE_A,))) is admission.mask(
        Constraints(affinity_terms=(ZONE_A,))
    )
