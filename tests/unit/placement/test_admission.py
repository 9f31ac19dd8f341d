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
        (a_node("n"), Constraints(unread="too much"), Reason.NOT_ADMITTED),
    ],
)
def test_a_refusal_names_what_stands_in_the_way(node: Node, constraints: Constraints, reason: Reason | None) -> None:
    found = refusal(an_executor("e-1", constraints=constraints), node)
    assert (found[0] if found else None) == reason
    assert Admission([node]).mask(constraints).tolist() == [reason is None]


def test_a_refusal_tells_the_node_by_name() -> None:
    found = refusal(an_executor("e-1"), a_node("n-17", ready=False))
    assert found == (Reason.NODE_UNAVAILABLE, "n-17 is not ready")


def test_demands_that_are_not_read_are_told_as_the_reason() -> None:
    assert refusal(an_executor("e-1", constraints=Constraints(unread="too much")), a_node("n")) == (
        Reason.NOT_ADMITTED,
        "too much",
    )


def test_labels_that_no_node_has_are_looked_up_once() -> None:
    admission = Admission([a_node("n", labels={"zone": "a"})])
    absent = tuple((Requirement(f"made-up-{number}", "DoesNotExist", ()),) for number in range(1000))
    assert admission.mask(Constraints(affinity_terms=absent)).tolist() == [True]
    assert len(admission._fields) == 1


def test_a_mask_is_computed_once_for_equal_constraints() -> None:
    admission = Admission([a_node("n", labels={"zone": "a"})])
    assert admission.mask(Constraints(affinity_terms=(ZONE_A,))) is admission.mask(
        Constraints(affinity_terms=(ZONE_A,))
    )


NODES = (
    a_node("a", labels={"zone": "a", "disk": "ssd"}),
    a_node("b", labels={"zone": "b", "disk": "ssd"}, taints=(GPU,)),
    a_node("c", labels={"zone": "c"}),
    a_node("d", labels={"zone": "a"}, ready=False),
)
ON_SSD = (("disk", "ssd"),)
IN_B = (Requirement("zone", "In", ("b",)),)
TOLERANT = (Toleration("gpu", "Exists"),)


def test_one_admission_answers_for_many_constraints_that_share_their_parts() -> None:
    admission = Admission(NODES)
    asked = [
        Constraints(
            node_selector=nodes, affinity_terms=terms, volume_terms=volumes, tolerations=tolerated, anti_affinity=away
        )
        for nodes in ((), ON_SSD, (*ON_SSD, ("zone", "a")))
        for terms in ((), (ZONE_A,), (ZONE_A, IN_B), ((), IN_B))
        for volumes in ((), ((ZONE_A,),), ((ZONE_A, IN_B), (IN_B,)))
        for tolerated in ((), TOLERANT)
        for away in ((), (Requirement("zone", "NotIn", ("a", "c")),))
    ]
    for constraints in asked:
        executor = an_executor("e-1", constraints=constraints)
        assert admission.mask(constraints).tolist() == [refusal(executor, node) is None for node in NODES]


GENERATIONS = tuple(
    a_node(f"n-{value}", labels={"disk": "ssd"} if value is None else {"generation": value})
    for value in ("7", "8", "10", "8", "new", "", None)
)


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        *((operator, values) for operator in ("In", "NotIn") for values in ((), ("8",), ("8", "new", "11"))),
        *((operator, ()) for operator in ("Exists", "DoesNotExist")),
        *((operator, (value,)) for operator in ("Gt", "Lt") for value in ("6", "7", "8", "9", "10", "11", "-1", "old")),
        ("Gt", ()),
        ("Resembles", ("8",)),
    ],
)
def test_each_operator_means_the_same_for_one_node_and_for_all(operator: str, values: tuple[str, ...]) -> None:
    for asked in (Requirement("generation", operator, values), Requirement("absent", operator, values)):
        found = Admission(GENERATIONS).mask(Constraints(affinity_terms=((asked,),))).tolist()
        assert found == [asked.met_by(node.labels, node.name) for node in GENERATIONS]


class Counting(str):
    """The value of a node's label; counts how often it is compared."""

    __slots__ = ()
    looks = 0

    def __hash__(self) -> int:
        Counting.looks += 1
        return super().__hash__()

    def __int__(self) -> int:
        Counting.looks += 1
        return int(str(self))


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
def test_however_many_requirements_there_are_the_values_of_nodes_are_looked_at_a_few_times(operator: str) -> None:
    """Any user may create pods with tens of thousands of requirements."""
    admission = Admission([a_node(f"n-{number}", labels={"number": Counting(number)}) for number in range(50)])
    Counting.looks = 0
    for number in range(200):
        asked = Requirement("number", operator, () if "Exist" in operator else (str(number),))
        admission.mask(Constraints(affinity_terms=((asked,),), node_selector=(("absent", str(number)),)))
    assert Counting.looks < 10 * 50


def test_words_of_a_refusal_name_what_is_wanted() -> None:
    def words(node: Node, constraints: Constraints) -> str:
        found = refusal(an_executor("e-1", constraints=constraints), node)
        return found[1] if found else ""

    assert words(a_node("n", schedulable=False), Constraints()) == "n is cordoned"
    assert words(a_node("n", leaving="drained"), Constraints()) == "n is about to leave (drained)"
    assert words(NODES[2], Constraints(node_selector=ON_SSD)) == "c does not match the pod's node selector or affinity"
    lonely = Constraints(anti_affinity=(Requirement("zone", "NotIn", ("a",)),))
    assert words(NODES[0], lonely) == "a pod near a keeps it away by its required anti-affinity"
    assert words(NODES[2], Constraints(volume_terms=((IN_B,),))) == "a volume of the pod can't be mounted on c"
    assert words(NODES[1], Constraints()) == "b has the taint gpu:NoSchedule, which the pod does not tolerate"
