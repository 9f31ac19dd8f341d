import pytest

from ballast.model import Constraints, Requirement, Resources, Taint, Toleration
from tests.builders import GIB

GPU, DISK = "nvidia.com/gpu", "ephemeral-storage"
FREE = Resources(2.0, GIB, 1.0, ((GPU, 1.0),))


def test_amounts_add_up_and_go_off_kind_by_kind() -> None:
    some = Resources(1.0, GIB, 1.0, ((DISK, 5.0), (GPU, 1.0)))
    more = Resources(0.5, GIB, 2.0, ((GPU, 2.0), ("zoo", 1.0)))
    both = Resources(1.5, 2 * GIB, 3.0, ((DISK, 5.0), (GPU, 3.0), ("zoo", 1.0)))
    assert some.plus(more) == both
    assert both.minus(more) == Resources(1.0, GIB, 1.0, ((DISK, 5.0), (GPU, 1.0), ("zoo", 0.0)))


def test_several_ask_for_as_many_times_as_much() -> None:
    one = Resources(1.5, 2.0, 1.0, (("gpu", 2.0),))
    assert one.times(3) == one.plus(one).plus(one)


def test_what_one_lacks_counts_as_nothing() -> None:
    assert Resources().minus(Resources(1.0, extended=((GPU, 2.0),))) == Resources(-1.0, extended=((GPU, -2.0),))
    assert Resources(extended=((GPU, 2.0),)).plus(Resources(1.0)) == Resources(1.0, extended=((GPU, 2.0),))


@pytest.mark.parametrize(
    ("asked", "fits"),
    [
        (FREE, True),
        (Resources(), True),
        (Resources(2.0 + 1e-7, GIB + 0.5, 1.0 + 1e-7), True),
        (Resources(cpu_cores=2.001), False),
        (Resources(memory_bytes=GIB + 2), False),
        (Resources(pods=2.0), False),
        (Resources(extended=((GPU, 1.001),)), False),
        (Resources(extended=((DISK, 1.0),)), False),
        (Resources(extended=((DISK, 0.0), (GPU, 1.0))), True),
    ],
)
def test_a_demand_fits_when_every_amount_is_there(asked: Resources, *, fits: bool) -> None:
    assert asked.fits_in(FREE) is fits


def test_an_overdrawn_amount_stops_who_asks_for_nothing_of_it() -> None:
    assert not Resources().fits_in(Resources(cpu_cores=-0.5))


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
