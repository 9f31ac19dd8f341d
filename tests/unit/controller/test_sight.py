from __future__ import annotations

import pytest

from ballast.controller.gateclock import GateClock
from ballast.controller.moves import MoveState
from ballast.controller.observe import Lists
from ballast.controller.openmove import OpenMove
from ballast.controller.pools import Territories
from ballast.controller.sight import Sight
from ballast.controller.survey import Survey
from tests.unit.controller.moves.builders import leaving, orders, proposed

POOLS = {"one": frozenset({"hot", "mild"}), "two": frozenset({"cold"})}


def ruler(move: MoveState, pools: dict[str, frozenset[str]] | None = None) -> str | None:
    sight = Sight(Survey(Lists((), ()), (), (), ()), Territories(pools or POOLS, {}), GateClock(), 0.0)
    each = OpenMove({}, move)
    (found,) = [name for name in ("one", "two", None) if sight.own_moves([each], name)]
    return found


@pytest.mark.parametrize(
    ("move", "policy"),
    [
        pytest.param(proposed(source="hot", target="mild"), "one", id="the pool it leaves"),
        pytest.param(proposed(source="hot", target="cold", policy="two"), "two", id="the policy that it names"),
        pytest.param(proposed(source="hot", target="cold", policy="gone"), "one", id="names one that is not there"),
        pytest.param(proposed(source="nowhere", target="cold"), "two", id="the pool it goes to"),
        pytest.param(proposed(source="nowhere", target="elsewhere"), None, id="none"),
        pytest.param(
            leaving(orders=orders(source="nowhere", target="gone"), target="cold"), "two", id="sent elsewhere"
        ),
    ],
)
def test_a_move_belongs_to_one_policy(move: MoveState, policy: str | None) -> None:
    assert ruler(move) == policy


def test_a_node_that_leaves_its_pool_does_not_take_the_move_along() -> None:
    under_way = leaving(orders=orders(source="hot", target="cold", policy="one"))
    assert ruler(under_way, {"one": frozenset({"mild"}), "two": frozenset({"cold"})}) == "one"
