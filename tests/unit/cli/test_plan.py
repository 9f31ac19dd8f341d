"""`ballast plan`: what would be done, and what would not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ballast.cli.output import Format, plain
from ballast.cli.plan import NothingOfThatNameError, chosen, plan_document, plan_report, planned
from ballast.cli.situation import Situation, dump
from ballast.cli.source import Seen
from ballast.model import CORDON, MetricsHealth, Notice, PlacementMode, Reason, Topology
from tests.builders import NOW, a_move, a_node, an_executor, gated
from tests.unit.cli.pools import a_situation, with_a_held_executor, with_a_proposed_move
from tests.unit.cli.program import run


def printed(situation: Situation, topology: str | None = None, form: Format = Format.TABLE) -> str:
    return plain(*plan_report(planned(situation, topology), form), width=80)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_move_is_told_from_to_with_its_prediction() -> None:
    text = " ".join(printed(a_situation()).split())
    (decided,) = a_situation().plan().moves
    assert f"exec-1 hot -> cold load 37.5 95 -> 76 10 -> 29 {decided.locality_delta_ratio:+.0%}" in text


def test_a_topology_shows_what_placing_it_again_would_give() -> None:
    assert ["team/clicks", "4", "equal", "44%", "->", "25%", "62%", "->", "25%", "2"] in lines(printed(a_situation()))


def test_what_is_not_done_has_its_reason() -> None:
    text = printed(with_a_proposed_move())
    assert "none" in text
    assert "team/exec-1  MaxConcurrent     1 moves of team/clicks are under way" in text
    assert "NothingToGain     100% of the seconds per task of the fastest" in text


def test_a_waiting_executor_is_told_once_with_where_it_goes() -> None:
    situation = with_a_held_executor()
    placement = replace(situation.policy.placement, mode=PlacementMode.ENFORCE)
    enforcing = replace(situation, policy=replace(situation.policy, placement=placement))
    text = printed(enforcing)
    row = next(line for line in lines(text) if line[:1] == ["team/exec-5"])
    (placed,) = enforcing.plan().placements
    assert row[1:] == [*(str(part) for part in (placed.node, *placed.location[:2])), "Zone"]
    assert text.count("team/exec-5") == 1


def test_an_executor_that_has_to_wait_says_how_long() -> None:
    situation = a_situation(executors=(gated("exec-9", since=NOW - 0.1),))
    placement = replace(situation.policy.placement, mode=PlacementMode.ENFORCE)
    text = printed(replace(situation, policy=replace(situation.policy, placement=placement)))
    row = next(line for line in lines(text) if line[:1] == ["team/exec-9"])
    assert row[1:3] == ["held", "WaitingForSet"]


def test_a_crowd_of_refusals_is_cut_and_wide_shows_all() -> None:
    many = tuple(an_executor(f"young-{i}", node="hot", cpu=0.1, running_since=NOW - 1) for i in range(30))
    nodes = (a_node("hot", cpu=0.95, cores=64.0), a_node("cold", cpu=0.1))
    situation = a_situation(nodes=nodes, executors=many, moves=(a_move(),))
    refused = sum(each.reason is Reason.TOO_YOUNG for each in situation.plan().refusals)
    assert refused == 30
    assert "more: see -o wide" in printed(situation)
    assert printed(situation, form=Format.WIDE).count("TooYoung") == refused


def test_one_topology_leaves_the_others_out() -> None:
    stranger = an_executor("other-1", node="hot", topology="team/other", component="report", running_since=NOW - 5)
    situation = a_situation()
    pool = replace(situation.snapshot, executors=(*situation.snapshot.executors, stranger))
    both = replace(situation, snapshot=pool)
    assert "team/other-1" in printed(both)
    only = plan_document(planned(both, "team/clicks"))
    assert [each["topology"] for each in only["topologies"]] == ["team/clicks"]
    assert "team/other-1" not in {each["subject"] for each in only["refusals"]}
    assert only["moves"]


def named(*keys: str) -> Situation:
    topologies = tuple(Topology(key, key[:1], key[2:], components=()) for key in keys)
    return a_situation(topologies=topologies, executors=())


@pytest.mark.parametrize(
    ("name", "namespace", "context", "expected"),
    [
        ("a/x", None, None, "a/x"),
        ("x", "b", None, "b/x"),
        ("x", None, "a", "a/x"),
        ("y", None, "elsewhere", "a/y"),
        ("y", None, None, "a/y"),
    ],
)
def test_a_topology_is_found_by_name_and_namespace(
    name: str, namespace: str | None, context: str | None, expected: str
) -> None:
    member = an_executor("e", node="hot", topology=expected)
    situation = named("a/x", "b/x", "a/y")
    situation = replace(situation, snapshot=replace(situation.snapshot, executors=(member,)))
    (found,) = chosen(Seen((situation,), namespace=context), name, namespace)
    assert [each.placed.topology for each in found.replanned] == [expected]


@pytest.mark.parametrize(
    ("name", "namespace", "words"),
    [
        ("x", None, "several topologies are called that: a/x, b/x; say -n"),
        ("x", "c", "no topology or BalancingPolicy; topologies: a/x, a/y, b/x; policies: streaming"),
        ("z", None, "no topology or BalancingPolicy"),
    ],
)
def test_an_unknown_name_gets_the_names_that_there_are(name: str, namespace: str | None, words: str) -> None:
    with pytest.raises(NothingOfThatNameError, match=words):
        chosen(Seen((named("a/x", "b/x", "a/y"),)), name, namespace)


def test_a_namespace_narrows_the_plan_to_its_topologies() -> None:
    both = (an_executor("e1", node="hot", topology="a/x"), an_executor("e2", node="hot", topology="b/x"))
    situation = replace(named("a/x", "b/x"), snapshot=replace(named("a/x", "b/x").snapshot, executors=both))
    (found,) = chosen(Seen((situation,)), None, "b")
    assert [each.placed.topology for each in found.replanned] == ["b/x"]


def test_the_executors_that_would_move_are_named(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    assert run("plan", "-f", str(file), "-o", "name").out == "pod/exec-1\n"
    assert run("plan", "-f", str(file), "-o", "jsonpath={.plans[*].moves[*].to}").out == "cold"
    assert run("plan", "-f", str(file), "-o", "name", "-n", "other").out == ""


def test_a_policy_is_found_by_name() -> None:
    other = a_situation()
    other = replace(other, policy=replace(other.policy, name="batch"))
    found = chosen(Seen((a_situation(), other)), "batch", None)
    assert [each.situation.policy.name for each in found] == ["batch"]


def test_a_file_is_planned_without_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    assert "hot" in run("plan", "-f", str(file)).out
    (document,) = yaml.safe_load(run("plan", "clicks", "-f", str(file), "-o", "yaml").out)["plans"]
    (move,) = document["moves"]
    assert (move["executor"], move["from"], move["to"]) == ("team/exec-1", "hot", "cold")
    (decided,) = a_situation().plan().moves
    assert move["predicted"] == {
        "hotAfter": 76.25,
        "coldAfter": 28.75,
        "gain": 37.5,
        "localityDelta": round(decided.locality_delta_ratio, 3),
    }


def test_many_topologies_are_cut_to_the_dearest_and_the_rest_is_counted() -> None:
    apart = [an_executor(f"x{i}", node=node, topology="team/apart") for i, node in enumerate(("hot", "far"))]
    others = [an_executor(f"e{i}", node="hot", topology=f"team/t{i:02}") for i in range(25)]
    topologies = tuple(Topology(e.topology, "team", e.topology[5:], components=()) for e in (*others, apart[0]))
    situation = a_situation(executors=(*others, *apart), topologies=topologies)
    found = planned(situation)
    assert found.replanned[0].placed.topology == "team/apart"
    assert (len(found.replanned), found.left_out) == (20, 6)
    assert "... and 6 more: name one to see it" in printed(situation)
    assert plan_document(found)["moreTopologies"] == 6


@pytest.mark.parametrize(
    ("changes", "reason", "why"),
    [
        ({"scheduler": "volcano"}, "ForeignScheduler", "its scheduler is volcano"),
        ({"gang": "field spec.schedulingGroup"}, "Gang", "it belongs to a gang (field spec.schedulingGroup)"),
    ],
)
def test_an_application_that_is_never_placed_is_left_out_and_named(
    changes: dict[str, str], reason: str, why: str
) -> None:
    situation = a_situation()
    foreign = tuple(replace(each, **changes) for each in situation.snapshot.executors)  # type: ignore[arg-type]
    placement = replace(situation.policy.placement, mode=PlacementMode.ENFORCE)
    enforcing = replace(
        situation,
        snapshot=replace(situation.snapshot, executors=foreign),
        policy=replace(situation.policy, placement=placement),
    )
    text = " ".join(printed(enforcing).split())
    assert "44% -> 25%" not in text
    assert f"{reason} {len(foreign)} team/exec-1" in text
    assert f"Left out: {len(foreign)} executors, because {why}" in text
    document = plan_document(planned(enforcing))
    (left_out,) = document["leftOut"]
    assert (document["topologies"], left_out["reason"], left_out["executors"]) == ([], reason, len(foreign))
    assert [each["cause"] for each in document["unplaced"]] == [reason]


def test_many_gangs_are_one_line_with_an_example_and_each_is_in_the_document() -> None:
    situation = a_situation()
    executors = situation.snapshot.executors
    gangs = tuple(replace(each, gang=f"label group: clicks-{index:02}") for index, each in enumerate(executors))
    left = planned(replace(situation, snapshot=replace(situation.snapshot, executors=gangs)))
    text = " ".join(printed(left.situation).split())
    assert text.count("Left out:") == 1
    example = "it belongs to a gang (label group: clicks-00)"
    assert f"Left out: {len(gangs)} executors, for {len(gangs)} causes (Gang), such as: {example}" in text
    assert [each["executors"] for each in plan_document(left)["leftOut"]] == [1] * len(gangs)


def test_a_drain_is_told_with_its_taint_and_needs_no_scores() -> None:
    situation = a_situation()
    leaves = Notice(CORDON, "it is cordoned", 300.0)
    snapshot = situation.snapshot
    nodes = tuple(replace(n, schedulable=False, notice=leaves) if n.name == "hot" else n for n in snapshot.nodes)
    blind = replace(snapshot, nodes=nodes, metrics=MetricsHealth(available=False))
    policy = replace(situation.policy, placement=replace(situation.policy.placement, mode=PlacementMode.ENFORCE))
    drained = replace(situation, snapshot=blind, policy=policy)
    move, *_ = drained.plan().moves
    assert f"-> {move.target} unschedulable - - -" in " ".join(printed(drained).split())
    told = plan_document(planned(drained))["moves"][0]
    assert (told["taint"], told["scores"], told["predicted"]) == (CORDON, None, None)
