"""`ballast explain`: one executor, in words and as a document."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ballast.cli.explain import capacity_report, explanation_report, located, pod_name, topology_located
from ballast.cli.output import Format, plain
from ballast.cli.situation import Situation, dump
from ballast.cli.source import Seen
from ballast.model import ExecutorUsage
from ballast.planner.capacity import UnknownTopologyError, capacities
from ballast.planner.explanation import UnknownExecutorError, explain
from tests.apiserver import Answer, kubeconfig, scripted
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
    assert "stays REASON WHY NothingToGain 100% of the seconds per task of the fastest quarter" in text
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


@pytest.mark.parametrize(
    "what", ["topology/clicks", "sparktopology.ballast.dev/clicks", "topology clicks", "pod/exec-1", "pod exec-1"]
)
def test_what_is_explained_has_the_name_that_kubectl_reads(tmp_path: Path, what: str) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    named = run("explain", *what.split(), "-A", "-f", str(file), "-o", "name")
    assert named.out == ("pod/exec-1\n" if "exec" in what else "sparktopology.ballast.dev/clicks\n")


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


def a_topology_at_work() -> Situation:
    """One executor computes, one waits, one collects garbage, and one has nothing to do."""
    usages = {"exec-1": (0.95, 0.9), "exec-2": (0.95, 0.1), "exec-3": (0.1, 0.9), "exec-4": (0.05, 0.05)}
    situation = a_situation()
    executors = tuple(
        replace(each, usage=ExecutorUsage(slot_ratio=slots, cpu_cores=cores))
        for each in situation.snapshot.executors
        for slots, cores in [usages[each.name]]
    )
    return a_situation(executors=executors)


def test_a_topology_is_explained_by_capacity_and_load_of_each_executor(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(dump(a_topology_at_work()), encoding="utf-8")
    told = run("explain", "topology/clicks", "-f", str(path), name="kubectl ballast")
    assert told.code == 0
    rows = [line.split() for line in told.out.splitlines()]
    assert ["ingest", "exec-1", "hot", "95%", "90%", "HighCapacityHighLoad"] in rows
    assert ["ingest", "exec-2", "hot", "95%", "10%", "HighCapacityLowLoad"] in rows
    assert ["ingest", "exec-3", "warm", "10%", "90%", "LowCapacityHighLoad"] in rows
    assert ["ingest", "exec-4", "far", "5%", "5%", "LowCapacityLowLoad"] in rows
    text = " ".join(told.out.split())
    for words in (
        "Tasks fill its slots and compute",
        "they wait for shuffle data or a remote service",
        "ballast size --gc-log FILE",
        "Some executors of ingest have a high capacity, and others hardly any.",
        "spec.placement.scope",
    ):
        assert words in text


def test_programs_get_capacity_and_load_as_a_document(tmp_path: Path) -> None:
    path = tmp_path / "pool.yaml"
    path.write_text(dump(a_topology_at_work()), encoding="utf-8")
    document = yaml.safe_load(run("explain", "stopo/clicks", "-f", str(path), "-o", "yaml").out)
    assert document["topology"] == "team/clicks"
    assert document["executors"][1] == {
        "executor": "team/exec-2",
        "component": "ingest",
        "node": "hot",
        "capacity": 0.95,
        "load": 0.1,
        "combination": "HighCapacityLowLoad",
    }
    assert document["uneven"]["components"] == ["ingest"]


def test_without_spark_metrics_a_topology_says_what_to_set() -> None:
    situation, key = topology_located(Seen((a_situation(),)), "clicks", None)
    told = plain(*capacity_report(capacities(situation.snapshot, key), situation.snapshot.nodes))
    assert "spark.ui.prometheus.enabled=true" in told


def test_a_topology_that_is_not_there_or_not_unique_is_told() -> None:
    seen = Seen((a_situation(),))
    with pytest.raises(UnknownTopologyError, match="no executor belongs to a topology of that name in namespace x"):
        topology_located(seen, "clicks", "x")
    own = a_situation().snapshot.executors[0]
    other = replace(own, namespace="b", topology="b/clicks")
    with pytest.raises(UnknownTopologyError, match="there are several: b/clicks, team/clicks"):
        topology_located(Seen((a_situation(executors=(own, other)),)), "clicks", None)


POLICY = """\
apiVersion: ballast.dev/v1alpha1
kind: BalancingPolicy
metadata: {name: careful}
spec:
  profile: Conservative
  moves: {mode: Approve, minGain: 5, budgets: [{moves: 1, per: 1h, scope: Node}]}
"""


@pytest.fixture
def policy_file(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return str(path)


def test_a_policy_lists_every_field_with_its_value_and_where_it_comes_from(policy_file: str) -> None:
    ended = run("explain", "policy/careful", "-f", policy_file)
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert (ended.code, lines[0]) == (0, "BalancingPolicy careful profile Conservative")
    for line in (
        "profile spec Conservative",
        "nodeSelector default all",
        "interval default 60s",
        "placement.maxExecutorsPerZonePercent profile 67",
        "shedding.avgShedder.lowHits profile 12",
        "shedding.avgShedder.unit default Usage",
        "moves.mode spec Approve",
        "moves.minGain spec 5",
        "moves.cooldown profile 30m",
        "moves.budgets spec 1 per node in 1h",
    ):
        assert line in lines


def test_the_fields_of_a_policy_are_there_for_programs(policy_file: str) -> None:
    document = json.loads(run("explain", "bpol/careful", "-f", policy_file, "-o", "json").out)
    assert (document["policy"], document["profile"]) == ("careful", "Conservative")
    found = {each["field"]: each for each in document["fields"]}
    assert found["moves.cooldown"] == {"field": "moves.cooldown", "value": "30m", "origin": "profile"}
    assert found["moves.budgets"]["value"] == [{"moves": 1, "per": "1h", "scope": "Node"}]


def test_a_policy_that_the_file_lacks_is_named_with_those_it_has(policy_file: str) -> None:
    ended = run("explain", "policy/bold", "-f", policy_file)
    assert (ended.code, "has no BalancingPolicy bold; it has: careful" in ended.err) == (1, True)


def test_a_policy_is_read_from_the_cluster(tmp_path: Path) -> None:
    stored = {"metadata": {"name": "careful", "uid": "u"}, "spec": {"profile": "Aggressive", "interval": "60s"}}
    with scripted(Answer(body=stored)) as server:
        ended = run("explain", "policy/careful", "-o", "yaml", "--kubeconfig", str(kubeconfig(tmp_path, server.url)))
    fields = {each["field"]: each["origin"] for each in yaml.safe_load(ended.out)["fields"]}
    assert (fields["interval"], fields["moves.cooldown"]) == ("default", "profile")


def test_a_policy_that_the_cluster_lacks_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with scripted(
        Answer(404, {"kind": "Status", "reason": "NotFound", "message": "not found", "details": {"name": "bold"}})
    ) as server:
        ended = run("explain", "policy/bold", "--kubeconfig", str(kubeconfig(tmp_path, server.url)))
    assert (ended.code, ended.err) == (1, "Error: there is no BalancingPolicy bold: list them with kubectl get bpol\n")
