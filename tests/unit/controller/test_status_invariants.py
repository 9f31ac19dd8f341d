"""What holds of every status, whatever the pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.condition import Condition
from ballast.api.topology_status import Locality
from ballast.controller.status import Outlook, policy_status, topology_status
from ballast.controller.status.topology import in_status
from ballast.model import AvgShedderPolicy, Budget, LocalityView, MovesPolicy, Phase
from ballast.model.policy import SheddingPolicy
from tests.builders import NOW, a_move, a_node, a_policy, a_snapshot, a_topology, an_executor, gated
from tests.unit.controller.crowd import outlook, policy_resource, topology_resource

JSON = dict[str, Any]
PAGE = (Path(__file__).parents[3] / "docs" / "observability.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)`(?: \*)? \| ([^|]*) \|", re.MULTILINE)


def of(kind: str) -> set[str]:
    """The conditions that the page lists for this kind."""
    return {type_ for type_, kinds in ROW.findall(PAGE) if "all" in kinds or kind in kinds}


EXCEPTIONAL = {type_ for type_, star in re.findall(r"^\| `(\w+)`( \*)? \|", PAGE, re.MULTILINE) if star}
"""Those that are there only while they hold."""


def held_before(kind: str) -> JSON:
    """A status in which all of them are True, for reasons of that time."""
    since = "2026-01-01T00:00:00Z"
    return {
        "conditions": [
            {"type": type_, "status": "True", "reason": "Before", "message": "before", "lastTransitionTime": since}
            for type_ in sorted(of(kind))
        ]
    }


def told(conditions: Iterable[Condition]) -> set[tuple[str, str, str, str]]:
    return {(each.type, each.status.value, each.reason, each.message) for each in conditions}


def quiet() -> Outlook:
    return outlook(a_snapshot(a_node("a", cpu=0.5), a_node("b", cpu=0.5), topologies=(a_topology(),)))


def uneven() -> Outlook:
    """A gap that is due to be closed, executors at the gate, and a budget of which something is left."""
    members = [an_executor(f"clicks-exec-{number}", node="a", cpu=1.0) for number in range(3)]
    snapshot = a_snapshot(
        a_node("a", cpu=0.95),
        a_node("b", cpu=0.1),
        executors=(*members, gated("clicks-exec-4")),
        topologies=(a_topology(),),
        moves=(a_move("m1", started_at=NOW - 60.0),),
    )
    hasty = SheddingPolicy(avg_shedder=AvgShedderPolicy(low_hits=1, high_hits=1))
    budgets = (Budget(moves=5, per_seconds=3600.0), Budget(moves=3, per_seconds=7200.0))
    return outlook(snapshot, a_policy(shedding=hasty, moves=MovesPolicy(budgets=budgets)))


PASSES = pytest.mark.parametrize("seen", [quiet(), uneven()], ids=["quiet", "uneven"])


@PASSES
def test_conditions_say_the_same_whatever_they_said_before(seen: Outlook) -> None:
    (topology,) = (each for each in seen.snapshot.topologies if not each.implicit)
    assert topology.key == "team/clicks"
    for fresh, again, kind in (
        (
            policy_status(policy_resource(), seen),
            policy_status(policy_resource(held_before("BalancingPolicy")), seen),
            "BalancingPolicy",
        ),
        (
            topology_status(topology_resource(), seen),
            topology_status(topology_resource(status=held_before("SparkTopology")), seen),
            "SparkTopology",
        ),
    ):
        assert told(again.conditions) == told(fresh.conditions)
        assert {each.type for each in fresh.conditions} <= of(kind)


def test_in_a_pass_in_which_nothing_is_wrong_only_the_lasting_conditions_are_there() -> None:
    seen = quiet()
    for found in (policy_status(policy_resource(), seen), topology_status(topology_resource(), seen)):
        assert not {each.type for each in found.conditions} & EXCEPTIONAL - {"MetricsAvailable"}
        assert all(each.message for each in found.conditions if each.type != "MetricsAvailable")


@PASSES
def test_a_policys_status_is_of_its_pool(seen: Outlook) -> None:
    found = policy_status(policy_resource(), seen)
    nodes = {node.name for node in seen.snapshot.nodes}
    pods = {(each.namespace, each.name) for each in seen.snapshot.executors}
    assert found.refusals is not None
    for refusal in found.refusals.items:
        assert (refusal.namespace, refusal.executor) in pods | {("", node) for node in nodes}, refusal
        assert refusal.to in {"", *nodes}
    assert sum(each.count for each in found.refusals.items) == len(seen.plan.refusals)
    shown = found.nodes
    assert shown is not None
    assert shown.hottest is not None
    assert shown.coldest is not None
    assert shown.gap == pytest.approx(shown.hottest.score - shown.coldest.score, abs=0.1)
    assert shown.coldest.score <= (shown.mean or 0.0) <= shown.hottest.score


def test_the_budget_that_is_shown_is_the_one_of_which_least_is_left() -> None:
    shown = policy_status(policy_resource(), uneven()).budget
    assert shown is not None
    assert shown.next_reset is not None
    assert (shown.used, shown.remaining, shown.next_reset.timestamp()) == (1, 2, NOW - 60.0 + 7200.0)


@PASSES
def test_a_topologys_counts_add_up(seen: Outlook) -> None:
    found = topology_status(topology_resource(), seen)
    counts = found.executors
    assert counts is not None
    live = [each for each in seen.snapshot.executors if each.phase is not Phase.ENDED]
    assert sum(each.executors for each in found.components) == len(live)
    assert sum(each.gated for each in found.components) == counts.gated
    assert sum(each.running for each in found.components) == counts.running
    assert counts.text == f"{counts.running}/{counts.expected}"
    views = [in_status(view) for view in seen.plan.locality if view.topology == "team/clicks"]
    assert found.locality == (views[0] if views else None)


RATIOS = st.none() | st.floats(0.0, 1.0)
AMOUNTS = st.floats(0.0, 1e12)


@given(st.builds(LocalityView, st.just("team/clicks"), RATIOS, RATIOS, RATIOS, st.none() | AMOUNTS, AMOUNTS, AMOUNTS))
def test_locality_is_shown_as_it_is_except_for_the_last_digits(view: LocalityView) -> None:
    shown = in_status(view)
    names = {each.name for each in fields(LocalityView)} & Locality.model_fields.keys()
    assert len(names) == 6
    for name in names:
        was, now = getattr(view, name), getattr(shown, name)
        assert now == (None if was is None else pytest.approx(was, abs=0.0005)), name
