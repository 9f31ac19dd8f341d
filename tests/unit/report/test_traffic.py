"""`plan`, `report` and `status` give one share of one application's traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ballast.cli.report.pool import topology_rows
from ballast.cli.situation import Situation
from ballast.model import Executor, Memory, Resources, Snapshot
from ballast.report.pool import report
from ballast.report.traffic import together
from tests.builders import GIB, a_node, a_policy, a_snapshot, an_executor, gated

KEY = "team/clicks"


def on(name: str, node: str, **changes: Any) -> Executor:
    return replace(an_executor(name, node=node, topology=KEY), **changes)


LARGE = Resources(16.0, GIB, 1)
"""No node has room for it, once it would be placed again."""


def pool(*executors: Executor) -> Snapshot:
    """Three zones of one node each; that of zone c is more than full."""
    full = Resources(24.0, 16 * GIB, 24)
    nodes = (a_node("c", zone="c", cores=8.0, requested=full), *(a_node(z, zone=z, cores=8.0) for z in ("a", "b")))
    return a_snapshot(*nodes, executors=executors)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param((on("l", "c", requests=LARGE),), id="one that no node takes"),
        pytest.param((on("f", "c", scheduler="volcano"),), id="one of another scheduler"),
        pytest.param((gated("g", topology=KEY),), id="one that waits"),
        pytest.param(
            (on("l", "c", requests=LARGE), on("f", "c", scheduler="volcano"), gated("g", topology=KEY)), id="all"
        ),
    ],
)
def test_shares_are_the_same_whoever_shows_them(more: tuple[Executor, ...]) -> None:
    snapshot, policy = pool(on("1", "a"), on("2", "a"), on("3", "b"), *more), a_policy()
    (planned,) = together(snapshot, policy, [KEY])
    (reported,) = report(snapshot, policy, price=None).applications
    situation = Situation(policy, Memory(), snapshot)
    (row,) = topology_rows(situation, situation.plan())
    assert row.locality is not None
    before, after = planned.placed.before.cross_zone_ratio, planned.placed.after.cross_zone_ratio
    assert before == reported.before.shares.zone == row.locality.cross_zone_ratio
    assert after == reported.after.shares.zone
    assert after is not None


def test_an_executor_that_no_node_takes_stays_and_its_traffic_counts() -> None:
    policy = a_policy(placement=replace(a_policy().placement, max_executors_per_node_ratio=1.0))
    (planned,) = together(pool(on("1", "a"), on("2", "a"), on("l", "c", requests=LARGE)), policy, [KEY])
    found = planned.placed
    assert len(found.unplaced) == 1
    assert found.after.cross_zone_ratio == found.before.cross_zone_ratio
    assert found.before.cross_zone_ratio
