import pytest

from ballast.model import Constraints, Requirement, Taint, Toleration

LABELS = {"pool": "spark", "cpu-generation": "7"}


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        (Requirement("pool", "In", ("spark", "batch")), True),
        (Requirement("pool", "NotIn", ("spark",)), False),
        (Requirement("gpu", "NotIn", ("a100",)), True),
        (Requirement("pool", "Exists"), True),
        (Requirement("gpu", "DoesNotExist"), True),
        (Requirement("cpu-generation", "Gt", ("6",)), True),
        (Requirement("cpu-generation", "Lt", ("7",)), False),
        (Requirement("pool", "Gt", ("6",)), False),
        (Requirement("pool", "Gt", ()), False),
        (Requirement("gpu", "Lt", ("6",)), False),
        (Requirement("pool", "Resembles", ("spark",)), False),
        (Requirement("metadata.name", "In", ("n1",), on_field=True), True),
        (Requirement("metadata.name", "NotIn", ("n1",), on_field=True), False),
    ],
)
def test_a_requirement_reads_labels_as_kubernetes_does(requirement: Requirement, *, met: bool) -> None:
    assert requirement.met_by(LABELS, "n1") is met


def test_any_term_will_do_but_all_of_its_requirements_must_hold() -> None:
    wrong, right = Requirement("pool", "In", ("batch",)), Requirement("pool", "In", ("spark",))
    assert Constraints(affinity_terms=((wrong,), (right,))).selects(LABELS, "n1")
    assert not Constraints(affinity_terms=((wrong, right),)).selects(LABELS, "n1")


def test_an_empty_term_selects_nothing() -> None:
    assert not Constraints(affinity_terms=((),)).selects(LABELS, "n1")


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (Toleration("dedicated", "Equal", "spark"), True),
        (Toleration("dedicated", "Equal", "other"), False),
        (Toleration("dedicated", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("dedicated", "Exists", effect="NoExecute"), False),
    ],
)
def test_a_taint_keeps_off_who_does_not_tolerate_it(toleration: Toleration, *, covered: bool) -> None:
    taint = Taint("dedicated", "spark", "NoSchedule")
    assert (Constraints(tolerations=(toleration,)).untolerated((taint,)) is None) is covered


def test_a_preference_keeps_nobody_off() -> None:
    assert Constraints().untolerated((Taint("busy", "", "PreferNoSchedule"),)) is None
