from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.actions import (
    Blocked,
    Changed,
    Refused,
    Release,
    Released,
    ReleasePatch,
    Scheduled,
    UnderWay,
    Vanished,
    delete_unscheduled,
    evict,
    release,
    release_even_unplaced,
    release_many,
    release_patch,
)
from ballast.kube.client import Limits
from ballast.kube.pods import held
from ballast.model import DEFAULT_LEVELS, Level, Levels, Location, Pin, Placement, Reason
from ballast.tenancy.lane import Lane
from ballast.tenancy.lane import Limits as LaneLimits
from tests.apiserver import Answer, Asked, scripted
from tests.unit.kube.builders import GATE, executor, expression, required

OK = Answer()
STALE = Answer(422, {"message": "the server rejected our request due to an error in our request", "details": {}})
LOST = Answer(hang_up=True)
AWAY = Answer(503, {"message": "away"})
NOT_VALID = Answer(422, {"message": "no such thing", "details": {"causes": [{"field": "spec.affinity"}]}})
FORBIDDEN_BY_WEBHOOK = Answer(400, {"message": "a webhook denied it"})
TOO_LARGE = Answer(500, {"message": "etcdserver: request is too large"})
NOT_READY = Answer(403, {"message": 'pods "a" is forbidden: not yet ready to handle request'})
NO_RIGHT = Answer(403, {"message": 'pods "a" is forbidden: User "x" cannot patch resource "pods"'})
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
KUEUE, OURS = "kueue.x-k8s.io/admission", GATE["name"]
ALSO_KUEUES = executor(gates=[{"name": KUEUE}, GATE])
TIGHTENED = gated(affinity=required({"matchExpressions": [expression("disk", "ssd")]}))


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
        pytest.param(
            [STALE, Answer(body=ALSO_KUEUES)], Changed(f"its gates are now {KUEUE}, {OURS}"), id="gated again"
        ),
        pytest.param([STALE, Answer(body=TIGHTENED)], Changed("its affinity was changed"), id="tightened by its owner"),
    ],
)
def test_a_release_ends_in(answers: list[Answer], outcome: object, tmp_path: Path) -> None:
    with scripted(*answers) as script:
        assert release(script.client(tmp_path, ONCE), order(), DEFAULT_LEVELS) == outcome


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(500, {"message": "Internal error occurred: jsonpatch"}), Refused("Internal error occurred: jsonpatch")),
        (AWAY, Changed("it changes faster than it can be patched")),
    ],
    ids=["a webhook's patch does not apply", "the API server is busy"],
)
def test_a_pod_that_can_be_read_but_never_written_is_refused(answer: Answer, outcome: object, tmp_path: Path) -> None:
    with scripted() as script:
        script.by = lambda asked: answer if asked.method == "PATCH" else Answer(body=gated())
        found = release(script.client(tmp_path, ONCE), order(), DEFAULT_LEVELS)
    assert found == outcome
    assert getattr(found, "unacceptable", False) is isinstance(outcome, Refused)


def orders_of(*namespaces: str) -> list[Release]:
    """One of each, named and numbered after it."""
    names = [(space, f"{space}-{number}") for number, space in enumerate(namespaces)]
    return [replace(order(), namespace=space, name=name, uid=name) for space, name in names]


def test_many_are_released_and_told_of_in_the_order_of_the_orders(tmp_path: Path) -> None:
    orders = orders_of(*["team", "gone"] * 3)
    with scripted() as script:
        script.by = lambda asked: Answer(404) if "/gone-" in asked.path else OK
        found = release_many(script.client(tmp_path), Lane(), orders, DEFAULT_LEVELS, patiently=True)
    assert [isinstance(each, Vanished) for each in found] == [False, True] * 3


