import pytest

from ballast.model import Resources
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
