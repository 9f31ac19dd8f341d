from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ballast.kube.actions import (
    Blocked,
    Changed,
    Refused,
    Release,
    Released,
    Vanished,
    delete_unscheduled,
    evict,
    release,
)
from ballast.kube.client import Limits
from ballast.kube.pods import held
from ballast.model import DEFAULT_LEVELS, Pin, Placement
from tests.unit.kube.builders import GATE, executor, expression, required
from tests.unit.kube.scripted import Answer, scripted

OK = Answer()
STALE = Answer(422, {"message": "the server rejected our request due to an error in our request", "details": {}})
LOST = Answer(hang_up=True)
AWAY = Answer(503, {"message": "away"})
NOT_VALID = Answer(422, {"message": "no such thing", "details": {"causes": [{"field": "spec.affinity"}]}})
FORBIDDEN_BY_WEBHOOK = Answer(400, {"message": "a webhook denied it"})
ONCE = Limits(attempts=1)


def gated(version: str = "7", **changes: Any) -> dict[str, Any]:
    pod = executor(gates=[GATE], **changes)
    pod["metadata"]["resourceVersion"] = version
    return pod


def pinned(zone: str) -> dict[str, Any]:
    """As the order's patch leaves it, if that is its zone."""
    preferred = {"weight": 100, "preference": {"matchExpressions": [expression("kubernetes.io/hostname", "node-1")]}}
    affinity = required({"matchExpressions": [expression("topology.kubernetes.io/zone", zone)]})
    affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    return executor(affinity=affinity)


PLACED, ELSEWHERE = pinned("a"), pinned("b")


def order() -> Release:
    kept = held(gated())
    assert kept is not None
    placement = Placement("analytics/spark-1-exec-1", "u", "node-1", ("a", None, "node-1"), Pin.ZONE)
    return Release("analytics", "spark-1-exec-1", "uid-spark-1-exec-1", kept, placement)


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        pytest.param([OK], Released(Pin.ZONE), id="done"),
        pytest.param([STALE, Answer(body=gated("8")), OK], Released(Pin.ZONE), id="touched in between"),
        pytest.param([LOST, Answer(body=PLACED), OK], Released(Pin.ZONE), id="done, but the answer was lost"),
        pytest.param([STALE, Answer(body=PLACED), OK], Released(Pin.ZONE), id="done by a first try, unanswered"),
        pytest.param([STALE, Answer(body=executor()), OK], Released(already=True), id="let go by somebody else"),
        pytest.param([STALE, Answer(body=ELSEWHERE), OK], Released(already=True), id="placed by somebody else"),
        pytest.param([LOST, Answer(body=gated()), OK], Released(Pin.ZONE), id="not done, and the answer was lost"),
        pytest.param([Answer(404)], Vanished(), id="deleted"),
        pytest.param([STALE, Answer(404)], Vanished(), id="touched, then deleted"),
        pytest.param([STALE, Answer(body=gated(leaving=True))], Vanished(), id="being deleted"),
    ],
)
def test_a_release_ends_in(answers: list[Answer], outcome: object, tmp_path: Path) -> None:
    with scripted(*answers) as script:
        assert release(script.client(tmp_path, ONCE), order(), DEFAULT_LEVELS) == outcome


def test_the_second_patch_is_guarded_by_the_version_that_was_read_again(tmp_path: Path) -> None:
    with scripted(STALE, Answer(body=gated("8")), OK) as script:
        release(script.client(tmp_path), order(), DEFAULT_LEVELS)
        patches = [asked.body for asked in script.asked if asked.method == "PATCH"]
    assert [patch[0]["value"] for patch in patches] == ["7", "8"]


def test_a_pod_that_changes_all_the_time_is_left_for_the_next_decision(tmp_path: Path) -> None:
    changes = [answer for version in range(8, 17) for answer in (STALE, Answer(body=gated(str(version))))]
    with scripted(*changes) as script:
        assert isinstance(release(script.client(tmp_path), order(), DEFAULT_LEVELS), Changed)


@pytest.mark.parametrize("answers", [[NOT_VALID], [Answer(403, {"message": "no"})], [AWAY]])
def test_a_refusal_is_a_value_with_the_servers_words(answers: list[Answer], tmp_path: Path) -> None:
    with scripted(*answers) as script:
        outcome = release(script.client(tmp_path, ONCE), order(), DEFAULT_LEVELS)
    assert isinstance(outcome, Refused)
    assert outcome.detail == answers[0].body["message"]


@pytest.mark.parametrize(
    ("answers", "patches"),
    [
        pytest.param([FORBIDDEN_BY_WEBHOOK, Answer(body=gated())], 1, id="at once"),
        pytest.param([STALE, Answer(body=gated("8")), FORBIDDEN_BY_WEBHOOK, Answer(body=gated("8"))], 2, id="later"),
    ],
)
def test_what_a_webhook_forbids_without_a_cause_is_refused_when_the_pod_is_as_it_was(
    answers: list[Answer], patches: int, tmp_path: Path
) -> None:
    with scripted(*answers) as script:
        assert release(script.client(tmp_path), order(), DEFAULT_LEVELS) == Refused("a webhook denied it")
        assert len(script.writes) == patches


def test_a_busy_server_is_no_budget(tmp_path: Path) -> None:
    with scripted(Answer(429, {"message": "too many requests, please try again later"})) as script:
        assert isinstance(evict(script.client(tmp_path), namespace="n", name="p", uid="u"), Refused)
        assert len(script.asked) == 1


def test_an_eviction_says_which_pod_it_means_and_a_budget_in_its_own_words_why_not(tmp_path: Path) -> None:
    words = {"details": {"causes": [{"reason": "DisruptionBudget", "message": "needs 3 and has 3"}]}}
    with scripted(Answer(429, words)) as script:
        outcome = evict(script.client(tmp_path), namespace="n", name="p", uid="u-1")
        assert script.asked[0].body["deleteOptions"]["preconditions"] == {"uid": "u-1"}
    assert outcome == Blocked("needs 3 and has 3")


def test_deleting_is_guarded_by_uid_and_by_the_version_that_was_unscheduled(tmp_path: Path) -> None:
    with scripted(Answer(body=gated("9")), OK) as script:
        delete_unscheduled(script.client(tmp_path), namespace="n", name="p", uid="uid-spark-1-exec-1")
        assert script.asked[1].body["preconditions"] == {"uid": "uid-spark-1-exec-1", "resourceVersion": "9"}