def test_before_a_process_ends_pods_of_a_slow_namespace_are_released_after_all_others(tmp_path: Path) -> None:
    """A webhook that took ten seconds for each pod of one tenant held all connections, and the process was ended."""
    orders, through, kept_waiting = orders_of(*["slow"] * 40, *["team"] * 40), Event(), list[str]()

    def answer(asked: Asked) -> Answer:
        if "/slow-" in asked.path:
            if not through.wait(60.0):
                kept_waiting.append(asked.path)
        elif sum("/team-" in each.path for each in script.asked) == 40:
            through.set()
        return OK

    with scripted() as script:
        script.by = answer
        lane = Lane(LaneLimits(workers=4))
        found = release_many(script.client(tmp_path), lane, orders, DEFAULT_LEVELS, patiently=True)
    assert kept_waiting == []
    assert found == [Released(Pin.ZONE)] * 80


def test_a_pass_waits_for_two_seconds_although_each_of_very_many_requests_is_quick(tmp_path: Path) -> None:
    """What is left goes on, and is not sent again by the next pass."""
    orders, passed_seconds, returned, kept_waiting = orders_of(*["team"] * 12), [0.0], Event(), list[str]()

    def answer(asked: Asked) -> Answer:
        if passed_seconds[0] >= 2.0 and not returned.wait(20.0):
            kept_waiting.append(asked.path)
            returned.set()
        passed_seconds[0] += 0.4
        return OK

    with scripted() as script:
        script.by = answer
        lane = Lane(LaneLimits(workers=1), monotonic=lambda: passed_seconds[0])
        client = script.client(tmp_path)
        first = release_many(client, lane, orders, DEFAULT_LEVELS)
        assert kept_waiting == []
        assert first[:4] == [Released(Pin.ZONE)] * 4
        assert first[5:] == [UnderWay()] * 7
        returned.set()
        left = release_many(client, lane, orders[5:], DEFAULT_LEVELS, patiently=True)
    assert left == [Released(Pin.ZONE)] * 7
    assert len(script.writes) == 12


def test_the_second_patch_is_guarded_by_the_version_that_was_read_again(tmp_path: Path) -> None:
    with scripted(STALE, Answer(body=gated("8")), OK) as script:
        release(script.client(tmp_path), order(), DEFAULT_LEVELS)
        patches = [asked.body for asked in script.asked if asked.method == "PATCH"]
    assert [patch[0]["value"] for patch in patches] == ["7", "8"]


def test_a_pod_that_changes_all_the_time_is_left_for_the_next_decision(tmp_path: Path) -> None:
    changes = [answer for version in range(8, 17) for answer in (STALE, Answer(body=gated(str(version))))]
    with scripted(*changes) as script:
        assert isinstance(release(script.client(tmp_path), order(), DEFAULT_LEVELS), Changed)


def test_a_pod_that_is_to_go_as_it_is_goes_although_it_changes_all_the_time(tmp_path: Path) -> None:
    """Its author changed a label without end, and `helm uninstall` failed each time."""
    raw = executor(gates=[{"name": KUEUE}, GATE])
    seen = held(raw)
    assert seen is not None
    as_it_is = replace(order(), held=seen, placement=Placement("analytics/spark-1-exec-1", "u", None, (), Pin.NONE))

    def answer(asked: Asked) -> Answer:
        raw["metadata"]["resourceVersion"] = str(len(script.asked))
        if asked.method == "GET":
            return Answer(body=raw)
        try:
            raw["spec"] = jsonpatch.apply_patch(raw, asked.body)["spec"]
        except jsonpatch.JsonPatchTestFailed:
            return STALE
        return OK

    with scripted() as script:
        script.by = answer
        assert release(script.client(tmp_path), as_it_is, DEFAULT_LEVELS) == Released()
    assert raw["spec"]["schedulingGates"] == [{"name": KUEUE}]


@pytest.mark.parametrize("answers", [[NOT_VALID], [Answer(403, {"message": "no"})], [AWAY]])
def test_a_refusal_is_a_value_with_the_servers_words(answers: list[Answer], tmp_path: Path) -> None:
    with scripted(*answers) as script:
        outcome = release(script.client(tmp_path, ONCE), order(), DEFAULT_LEVELS)
    assert isinstance(outcome, Refused)
    assert outcome.detail == answers[0].body["message"]


