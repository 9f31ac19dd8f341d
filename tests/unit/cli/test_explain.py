"""`ballast explain`: one executor, in words and as a document."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ballast.cli.explain import located, pod_name
from ballast.cli.output import Format, plain
from ballast.cli.report.explained import explanation_report
from ballast.cli.situation import Situation, dump
from ballast.cli.source import Seen
from ballast.planner.explanation import UnknownExecutorError, explain
from tests.builders import a_move, a_node, an_executor
from tests.unit.cli.pools import a_situation
from tests.unit.cli.program import run


def printed(situation: Situation, name: str, form: Format = Format.TABLE) -> str:
    now = situation.now
    found = explain(situation.snapshot, situation.policy, situation.memory, now, executor=f"team/{name}")
    return plain(*explanation_report(found, situation, form), width=80)


def test_one_that_moves_says_where_to_and_what_for() -> None:
    text = printed(a_situation(), "exec-1")
    assert "team/exec-1  Running on hot" in text
    assert "would move to cold (the policy only recommends): the gap narrows by 37.5 points" in " ".join(text.split())
    assert "slowness    2.00 x the fastest quarter" in text


def test_one_that_stays_says_why_and_what_keeps_it_off_each_node() -> None:
    text = " ".join(printed(a_situation(), "exec-2").split())
    assert "stays REASON WHY NothingToGain 1.00 times the seconds per task of the fastest quarter" in text
    for words in (
        "NodeUnavailable: cordoned is cordoned",
        "NoRoom: 0.00 cores are free, 1.00 are asked for",
        "StaleMetrics: silent has no fresh metrics",
        "z1 r1 cold 10.0 28.8",
    ):
        assert words in text


def test_the_distance_to_its_ends_is_told_end_by_end() -> None:
    text = " ".join(printed(a_situation(), "exec-4").split())
    assert "ingest Component 10.0 100% in other zones" in text
    assert "kafka External 5.0 50% on its node, 50% in other zones" in text
    assert "driver Driver 10.0 100% in other zones" in text


def test_past_moves_of_its_component_are_listed() -> None:
    assert "Moves of it and of its component" in printed(a_situation(moves=(a_move(),)), "exec-2")


def test_many_nodes_are_cut_and_wide_shows_all() -> None:
    nodes = tuple(a_node(f"n{i}", cpu=0.5) for i in range(30))
    situation = a_situation(nodes=nodes, executors=(an_executor("exec-1", node="n0", cpu=0.5),))
    assert "... and 18 more nodes: see -o wide" in printed(situation, "exec-1")
    wide = explain(situation.snapshot, situation.policy, situation.memory, situation.now, executor="team/exec-1")
    assert "n29" in plain(*explanation_report(wide, situation, Format.WIDE), width=200)


@pytest.mark.parametrize("text", ["exec-1", "pod/exec-1", "pods/exec-1", "po/exec-1", "Pod/exec-1"])
def test_a_pod_may_be_named_as_kubectl_does(text: str) -> None:
    assert pod_name(text) == "exec-1"


def test_the_context_s_namespace_is_the_default_and_a_file_has_none() -> None:
    here, there = an_executor("exec-1", node="hot"), an_executor("exec-1", node="hot", namespace="other", uid="u2")
    situation = a_situation(executors=(here, there))
    assert located(Seen((situation,), namespace="other"), "exec-1", None)[1] == "other/exec-1"
    assert located(Seen((situation,), namespace="other"), "exec-1", "team")[1] == "team/exec-1"
    with pytest.raises(UnknownExecutorError, match="several: other/exec-1, team/exec-1; say which namespace with -n"):
        located(Seen((situation,)), "exec-1", None)


def test_the_pool_that_its_node_is_in_explains_it() -> None:
    stranger = replace(a_situation(nodes=(a_node("elsewhere"),)), policy=replace(a_situation().policy, name="batch"))
    found, _ = located(Seen((stranger, a_situation())), "exec-1", "team")
    assert found.policy.name == "streaming"


def test_an_unknown_pod_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    ended = run("explain", "pod/nobody", "-f", str(file), "-n", "team")
    assert (ended.code, ended.err) == (1, "Error: nobody: the file has no executor of that name in namespace team\n")


def test_programs_get_every_node_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    document = yaml.safe_load(run("explain", "exec-2", "-f", str(file), "-o", "yaml").out)
    reasons = {node["name"]: node["reason"] for node in document["nodes"]}
    assert reasons == {
        "hot": None,
        "cold": None,
        "far": None,
        "warm": None,
        "cordoned": "NodeUnavailable",
        "full": "NoRoom",
        "silent": "StaleMetrics",
    }
    assert [node["name"] for node in document["nodes"] if node["possible"]] == ["cold", "far", "warm"]
    assert document["objections"][0]["reason"] == "NothingToGain"
