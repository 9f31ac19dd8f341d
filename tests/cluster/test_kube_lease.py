"""Leader election on the real API server, in real time."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.kinds import LEASE
from ballast.kube.lease import ELECTION_LIMITS, Election, LeaseSettings
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import stays, wait_until

pytestmark = pytest.mark.cluster

LEASE_SECONDS = 2.0
SETTINGS = LeaseSettings(
    namespace="default",
    name="ballast-test",
    identity="one",
    duration_seconds=LEASE_SECONDS,
    renew_deadline_seconds=1.3,
    retry_seconds=0.3,
)


@pytest.fixture
def replicas(control_plane: Testbed) -> tuple[Election, Election]:
    def replica(identity: str) -> Election:
        client = Client(Connection.from_kubeconfig(control_plane.kubeconfig), ELECTION_LIMITS)
        settings = replace(SETTINGS, identity=identity)
        return Election(client, settings, clock=time.time, monotonic=time.monotonic)

    control_plane.kubectl("delete", "lease", SETTINGS.name, "--ignore-not-found")
    return replica("one"), replica("two")


def seconds_until_leading(replica: Election, other: Election, *, ticking: bool = False) -> float:
    """How long it takes until `replica` leads; never do both."""

    def leads() -> bool:
        assert not (replica.leading and other.leading)
        if replica.tick():
            return True
        if ticking:
            other.tick()
        return False

    started = time.monotonic()
    wait_until(
        leads, what="the other takes over", timeout_seconds=10 * LEASE_SECONDS, poll_seconds=SETTINGS.retry_seconds
    )
    return time.monotonic() - started


def test_one_of_two_leads(replicas: tuple[Election, Election]) -> None:
    one, two = replicas
    stays(
        lambda: (one.tick(), two.tick()) == (True, False),
        what="the first leads",
        seconds=8 * SETTINGS.retry_seconds,
        poll_seconds=SETTINGS.retry_seconds,
    )


def test_when_the_leader_falls_silent_it_stops_and_another_leads_within_two_lease_durations(
    replicas: tuple[Election, Election],
) -> None:
    one, two = replicas
    one.tick()
    two.tick()
    assert seconds_until_leading(two, one) < 2 * LEASE_SECONDS
    assert not one.leading
    assert not one.tick()


def test_a_clean_stop_hands_over_at_once(replicas: tuple[Election, Election]) -> None:
    one, two = replicas
    one.tick()
    two.tick()
    one.release()
    assert not one.leading
    assert two.tick()


def test_a_deleted_lease_is_made_again_by_whoever_is_first(
    replicas: tuple[Election, Election], control_plane: Testbed
) -> None:
    one, two = replicas
    one.tick()
    control_plane.kubectl("delete", "lease", SETTINGS.name)
    assert one.tick()
    assert not two.tick()
    lease = control_plane.api.get(LEASE.path(namespace="default", name=SETTINGS.name))
    assert lease["spec"]["holderIdentity"] == "one"