def test_a_pod_as_long_as_etcd_takes_is_refused_and_not_read_again(tmp_path: Path) -> None:
    """Its author may create many, and each reading is a megabyte and a half."""
    with scripted(TOO_LARGE) as script:
        outcome = release(script.client(tmp_path), order(), DEFAULT_LEVELS)
    assert outcome == Refused("etcdserver: request is too large", lasting=True)
    assert [asked.method for asked in script.asked] == ["PATCH"]


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


@pytest.mark.parametrize(
    ("refusal", "outcome", "patches"),
    [
        pytest.param(NOT_VALID, Released(Pin.NONE, Reason.AFFINITY_REFUSED), 2, id="not valid"),
        pytest.param(Answer(403, {"message": "no"}), Released(Pin.NONE, Reason.AFFINITY_REFUSED), 2, id="forbidden"),
        pytest.param(
            Answer(503, {"message": 'admission webhook "no.example" denied the request: no affinity'}),
            Released(Pin.NONE, Reason.AFFINITY_REFUSED),
            2,
            id="denied",
        ),
        pytest.param(TOO_LARGE, Refused("etcdserver: request is too large", lasting=True), 1, id="too large"),
        pytest.param(Answer(401, {"message": "no"}), Refused("no"), 1, id="a server in trouble"),
        pytest.param(
            NO_RIGHT,
            Refused(NO_RIGHT.body["message"], forbidden=True),
            1,
            id="rights that are missing, or not read yet",
        ),
    ],
)
def test_a_pod_is_released_as_it_is_where_its_affinity_is_refused(
    refusal: Answer, outcome: object, patches: int, tmp_path: Path
) -> None:
    """An admission policy may forbid affinity, and no pod may stay gated for that."""
    with scripted() as script:
        script.by = lambda asked: refusal if "affinity" in str(asked.body) else OK
        assert release_even_unplaced(script.client(tmp_path), order(), DEFAULT_LEVELS) == outcome
        assert len(script.writes) == patches


def test_after_its_restart_an_api_server_that_is_not_ready_yet_refuses_no_place(tmp_path: Path) -> None:
    with scripted(NOT_READY, Answer(body=gated("8")), OK) as script:
        assert release_even_unplaced(script.client(tmp_path, ONCE), order(), DEFAULT_LEVELS) == Released(Pin.ZONE)


def test_the_refusal_is_returned_if_nothing_releases_the_pod(tmp_path: Path) -> None:
    with scripted(NOT_VALID, Answer(403, {"message": "no"})) as script:
        assert release_even_unplaced(script.client(tmp_path), order(), DEFAULT_LEVELS) == Refused("no such thing")


def test_a_pod_that_was_released_meanwhile_counts_as_already_released(tmp_path: Path) -> None:
    with scripted(NOT_VALID, STALE, Answer(body=executor())) as script:
        assert release_even_unplaced(script.client(tmp_path), order(), DEFAULT_LEVELS) == Released(already=True)


def test_a_busy_server_is_no_budget(tmp_path: Path) -> None:
    with scripted(Answer(429, {"message": "too many requests, please try again later"})) as script:
        assert isinstance(evict(script.client(tmp_path), namespace="n", name="p", uid="u"), Refused)
        assert len(script.asked) == 1


def test_an_eviction_says_which_pod_it_means_and_a_budget_in_its_own_words_why_not(tmp_path: Path) -> None:
    causes = [{"reason": "DisruptionBudget", "message": "needs 3 and has 3"}, {"message": "try again"}, {}]
    words = {"details": {"causes": causes}}
    with scripted(Answer(429, words)) as script:
        outcome = evict(script.client(tmp_path), namespace="n", name="p", uid="u-1")
        (asked,) = script.asked
    assert asked.path == "/api/v1/namespaces/n/pods/p/eviction"
    assert asked.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "n"},
        "deleteOptions": {"preconditions": {"uid": "u-1"}},
    }
    assert outcome == Blocked("needs 3 and has 3 try again")


