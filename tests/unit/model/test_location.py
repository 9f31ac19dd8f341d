import pytest

from ballast.model import DEFAULT_LEVELS, Level, Levels, Location, Pin, Scope

HERE: Location = ("z1", "r1", "n1")
TWO = Levels((Level("zone", 10.0), Level("host", 1.0)))


@pytest.mark.parametrize(
    ("there", "distance", "scope"),
    [
        pytest.param(("z1", "r1", "n1"), 0.0, Scope.NODE, id="the same node"),
        pytest.param(("z1", "r1", "n2"), 1.0, Scope.RACK, id="the same rack"),
        pytest.param(("z1", "r2", "n3"), 3.0, Scope.ZONE, id="the same zone"),
        pytest.param(("z2", "r3", "n4"), 10.0, Scope.CLUSTER, id="another zone"),
        pytest.param(("z1", None, "n5"), 1.0, Scope.RACK, id="no rack known: that level is off"),
        pytest.param((None, "r2", "n6"), 3.0, Scope.ZONE, id="no zone known: that level is off"),
    ],
)
def test_crossing_the_farthest_level_counts(there: Location, distance: float, scope: Scope) -> None:
    assert DEFAULT_LEVELS.distance(HERE, there) == distance
    assert DEFAULT_LEVELS.scope(HERE, there) is scope


@pytest.mark.parametrize(
    ("levels", "there", "scope"),
    [
        (TWO, ("z1", "n2"), Scope.ZONE),
        (TWO, ("z2", "n2"), Scope.CLUSTER),
        (Levels((Level("host", 1.0),)), ("n2",), Scope.CLUSTER),
    ],
)
def test_a_level_that_a_policy_does_not_have_is_no_scope(levels: Levels, there: Location, scope: Scope) -> None:
    here = ("z1", "n1") if len(levels.ordered) == 2 else ("n1",)
    assert levels.scope(here, there) is scope


def test_each_level_adds_what_it_costs_beyond_the_next_nearer_one() -> None:
    assert DEFAULT_LEVELS.steps == (7.0, 2.0, 1.0)
    assert Levels(()).steps == ()


@pytest.mark.parametrize(
    ("levels", "pin", "index"),
    [
        (DEFAULT_LEVELS, Pin.NONE, None),
        (DEFAULT_LEVELS, Pin.ZONE, 0),
        (DEFAULT_LEVELS, Pin.RACK, 1),
        (DEFAULT_LEVELS, Pin.NODE, 2),
        (TWO, Pin.ZONE, 0),
        (TWO, Pin.RACK, None),
        (TWO, Pin.NODE, 1),
    ],
)
def test_a_pin_names_a_level(levels: Levels, pin: Pin, index: int | None) -> None:
    assert levels.index_of(pin) == index
