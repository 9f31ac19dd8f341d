from __future__ import annotations

import pytest

from ballast.enums import Scope
from ballast.grouping.place import Place, scope_between

HERE = Place("n1", process=1, rack="r1", zone="z1")


@pytest.mark.parametrize(
    ("target", "scope"),
    [
        (Place("n1", process=1, rack="r1", zone="z1"), Scope.PROCESS),
        (Place("n1", process=2, rack="r1", zone="z1"), Scope.NODE),
        (Place("n2", process=1, rack="r1", zone="z1"), Scope.RACK),
        (Place("n2", process=1, rack="r1"), Scope.RACK),
        (Place("n2", process=1, rack="r2", zone="z1"), Scope.ZONE),
        (Place("n2", process=1, zone="z1"), Scope.ZONE),
        (Place("n2", process=1, rack="r1", zone="z2"), Scope.CLUSTER),
        (Place("n2", process=1), Scope.CLUSTER),
        (None, Scope.CLUSTER),
    ],
)
def test_the_nearest_scope_that_holds_both(target: Place | None, scope: Scope) -> None:
    assert scope_between(HERE, target) == scope


def test_unknown_racks_are_not_one_rack() -> None:
    assert scope_between(Place("n1"), Place("n2")) == Scope.CLUSTER
