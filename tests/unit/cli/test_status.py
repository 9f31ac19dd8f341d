"""`ballast status`: a pool as a table and as a document."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ballast.cli import status
from ballast.cli.output import Format, plain
from ballast.cli.situation import Situation, dump
from ballast.cli.source import Seen
from ballast.cli.status import pool_document, pool_report, status_document, status_report
from ballast.errors import BallastError
from ballast.model import AvgShedderPolicy, ConditionReason, LoadUnit, MetricsHealth, MovePhase, SheddingPolicy
from ballast.planner.explanation import explain
from ballast.planner.plan import plan
from tests.builders import NOW, a_move, a_node, an_executor
from tests.unit.cli.pools import a_situation, with_a_held_executor, with_a_proposed_move
from tests.unit.cli.program import run


def printed(situation: Situation, form: Format = Format.TABLE, *, width: int = 80) -> str:
    return plain(*pool_report(situation, form), width=width)


def row(text: str, first: str, name: str) -> list[str]:
    """The words of the line that begins with `first` and has `name` right after it or one further."""
    lines = (line.split() for line in text.splitlines())
    return next(words for words in lines if words[:1] == [first] and name in words[1:3])


def test_the_header_gives_modes_spread_balance_and_budget() -> None:
    head = printed(a_situation()).split("\n\n")[0]
    assert "Policy streaming  placement Recommend   moves Recommend" in head
    assert "Nodes 7, 1 without metrics   mean 37.5   std 28.5   gap 85.0   balanced no" in head
    assert "Budget 0 of 6 moves used per 1h" in head


def test_each_node_has_its_place_score_executors_pair_and_hits() -> None:
    text = printed(a_situation())
    assert " ".join(row(text, "z1", "hot")) == "z1 r1 hot |||||||||| 95.0 2 to cold low 3/8 high 1/1"
    assert " ".join(row(text, "z1", "cold")) == "z1 r1 cold |......... 10.0 0 from hot low 1/8 high 1/1"
    assert row(text, "z2", "silent") == ["z2", "r3", "silent", "no", "metrics", "0"]


@pytest.mark.parametrize("unit", LoadUnit)
def test_status_and_explain_tell_the_same_hits_of_what_was_remembered(unit: LoadUnit) -> None:
    shedder = AvgShedderPolicy(unit=unit, low_hits=8, high_hits=8)
    first = a_situation()
    first = replace(first, policy=replace(first.policy, shedding=SheddingPolicy(avg_shedder=shedder)))
    _, memory = plan(first.snapshot, first.policy, first.memory, NOW)
    later = replace(first, memory=memory, snapshot=replace(first.snapshot, taken_at=NOW + 300))
    hot = next(node for node in pool_document(later, later.plan())["nodes"]["items"] if node["name"] == "hot")
    told = explain(later.snapshot, later.policy, later.memory, later.now, executor="team/exec-1")
    assert (hot["lowHits"], hot["highHits"]) == (told.low_hits, told.high_hits)
    assert hot["lowHits"] >= 2


def test_topologies_show_how_far_their_traffic_goes() -> None:
    text = printed(with_a_held_executor())
    assert row(text, "team/clicks", "declared") == ["team/clicks", "declared", "4/4", "1", "equal", "44%", "62%"]


def test_an_application_without_a_declaration_is_listed_too() -> None:
    stranger = an_executor("other-1", node="far", topology="team/spark-7", component="default")
    situation = a_situation()
    pool = replace(situation.snapshot, executors=(*situation.snapshot.executors, stranger))
    text = printed(replace(situation, snapshot=pool))
    assert row(text, "team/spark-7", "application") == ["team/spark-7", "application", "1", "0", "equal", "0%", "0%"]


def test_a_proposed_move_is_listed_with_the_way_to_approve_it() -> None:
    text = printed(with_a_proposed_move())
    assert row(text, "team", "m1") == ["team", "m1", "m1", "hot", "cold", "load", "Proposed", "1m30s"]
    assert "kubectl ballast approve MOVE -n NAMESPACE" in text


def test_ended_moves_count_in_the_budget_and_are_not_listed() -> None:
    text = printed(a_situation(moves=(a_move(started_at=NOW - 600),)))
    assert "Budget 1 of 6 moves used per 1h, next one free in 50m" in text
    assert "Open moves" not in text


def test_without_metrics_it_says_why_and_draws_no_bars() -> None:
    silent = MetricsHealth(
        available=False, reason=ConditionReason.NOT_CONFIGURED, message="metrics.prometheus is not set"
    )
    text = printed(a_situation(metrics=silent))
    assert "No metrics NotConfigured: metrics.prometheus is not set" in text
    assert "balanced unknown" in text
    assert "|" not in text


def test_a_pool_without_nodes_points_at_the_selector() -> None:
    assert "none: see spec.nodeSelector" in printed(a_situation(nodes=(), executors=()))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_every_line_fits_however_long_the_names_are(width: int) -> None:
    situation = a_situation()
    domain = "eu-central-1.compute.internal"
    nodes = tuple(
        a_node(f"ip-10-0-{i}-134.{domain}", zone="eu-central-1a", rack="rack-12", cpu=0.1 * i) for i in range(9)
    )
    executors = tuple(
        an_executor(f"clickstream-sessions-{'f' * 30}-exec-{i}", node=nodes[i].name, cpu=0.1) for i in range(9)
    )
    pool = replace(situation.snapshot, nodes=nodes, executors=executors, moves=(a_move(phase=MovePhase.LEAVING),))
    text = printed(replace(situation, snapshot=pool), width=width)
    assert max(map(len, text.splitlines())) <= width
    assert " 80.0" in text


def test_wide_gives_whole_names_and_more_columns() -> None:
    situation = a_situation(nodes=tuple(a_node(f"n{i}.example.org", cpu=0.5) for i in (1, 2)), executors=())
    assert "n1.example.org" not in printed(situation)
    wide = printed(situation, Format.WIDE, width=200)
    assert "n1.example.org" in wide
    assert "PROJECTED" in wide


def test_problems_of_other_objects_are_told_below() -> None:
    text = plain(*status_report(Seen((a_situation(),), ("BalancingPolicy old: its nodes overlap",)), Format.TABLE))
    assert text.endswith("Problem BalancingPolicy old: its nodes overlap")


def test_without_an_operator_it_says_so() -> None:
    seen = Seen((a_situation(),), operator_runs=False)
    told = plain(*status_report(seen, Format.TABLE)).splitlines()[-1]
    assert told.startswith("No operator runs: its lease in namespace ballast-system is not held.")
    assert status_document(seen)["operatorRuns"] is False


@pytest.mark.parametrize("runs", [True, None])
def test_with_an_operator_or_where_leases_may_not_be_read_nothing_is_said_of_it(*, runs: bool | None) -> None:
    seen = Seen((a_situation(),), operator_runs=runs)
    assert "operator" not in plain(*status_report(seen, Format.TABLE))
    assert status_document(seen)["operatorRuns"] is runs


def test_programs_get_all_of_it_as_one_document() -> None:
    document = status_document(Seen((a_situation(), with_a_proposed_move())))
    assert [each["policy"] for each in document["policies"]] == ["streaming", "streaming"]
    assert document["policies"][1]["moves"][0]["phase"] == "Proposed"
    assert document["policies"][0]["budgets"] == [
        {
            "scope": "Pool",
            "moves": 6,
            "percent": None,
            "perSeconds": 3600.0,
            "schedule": None,
            "used": 0,
            "nextReset": None,
        }
    ]
    assert json.loads(json.dumps(document)) == document


def test_a_file_serves_instead_of_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    table, document = run("status", "-f", str(file)), run("status", "-f", str(file), "-o", "yaml")
    assert table.code == document.code == 0
    assert "balanced no" in table.out
    assert yaml.safe_load(document.out)["policies"][0]["nodes"]["hottest"] == "hot"


def test_a_file_about_another_policy_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(a_situation()))
    ended = run("status", "-f", str(file), "-p", "batch")
    assert ended.code == 1
    assert "is about BalancingPolicy streaming, not about batch" in ended.err


def test_a_template_and_names_are_printed_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.yaml"
    file.write_text(dump(with_a_proposed_move()))
    hot = run("status", "-f", str(file), "-o=jsonpath={.policies[*].nodes.items[?(@.score > 90)].name}")
    assert (hot.code, hot.out) == (0, "hot")
    assert run("status", f"-f={file}", "-o", "name").out.splitlines() == [
        "balancingpolicy.ballast.dev/streaming",
        "sparktopology.ballast.dev/clicks",
        "executormove.ballast.dev/m1",
    ]
    assert run("status", "-f", str(file), "-o", "name", "-n=other").out == "balancingpolicy.ballast.dev/streaming\n"


class Looks:
    """A cluster that changes, and goes away, until somebody stops watching."""

    def __init__(self, *seen: Seen | BallastError) -> None:
        self._left = list(seen)

    def __call__(self, policy: str | None) -> Seen:
        if not self._left:
            raise KeyboardInterrupt
        found = self._left.pop(0)
        if isinstance(found, BallastError):
            raise found
        return found


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def watch(*seen: Seen | BallastError) -> None:
        monkeypatch.setattr(status, "source", lambda where: contextlib.nullcontext(Looks(*seen)))

    return watch


def test_watching_looks_again_until_it_is_interrupted(looks: Callable[..., None]) -> None:
    looks(Seen((a_situation(),)), Seen((with_a_proposed_move(),)))
    ended = run("status", "--watch", "--every", "0.5")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("Policy streaming") == 2
    assert ended.out.count("Proposed") == 1


def test_watching_as_yaml_prints_one_document_a_look(looks: Callable[..., None]) -> None:
    looks(Seen((a_situation(),)), Seen((with_a_proposed_move(),)))
    ended = run("status", "-w", "--every", "0.5", "-o", "yaml")
    documents = [each for each in yaml.safe_load_all(ended.out) if each is not None]
    assert [len(each["policies"][0]["moves"]) for each in documents] == [0, 1]


def test_in_a_terminal_the_picture_is_redrawn_and_outlives_a_cluster_that_is_away(
    looks: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    looks(Seen((a_situation(),)), BallastError("no answer from the API server"), Seen((a_situation(),)))
    ended = run("status", "-w", "--every", "0.5")
    assert ended.code == 0
    assert ended.out.count("Policy") == 2
    assert "Error: no answer from the API server" in ended.out
    assert ended.out.index("\x1b[?1049h") < ended.out.index("Policy") < ended.out.index("\x1b[?1049l")