def test_deleting_is_guarded_by_uid_and_by_the_version_that_was_unscheduled(tmp_path: Path) -> None:
    with scripted(Answer(body=gated("9")), OK) as script:
        delete_unscheduled(script.client(tmp_path), namespace="n", name="p", uid="uid-spark-1-exec-1")
        assert script.asked[1].body["preconditions"] == {"uid": "uid-spark-1-exec-1", "resourceVersion": "9"}


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        pytest.param(executor(node="node-1"), Scheduled("node-1"), id="bound meanwhile"),
        pytest.param(gated(leaving=True), Vanished(), id="being deleted"),
        pytest.param({**gated(), "metadata": {**gated()["metadata"], "uid": "another"}}, Vanished(), id="another pod"),
    ],
)
def test_a_pod_that_is_not_the_unscheduled_one_is_not_deleted(
    found: dict[str, Any], outcome: object, tmp_path: Path
) -> None:
    with scripted(Answer(body=found), OK) as script:
        client = script.client(tmp_path)
        assert delete_unscheduled(client, namespace="n", name="p", uid="uid-spark-1-exec-1") == outcome
        assert script.writes == []


VERSION_DIFFERS = "Precondition failed: ResourceVersion in precondition: 7"


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("Precondition failed: UID in precondition: u", Vanished()),
        (VERSION_DIFFERS, Changed(VERSION_DIFFERS)),
    ],
    ids=["another pod of the name", "changed since it was read"],
)
def test_a_pod_that_is_not_as_it_was_read_is_not_deleted(message: str, outcome: object, tmp_path: Path) -> None:
    with scripted(Answer(body=gated()), Answer(409, {"reason": "Conflict", "message": message})) as script:
        found = delete_unscheduled(script.client(tmp_path), namespace="n", name="p", uid="uid-spark-1-exec-1")
    assert found == outcome


ZONE, RACK, HOST = (level.label for level in DEFAULT_LEVELS.ordered)
HERE: Location = ("a", "a-1", "node-1")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def placement(pin: Pin = Pin.ZONE, *, node: str | None = "node-1", location: Location = HERE) -> Placement:
    return Placement("analytics/spark-1-exec-1", "uid", node, location, pin)


def patch_of(raw: dict[str, Any], wanted: Placement, levels: Levels = DEFAULT_LEVELS) -> ReleasePatch:
    pod = held(raw)
    assert pod is not None
    return release_patch(pod, wanted, levels)


def released(raw: dict[str, Any], wanted: Placement, levels: Levels = DEFAULT_LEVELS) -> dict[str, Any]:
    """The pod after the patch, as the API server would apply it."""
    return dict(jsonpatch.apply_patch(copy.deepcopy(raw), patch_of(raw, wanted, levels).operations))


def node_affinity(raw: dict[str, Any]) -> dict[str, Any]:
    return dict(raw["spec"].get("affinity", {}).get("nodeAffinity", {}))


def terms(raw: dict[str, Any]) -> list[dict[str, Any]]:
    return list(node_affinity(raw)[REQUIRED]["nodeSelectorTerms"])


def a_gated_pod(*others: str, **changes: Any) -> dict[str, Any]:
    return executor(gates=[*({"name": name} for name in others), GATE], **changes)


def test_the_zone_is_required_and_nearer_levels_preferred() -> None:
    after = released(a_gated_pod(), placement())
    assert terms(after) == [{"matchExpressions": [expression(ZONE, "a")]}]
    assert node_affinity(after)[PREFERRED] == [
        {"weight": 50, "preference": {"matchExpressions": [expression(RACK, "a-1")]}},
        {"weight": 100, "preference": {"matchExpressions": [expression(HOST, "node-1")]}},
    ]


def test_a_placement_without_a_location_requires_nothing_whatever_its_pin() -> None:
    assert node_affinity(released(a_gated_pod(), placement(Pin.ZONE, node=None, location=()))) == {}


