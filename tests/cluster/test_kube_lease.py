"""Leader election on the real API server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import pytest

from ballast.kube.client import Client
from ballast.kube.connection import Connection
from ballast.kube.kinds import LEASE
from ballast.kube.lease import ELECTION_LIMITS, Election, LeaseSettings
from tests.testbed.testbed import Testbed

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


@dataclass(slots=True)
class Clock:
    """Of both replicas: it goes on when they would wait."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now

    def wait(self) -> None:
        self.now += SETTINGS.retry_seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def replicas(control_plane: Testbed, clock: Clock) -> Iterator[tuple[Election, Election]]:
    control_plane.kubectl("delete", "lease", SETTINGS.name, "--ignore-not-found")
    with ExitStack() as stack:

        def replica(identity: str) -> Election:
            client = Client(Connection.from_kubeconfig(control_plane.kubeconfig), ELECTION_LIMITS)
            stack.callback(client.close)
            return Election(client, replace(SETTINGS, identity=identity), clock=clock, monotonic=clock)

        yield replica("one"), replica("two")


def test_one_of_two_leads(replicas: tuple[Election, Election], clock: Clock) -> None:
    one, two = replicas
    for _ in range(8):
        assert (one.tick(), two.tick()) == (True, False)
        clock.wait()


def test_when_the_leader_falls_silent_it_stops_and_another_leads_within_two_lease_durations(
    replicas: tuple[Election, Election], clock: Clock
) -> None:
    one, two = replicas
    assert one.tick()
    silent_since = clock()
    while not two.tick():
        clock.wait()
        assert clock() < silent_since + 2 * LEASE_SECONDS
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
