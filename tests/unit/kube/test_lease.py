from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.kube.document import micro_text
from ballast.kube.lease import (
    ELECTION_LIMITS,
    Election,
    LeaseSettings,
    ObservedLease,
    Step,
    decide,
    lease_is_stale,
    somebody_leads,
)
from tests.apiserver import Answer, ApiServer, Asked, Watch, scripted
from tests.unit.kube.builders import CREATED_AT

JSON = dict[str, Any]
SETTINGS = LeaseSettings.of_duration(6.0, namespace="ballast-system", name="ballast", identity="one")


def lease(holder: str, *, renewed: str = "t0", seconds: int = 6) -> JSON:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}}


@pytest.mark.parametrize(
    ("found", "silent_for", "step"),
    [
        pytest.param(None, 0, Step.CREATE, id="no lease"),
        pytest.param(lease("one"), 99, Step.RENEW, id="ours"),
        pytest.param(lease(""), 0, Step.TAKE, id="given up"),
        pytest.param(lease("two"), 5.9, Step.WAIT, id="another's, fresh"),
        pytest.param(lease("two"), 6.0, Step.TAKE, id="another's, silent for its duration"),
        pytest.param(lease("two", seconds=60), 30, Step.WAIT, id="another's own duration counts"),
        pytest.param(lease("two", seconds=1 << 30), 59, Step.WAIT, id="a duration of years"),
        pytest.param(lease("two", seconds=1 << 30), 60, Step.TAKE, id="a duration of years counts as the longest"),
    ],
)
def test_what_to_do_about_a_lease(found: JSON | None, silent_for: float, step: Step) -> None:
    seen = ObservedLease().after(found, 100.0)
    assert decide(found, seen, SETTINGS, 100.0 + silent_for) is step


def test_any_change_of_the_lease_is_a_sign_of_life() -> None:
    seen = ObservedLease().after(lease("two"), 100.0)
    assert seen.after(lease("two"), 103.0).at == 100.0
    assert seen.after(lease("two", renewed="t1"), 103.0).at == 103.0


class World:
    """Replicas and one API server."""

    def __init__(self, replicas: int = 2, *, uptime_seconds: float = 0.0) -> None:
        self.now = uptime_seconds
        self.server = ApiServer()
        self.away: set[int] = set()
        """Replicas that are cut off from the server."""
        self.on_its_way: Callable[[], None] = lambda: None
        """Called between the server's write for the first replica and its answer."""
        self.elections = [
            Election(
                self.server.client(limits=ELECTION_LIMITS, through=partial(self._through, i)),
                replace(SETTINGS, identity=f"replica-{i}"),
                clock=lambda: self.now,
                monotonic=lambda: self.now,
            )
            for i in range(replicas)
        ]

    def _through(self, replica: int, asked: Asked, ask: Callable[[], Answer | Watch]) -> Answer | Watch:
        if replica in self.away:
            return Answer(hang_up=True)
        answer = ask()
        if replica == 0 and asked.method != "GET" and isinstance(answer, Answer) and answer.status < 300:
            self.on_its_way()
        return answer

    @property
    def leaders(self) -> list[int]:
        return [i for i, election in enumerate(self.elections) if election.leading]

    @property
    def lease(self) -> JSON:
        return self.server.one("leases", "ballast", "ballast-system")

    def write(self, found: JSON) -> None:
        """As a user does."""
        self.server.put("leases", {"metadata": {"name": "ballast", "namespace": "ballast-system"}, **found})

    @property
    def looks(self) -> int:
        """How often the lease was read."""
        return len(self.server.asked) - len(self.server.writes)


def test_a_leader_that_cannot_reach_the_server_stops_before_another_may_start() -> None:
    world = World()
    one, two = world.elections
    one.tick()
    two.tick()
    world.away = {0}
    for second in range(1, 8):
        world.now = second
        one.tick()
        two.tick()
        assert world.leaders == ([0] if second < 4 else [] if second < 6 else [1])
    assert one.last_error is not None


def test_a_leader_that_is_silent_is_followed_within_two_lease_durations() -> None:
    world = World()
    world.elections[0].tick()
    while world.leaders != [1]:
        world.now += SETTINGS.retry_seconds
        world.elections[1].tick()
    assert world.now <= 2 * SETTINGS.duration_seconds


def test_a_lease_given_up_is_taken_at_the_next_look() -> None:
    world = World()
    one, two = world.elections
    one.tick()
    two.tick()
    one.release()
    two.tick()
    assert world.leaders == [1]


def test_the_lease_says_who_took_it_when_and_how_often_it_changed_hands() -> None:
    world = World(uptime_seconds=CREATED_AT)
    one, two = world.elections
    one.tick()
    one.release()
    for seconds in (1.0, 2.0):
        world.now = CREATED_AT + seconds
        two.tick()
    assert world.lease["spec"] == {
        "holderIdentity": "replica-1",
        "leaseDurationSeconds": 6,
        "acquireTime": micro_text(CREATED_AT + 1.0),
        "renewTime": micro_text(CREATED_AT + 2.0),
        "leaseTransitions": 1,
    }


def test_a_lease_that_a_user_has_given_the_highest_number_of_transitions_can_be_taken() -> None:
    world = World()
    world.write({"spec": {**lease("")["spec"], "leaseTransitions": (1 << 31) - 1}})
    world.elections[0].tick()
    assert world.leaders == [0]
    assert world.lease["spec"]["leaseTransitions"] == 0