@pytest.mark.parametrize(
    ("pin", "keys", "preferred"),
    [
        (Pin.NONE, [], [ZONE, RACK, HOST]),
        (Pin.ZONE, [ZONE], [RACK, HOST]),
        (Pin.RACK, [ZONE, RACK], [HOST]),
        (Pin.NODE, [HOST], []),
    ],
)
def test_a_pin_is_required_down_to_its_level(pin: Pin, keys: list[str], preferred: list[str]) -> None:
    after = node_affinity(released(a_gated_pod(), placement(pin)))
    found = [
        e["key"] for term in after.get(REQUIRED, {}).get("nodeSelectorTerms", []) for e in term["matchExpressions"]
    ]
    assert found == keys
    assert [p["preference"]["matchExpressions"][0]["key"] for p in after.get(PREFERRED, [])] == preferred


def test_a_node_affinity_that_was_too_long_to_keep_is_left_as_it_is_and_the_pod_released_without_a_place() -> None:
    before = a_gated_pod(affinity={"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": "p" * 63}] * 500}})
    patch = patch_of(before, placement())
    after = released(before, placement())
    assert (patch.pin, patch.reason, patch.node_affinity) == (Pin.NONE, Reason.NOT_ADMITTED, None)
    assert after["spec"]["affinity"] == before["spec"]["affinity"]
    assert "schedulingGates" not in after["spec"] or not after["spec"]["schedulingGates"]


def test_a_level_that_the_node_lacks_is_left_out() -> None:
    after = released(a_gated_pod(), placement(Pin.RACK, location=("a", None, "node-1")))
    assert terms(after) == [{"matchExpressions": [expression(ZONE, "a")]}]


def test_a_node_without_a_host_label_is_pinned_by_its_name() -> None:
    after = released(a_gated_pod(), placement(Pin.NODE, location=("a", None, None)))
    assert terms(after) == [{"matchFields": [expression("metadata.name", "node-1")]}]


def test_a_policy_with_one_level_pins_nodes_only() -> None:
    hosts = Levels((Level(HOST, 1.0),))
    assert terms(released(a_gated_pod(), placement(Pin.NODE, location=("node-1",)), hosts)) == [
        {"matchExpressions": [expression(HOST, "node-1")]}
    ]
    assert patch_of(a_gated_pod(), placement(Pin.ZONE, location=("node-1",)), hosts).pin is Pin.NONE


def test_every_term_that_the_pod_has_is_tightened_and_none_is_added() -> None:
    ssd = {"matchExpressions": [expression("disk", "ssd")]}
    named = {"matchFields": [expression("metadata.name", "node-7")]}
    after = released(a_gated_pod(affinity=required(ssd, named)), placement())
    assert terms(after) == [
        {"matchExpressions": [expression("disk", "ssd"), expression(ZONE, "a")]},
        {"matchExpressions": [expression(ZONE, "a")], "matchFields": [expression("metadata.name", "node-7")]},
    ]


def test_other_affinity_and_preferences_stay() -> None:
    theirs = {"weight": 7, "preference": {"matchExpressions": [expression("disk", "ssd")]}}
    affinity = {"podAntiAffinity": {"x": 1}, "nodeAffinity": {PREFERRED: [theirs]}}
    after = released(a_gated_pod(affinity=affinity), placement())
    assert after["spec"]["affinity"]["podAntiAffinity"] == {"x": 1}
    assert node_affinity(after)[PREFERRED][0] == theirs


def test_only_our_gate_goes() -> None:
    after = released(executor(gates=[{"name": "first"}, GATE, {"name": "last"}]), placement())
    assert after["spec"]["schedulingGates"] == [{"name": "first"}, {"name": "last"}]


