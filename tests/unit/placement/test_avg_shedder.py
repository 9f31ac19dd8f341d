from __future__ import annotations

from ballast.placement.avg_shedder import Destinations, possible

NODES = ("a", "b", "c")


def test_what_was_shed_goes_where_it_was_told_to() -> None:
    assert possible("e", NODES, Destinations().noting([("e", "b")])) == ("b",)


def test_everything_else_may_go_anywhere() -> None:
    assert possible("other", NODES, Destinations().noting([("e", "b")])) == NODES


def test_a_destination_that_is_gone_is_no_longer_one() -> None:
    assert possible("e", ("a", "c"), Destinations().noting([("e", "b")])) == ("a", "c")


def test_without_candidates_there_is_none() -> None:
    assert possible("e", (), Destinations()) == ()


def test_the_last_decision_counts() -> None:
    noted = Destinations().noting([("e", "b"), ("d", "a")]).noting([("e", "c")])
    assert noted == Destinations((("d", "a"), ("e", "c")))