def test_giving_up_what_one_does_not_hold_changes_nothing() -> None:
    world = World()
    world.elections[0].tick()
    world.elections[1].release()
    assert world.leaders == [0]


def test_a_leader_that_stops_leaves_a_lease_alone_that_another_has_taken() -> None:
    world = World(1)
    (one,) = world.elections
    one.tick()
    world.write(lease("another"))
    taken = world.lease
    one.release()
    assert world.lease == taken
    assert world.leaders == []


def test_a_leader_renews_its_lease_without_reading_it() -> None:
    world = World(1)
    (one,) = world.elections
    one.tick()
    for second in range(1, 20):
        world.now = second
        assert one.tick()
    assert (world.looks, len(world.server.changes)) == (1, 20)


@pytest.mark.parametrize("there", [True, False], ids=["written by hand", "deleted"])
def test_a_leader_whose_lease_is_not_as_it_was_looks_again(*, there: bool) -> None:
    world = World(1)
    (one,) = world.elections
    one.tick()
    if there:
        world.write(lease("another"))
    else:
        world.server.remove("leases", "ballast", "ballast-system")
    world.now = 1.0
    assert one.tick() is not there
    assert world.looks == 2


@given(st.sampled_from([0.0, 1e6]), st.lists(st.integers(1, 39), min_size=4, max_size=20))
def test_a_lease_that_is_renewed_in_time_is_never_taken(uptime_seconds: float, waits: list[int]) -> None:
    """However long the machine of the other replica has been up, and whenever that looks."""
    world = World(2, uptime_seconds=uptime_seconds)
    leader, standby = world.elections
    for tenths in waits:
        assert leader.tick()
        world.now += tenths / 10
        assert not standby.tick()


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("tick"), st.integers(0, 2)),
        st.tuples(st.just("cut"), st.integers(0, 2)),
        st.tuples(st.just("heal"), st.integers(0, 2)),
        st.tuples(st.just("release"), st.integers(0, 2)),
        st.tuples(st.just("wait"), st.integers(1, 40)),
    ),
    max_size=60,
)


@given(EVENTS)
def test_never_two_lead(events: list[tuple[str, int]]) -> None:
    world = World(3)
    for what, number in events:
        match what:
            case "tick":
                world.elections[number].tick()
            case "cut":
                world.away.add(number)
            case "heal":
                world.away.discard(number)
            case "release":
                world.elections[number].release()
            case "wait":
                world.now += number / 10
        assert len(world.leaders) <= 1


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_never_two_lead_however_late_the_answers_come(answers_after: list[int]) -> None:
    """The server renewed the lease when it got the request: by the time of its answer another may have taken it."""
    world, waits = World(), iter(answers_after)

    def pass_time(seconds: int) -> None:
        for _ in range(seconds):
            world.now += 1.0
            world.elections[1].tick()
            assert len(world.leaders) <= 1

    world.on_its_way = lambda: pass_time(next(waits, 0))
    for _ in answers_after:
        world.elections[0].tick()
        assert len(world.leaders) <= 1
        pass_time(1)


def written(**spec: Any) -> Answer:
    return Answer(body={"metadata": {"name": "ballast"}, "spec": spec})


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        (Answer(404, {"message": "not found"}), True),
        (written(holderIdentity="one", leaseDurationSeconds=6, renewTime="2026-11-21T10:00:00.000000Z"), False),
        (written(holderIdentity="one", leaseDurationSeconds=6, renewTime="2026-11-21T09:59:49.000000Z"), True),
        (written(holderIdentity="", leaseDurationSeconds=1, renewTime="2026-11-21T10:00:00.000000Z"), True),
        (written(holderIdentity="one", leaseDurationSeconds=6), True),
        (written(holderIdentity="one", leaseDurationSeconds=6, renewTime="0000-01-01T00:00:00.000000Z"), True),
        (written(holderIdentity="one", leaseDurationSeconds=6, renewTime="10000-01-01T22:59:59.000000Z"), True),
    ],
)
def test_a_lease_is_stale_when_nobody_renewed_it_in_time(tmp_path: Path, answer: Answer, *, stale: bool) -> None:
    with scripted(answer) as script:
        found = lease_is_stale(
            script.client(tmp_path), namespace="ballast-system", name="ballast", now=CREATED_AT, grace_seconds=4.0
        )
        assert found is stale


@pytest.mark.parametrize(
    ("name", "renewed", "leads"),
    [
        ("prod-ballast", "2026-11-21T10:00:00.000000Z", True),
        ("prod-ballast", "2026-11-21T09:59:00.000000Z", False),
        ("another-controller", "2026-11-21T10:00:00.000000Z", False),
    ],
)
def test_somebody_leads_who_holds_a_lease_with_the_operators_name_in_its_own(
    tmp_path: Path, name: str, renewed: str, *, leads: bool
) -> None:
    held = {"metadata": {"name": name}, **lease("one", renewed=renewed)}
    with scripted(Answer(body={"metadata": {}, "items": [held]})) as script:
        client = script.client(tmp_path)
        found = somebody_leads(
            client, namespace="ballast-system", name_part="ballast", now=CREATED_AT, grace_seconds=4.0
        )
        assert found is leads
        assert script.asked[0].path.startswith("/apis/coordination.k8s.io/v1/namespaces/ballast-system/leases?")