def test_an_empty_term_cannot_be_tightened_so_the_pod_goes_unpinned_with_the_reason() -> None:
    raw = a_gated_pod(affinity=required({"matchExpressions": [expression("disk", "ssd")]}, {}))
    patch = patch_of(raw, placement(Pin.NODE))
    assert (patch.pin, patch.reason) == (Pin.NONE, Reason.EMPTY_AFFINITY_TERM)
    after = released(raw, placement(Pin.NODE))
    assert terms(after) == terms(raw)
    assert len(node_affinity(after)[PREFERRED]) == 3


def test_without_a_node_the_pod_goes_as_it_is() -> None:
    after = released(a_gated_pod(), Placement("ns/p", "uid", None, (), Pin.NONE, Reason.NO_ROOM))
    assert "affinity" not in after["spec"]
    assert (
        patch_of(a_gated_pod(), Placement("ns/p", "uid", None, (), Pin.NONE, Reason.NO_ROOM)).reason is Reason.NO_ROOM
    )


def test_without_a_node_the_zone_is_required_if_it_is_pinned_to() -> None:
    patch = patch_of(a_gated_pod(), Placement("ns/p", "uid", None, ("a", "a-1", None), Pin.ZONE, Reason.GATE_TIMEOUT))
    assert patch.pin is Pin.ZONE
    after = released(a_gated_pod(), Placement("ns/p", "uid", None, ("a", "a-1", None), Pin.ZONE, Reason.GATE_TIMEOUT))
    assert terms(after) == [{"matchExpressions": [expression(ZONE, "a")]}]
    assert [(p["weight"], p["preference"]["matchExpressions"]) for p in node_affinity(after)[PREFERRED]] == [
        (50, [expression(RACK, "a-1")])
    ]


def test_without_a_node_none_is_required() -> None:
    assert patch_of(a_gated_pod(), Placement("ns/p", "uid", None, ("a", None, None), Pin.NODE)).pin is Pin.NONE


def test_without_a_node_what_is_known_of_the_location_is_preferred() -> None:
    after = released(a_gated_pod(), Placement("ns/p", "uid", None, ("a", "a-1", None), Pin.NONE, Reason.POOL_FULL))
    assert REQUIRED not in node_affinity(after)
    assert [(p["weight"], p["preference"]["matchExpressions"]) for p in node_affinity(after)[PREFERRED]] == [
        (25, [expression(ZONE, "a")]),
        (50, [expression(RACK, "a-1")]),
    ]


def test_the_patch_fails_on_another_version_of_the_pod() -> None:
    changed = a_gated_pod()
    changed["metadata"]["resourceVersion"] = "8"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(changed, patch_of(a_gated_pod(), placement()).operations)


NAMES = st.sampled_from([ZONE, RACK, "disk", "arch"])
EXPRESSIONS = st.builds(
    lambda key, values: expression(key, *values), NAMES, st.lists(st.sampled_from("abc"), min_size=1)
)
TERMS = st.fixed_dictionaries(
    {}, optional={"matchExpressions": st.lists(EXPRESSIONS), "matchFields": st.just([expression("metadata.name", "x")])}
)


@given(
    st.one_of(st.none(), st.lists(TERMS, min_size=1, max_size=4)),
    st.sampled_from(list(Pin)),
    st.tuples(*[st.one_of(st.none(), st.sampled_from("abc"))] * 3),
    st.sampled_from([(), ("other",)]),
)
def test_a_release_only_tightens(
    theirs: list[dict[str, Any]] | None, pin: Pin, location: Location, others: tuple[str, ...]
) -> None:
    raw = a_gated_pod(*others, **({} if theirs is None else {"affinity": required(*theirs)}))
    before = json.dumps(raw, sort_keys=True)
    after = released(raw, placement(pin, location=location))
    assert [gate["name"] for gate in after["spec"]["schedulingGates"]] == list(others)
    if theirs is not None:
        assert len(terms(after)) == len(theirs)
        for old, new in zip(theirs, terms(after), strict=True):
            for part in ("matchExpressions", "matchFields"):
                assert new.get(part, [])[: len(old.get(part, []))] == old.get(part, [])
            if not any(old.values()):
                assert not any(new.values())
    assert json.dumps(raw, sort_keys=True) == before
