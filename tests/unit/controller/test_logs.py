"""One structured line for every decision and everything that is done."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.controller import logs
from ballast.controller.actuator import Actuator
from ballast.controller.cluster_objects import read_moves
from ballast.controller.logs import Changes, Line
from ballast.controller.reporter import Reporter
from ballast.model import Memory, MovePhase, MovesMode, Pin, Placement, Plan, Reason, Refusal
from ballast.moves.state import MoveMetrics, MoveReason
from tests.apiserver import Answer
from tests.lanes import AtOnce
from tests.unit.controller.stage import NOW, Stage, move, stage, streaming
from tests.unit.controller.test_actuator import MOVE
from tests.unit.kube.builders import GATE

PAGE = Path(__file__).parents[3] / "docs" / "observability.md"
ROW = re.compile(r"^\| `(?P<event>\w+)` \| (?P<level>[A-Z]+) \| (?P<keys>[^|]+) \|", re.MULTILINE)
PROGRAM = """
import logging, sys
from ballast.controller.logs import configure
configure(as_json=sys.argv[1] == "json", level=logging.INFO)
log = logging.getLogger("ballast.here")
log.info("released %d of\\n%d", 1, 2, extra={"policy": "streaming"})
values = {"policy": "p", "reason": "two words", "detail": "", "places": {"a": 4}, "kept": True, "settings": object()}
logging.getLogger("ballast.there").info("placed", extra=values)
log.debug("not asked for")
logging.getLogger("kopf.objects").info("of no interest")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("a pass failed")
"""


@pytest.fixture
def pool() -> Iterator[Stage]:
    with stage() as found:
        found.add(streaming(1, node="hot"), *(streaming(number, node=None, gates=[GATE]) for number in (2, 3, 4)))
        yield found


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ballast.journal")


def lines(caplog: pytest.LogCaptureFixture, line: Line) -> list[dict[str, Any]]:
    """The keys and values of each line of that kind."""
    written = [vars(record) for record in caplog.records if vars(record).get("event") == line.value.event]
    return [{key: record[key] for key in line.value.keys} for record in written]


def actuator(pool: Stage) -> Actuator:
    return Actuator(
        pool.server.client(),
        AtOnce(),
        events=pool.events,
        telemetry=pool.telemetry,
        clock=lambda: NOW,
    )


def placement(number: int, node: str | None, pin: Pin = Pin.ZONE, **more: Any) -> Placement:
    name = f"spark-1-exec-{number}"
    return Placement(f"analytics/{name}", f"uid-{name}", node, ("a", "a-1", node) if node else (), pin, **more)


def test_the_page_lists_every_kind_of_line_with_its_level_and_keys() -> None:
    listed = {
        found["event"]: (found["level"], tuple(re.findall(r"\w+", found["keys"])))
        for found in ROW.finditer(PAGE.read_text(encoding="utf-8"))
    }
    assert listed == {line.value.event: (logging.getLevelName(line.value.level), line.value.keys) for line in Line}


def test_a_line_with_other_keys_than_its_own_is_refused() -> None:
    with pytest.raises(ValueError, match="LeadershipChanged has the keys identity, leading, not identity"):
        logs.note(Line.LEADER, "no more", {"identity": "one"})


def test_a_set_that_is_placed_is_one_line_and_one_each_for_those_without_a_place(
    pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    pool.server.refusals["/pods/spark-1-exec-4"] = Answer(403, {"message": "no"})
    bare = placement(3, None, Pin.NONE, reason=Reason.NO_ROOM, detail="the pool is full")
    plan = Plan(placements=(placement(2, "cold"), bare, placement(4, "cold")))
    actuator(pool).release(pool.context([]), plan)
    common = {"policy": "streaming", "topology": "analytics/spark-1", "executors": 1}
    assert lines(caplog, Line.PLACED) == [{**common, "places": {"cold": 1}, "reason": ""}]
    assert lines(caplog, Line.UNPLACED) == [{**common, "reason": "NoRoom", "detail": "the pool is full"}]
    (refused,) = lines(caplog, Line.NOT_RELEASED)
    assert refused["reason"] == "ReleaseRefused"
    assert pool.metric("ballast_unplaced_sets_total", cause="NoRoom") == 1.0


def test_a_set_that_has_only_a_zone_is_placed_there(pool: Stage, caplog: pytest.LogCaptureFixture) -> None:
    late = placement(2, None, reason=Reason.GATE_TIMEOUT)
    actuator(pool).release(pool.context([]), Plan(placements=(replace(late, location=("a", None, None)),)))
    assert [(line["places"], line["reason"]) for line in lines(caplog, Line.PLACED)] == [({"a": 1}, "GateTimeout")]


def test_a_set_whose_place_is_a_preference_is_placed(pool: Stage, caplog: pytest.LogCaptureFixture) -> None:
    preferred = placement(2, "cold", Pin.NONE, detail="its place is preferred, not required")
    actuator(pool).release(pool.context([]), Plan(placements=(preferred,)))
    assert [line["places"] for line in lines(caplog, Line.PLACED)] == [{"cold": 1}]
    assert lines(caplog, Line.UNPLACED) == []


def test_a_set_whose_places_are_preferred_since_they_were_refused_is_placed(
    pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    refused = placement(2, "cold", Pin.NONE, reason=Reason.TOO_MANY_ATTEMPTS, detail="its place is preferred")
    actuator(pool).release(pool.context([]), Plan(placements=(refused,)))
    assert [(line["places"], line["reason"]) for line in lines(caplog, Line.PLACED)] == [
        ({"cold": 1}, "TooManyAttempts")
    ]
    assert lines(caplog, Line.UNPLACED) == []


def test_what_no_policy_places_is_a_line_without_a_policy(pool: Stage, caplog: pytest.LogCaptureFixture) -> None:
    actuator(pool).release_strays(list(pool.context([]).pods.values()), {})
    (line,) = lines(caplog, Line.UNPLACED)
    assert (line["policy"], line["executors"], line["reason"]) == ("", 3, "NotEnforced")


def test_a_pod_that_is_deleted_since_its_place_cannot_run_it_is_a_line(
    pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stranded = replace(placement(2, None), detail="no node takes it")
    actuator(pool).delete_stranded(pool.context([]), Plan(replacements=(stranded,)))
    (line,) = lines(caplog, Line.DELETED)
    assert (line["policy"], line["executor"], line["outcome"]) == ("streaming", "analytics/spark-1-exec-2", "Deleted")


def test_a_move_that_is_measured_is_a_line_with_what_was_predicted(caplog: pytest.LogCaptureFixture) -> None:
    decided, predicted = MoveMetrics(90.0, 20.0), MoveMetrics(65.0, 45.0)
    (found,), _ = read_moves((move(1),))
    orders = replace(found.state.orders, decided=decided, predicted=predicted)
    ended = replace(found.state, orders=orders, phase=MovePhase.SUCCEEDED, reason=MoveReason.HELPED)
    logs.note_phase("streaming", replace(ended, before=decided, after=MoveMetrics(70.0, 40.0)))
    assert [line["phase"] for line in lines(caplog, Line.PHASE)] == ["Succeeded"]
    assert [(line["verdict"], line["predicted"], line["measured"]) for line in lines(caplog, Line.JUDGED)] == [
        ("Helped", 50.0, 40.0)
    ]


def test_a_move_is_a_line_when_it_is_decided(pool: Stage, caplog: pytest.LogCaptureFixture) -> None:
    context = pool.context([])
    enforced = replace(context.policy, moves=replace(context.policy.moves, mode=MovesMode.ENFORCE))
    actuator(pool).create_moves(replace(context, policy=enforced), Plan(moves=(MOVE,)))
    (line,) = lines(caplog, Line.DECIDED)
    assert (line["executor"], line["source"], line["target"]) == ("analytics/spark-1-exec-1", "hot", "cold")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(429, {"message": "a disruption budget", "details": {"causes": [{}]}}), "Blocked"),
        (Answer(403, {"message": "a webhook says no"}), "Refused"),
    ],
)
def test_phases_and_the_eviction_are_lines_but_not_each_attempt_of_it(
    answer: Answer, outcome: str, pool: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    pool.order(move(1))
    pool.server.refusals["/eviction"] = answer
    pool.run()
    pool.run()
    assert [(line["phase"], line["move"]) for line in lines(caplog, Line.PHASE)] == [
        ("Approved", "analytics/m1"),
        ("Leaving", "analytics/m1"),
    ]
    del pool.server.refusals["/eviction"]
    pool.run()
    assert [line["outcome"] for line in lines(caplog, Line.EVICTED)] == [outcome, "Evicted"]


def test_what_a_pass_refuses_is_a_line_only_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    changes = Changes()
    some = [Refusal(f"analytics/exec-{number:02}", Reason.TOO_YOUNG, "younger than 5m") for number in range(12)]
    changes.refusals("streaming", Plan(refusals=tuple(some)))
    changes.refusals("streaming", Plan(refusals=tuple(some)))
    changes.refusals("streaming", Plan(refusals=(*some[:10], replace(some[10], reason=Reason.COOLDOWN))))
    refused, gone = lines(caplog, Line.REFUSED), lines(caplog, Line.NOT_REFUSED)
    assert [(line["reason"], line["count"], len(line["subjects"])) for line in refused] == [
        ("TooYoung", 12, 10),
        ("Cooldown", 1, 1),
    ]
    assert [(line["reason"], line["subjects"]) for line in gone] == [("TooYoung", ["analytics/exec-11"])]


def test_a_recommendation_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    changes = Changes()
    for moves in ((MOVE,), (MOVE,), (), (MOVE,)):
        changes.recommended("streaming", moves)
    assert [line["gain"] for line in lines(caplog, Line.RECOMMENDED)] == [50.0, 50.0]


def test_a_policy_that_is_gone_is_forgotten() -> None:
    changes = Changes()
    changes.refusals("streaming", Plan())
    changes.recommended("streaming", ())
    changes.keep({"other"})
    assert len(changes) == 0


def test_a_report_says_what_is_refused(pool: Stage, caplog: pytest.LogCaptureFixture) -> None:
    reporter = Reporter(pool.server.client(), AtOnce(), events=pool.events, clock=lambda: NOW)
    reporter.begin({"streaming"}, [])
    plan = Plan(refusals=(Refusal("hot", Reason.BALANCED),), moves=(MOVE,))
    context = pool.context([])
    context.read.raw["metadata"]["resourceVersion"] = "1"
    reporter.report(context, plan, Memory(), renew=True)
    assert [line["reason"] for line in lines(caplog, Line.REFUSED)] == ["Balanced"]


def written(log_format: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, log_format], check=True, capture_output=True, text=True)
    assert done.stdout == ""
    return done.stderr


@pytest.fixture(scope="module")
def entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in written("json").splitlines()]


def test_every_entry_is_one_line_of_json(entries: list[dict[str, Any]]) -> None:
    assert [(e["level"], e["logger"], e["message"]) for e in entries] == [
        ("INFO", "ballast.here", "released 1 of\n2"),
        ("INFO", "ballast.there", "placed"),
        ("ERROR", "ballast.here", "a pass failed"),
    ]


def test_times_are_told_with_their_zone(entries: list[dict[str, Any]]) -> None:
    assert [datetime.fromisoformat(entry["time"]).utcoffset() for entry in entries] == [timedelta(0)] * 3


def test_what_an_entry_carries_is_a_field_of_it(entries: list[dict[str, Any]]) -> None:
    assert entries[0]["policy"] == "streaming"
    assert entries[1]["places"] == {"a": 4}
    assert "settings" not in entries[1]


def test_a_traceback_stays_within_its_entry(entries: list[dict[str, Any]]) -> None:
    assert "ZeroDivisionError: division by zero" in entries[2]["exc_info"]


def test_text_carries_every_value_behind_the_message() -> None:
    (line,) = [line for line in written("text").splitlines() if "placed" in line]
    assert line.endswith(' INFO ballast.there: placed policy=p reason="two words" detail="" places={"a":4} kept=true')


def test_text_is_for_people() -> None:
    assert " INFO ballast.here: released 1 of\n2 policy=streaming\n" in written("text")


VALUES = st.text() | st.integers() | st.booleans() | st.none() | st.dictionaries(st.text(), st.integers())


@given(st.dictionaries(st.from_regex(r"[a-z]{3,8}_x", fullmatch=True), VALUES, max_size=4))
def test_in_text_the_values_follow_the_message_and_can_be_read_back(values: dict[str, Any]) -> None:
    line = logs._Text("%(message)s").format(logging.makeLogRecord({"msg": "done", **values}))
    assert not set(line) & set("\r\n\x1b"), "it is one line"
    rest = line.removeprefix("done")
    for key, value in values.items():
        rest = rest.removeprefix(f" {key}=")
        if isinstance(value, str) and not rest.startswith('"'):
            found, length = value, len(value)
            assert rest[:length] == value
            assert " " not in value
        elif isinstance(value, str):
            assert not (value.isascii() and value.isalnum()), "plain words are for people"
            found, length = json.JSONDecoder().raw_decode(rest)
        else:
            found, length = json.JSONDecoder().raw_decode(rest)
        assert found == value
        rest = rest[length:]
    assert rest == ""
