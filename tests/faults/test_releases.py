"""Two releases of the chart in one cluster: one acts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from ballast.kube.kinds import GATE_SWITCH, Kind
from tests.cluster.chart.installation import CHART, RELEASE, Installation
from tests.cluster.controller.pool import Pool, pool, required_labels, zones
from tests.cluster.controller.process import Replica, replica, switch
from tests.faults.invariants import GATED_SECONDS, RECOVERY_SECONDS, watched
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

SECOND, THERE = "second-ballast", "second-system"
START_SECONDS = 60.0
DOOMED, DOOMED_THERE = "doomed-ballast", "doomed-system"
ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
POLICIES = ("validatingadmissionpolicies", "mutatingadmissionpolicies")
BINDINGS = ("validatingadmissionpolicybindings", "mutatingadmissionpolicybindings")
CLUSTER_WIDE = ",".join(("clusterroles", "clusterrolebindings", *POLICIES, *BINDINGS))
OWN = {"leases", "gateswitches", "gateswitches/status"}
"""What a release that stands aside writes."""


@contextmanager
def second_release(installed: Installation) -> Iterator[None]:
    plane, where = installed.testbed, f"--namespace={THERE}"
    plane.create_namespace(THERE)
    plane.helm("install", SECOND, str(CHART), where, "--skip-crds")
    try:
        yield
    finally:
        plane.helm("uninstall", SECOND, where, "--no-hooks", "--wait")
        installed.admin.delete(GATE_SWITCH, SECOND)


@contextmanager
def leading(plane: Testbed, name: str, folder: Path) -> Iterator[Replica]:
    """A replica, once it leads. A leader that an earlier test killed keeps the lease until it expires.

    Readiness does not show it: a standby is ready, too.
    """
    with replica(plane, name, folder) as found:
        wait_until(found.leads, what=f"{name} leads", timeout_seconds=START_SECONDS)
        yield found


def assert_placed(mine: Pool, *, first: int) -> None:
    """A set that is created now is gated, and released into one zone."""
    mine.await_gating()
    placed = mine.executors(2, first=first, application=f"spark-{first}", gates=())
    assert all(mine.gated(name) for name in placed)
    mine.await_released(placed, seconds=GATED_SECONDS)
    assert len({str(required_labels(mine.pod(name))) for name in placed}) == 1
    assert required_labels(mine.pod(placed[0]))


def gating(installed: Installation, name: str) -> tuple[bool, str]:
    found = installed.admin.read(GATE_SWITCH, name).body
    return found["spec"]["gating"], found["status"]["reason"]


def test_a_second_release_stands_aside_until_the_first_has_stopped(installed: Installation, tmp_path: Path) -> None:
    plane = installed.testbed
    with (
        pool(plane, "releases", zones()) as mine,
        watched(plane, mine.name),
        leading(plane, "first", tmp_path) as first,
        second_release(installed),
        replica(plane, "second", tmp_path, name=SECOND, namespace=THERE) as second,
    ):
        mine.policy()
        wait_until(lambda: switch(installed)["gating"], what="the first gates")
        second.await_unready(f"the Ballast release {RELEASE} acts in this cluster", seconds=RECOVERY_SECONDS)
        assert gating(installed, SECOND) == (False, "AnotherRelease")
        assert_placed(mine, first=1)
        written = {
            each.resource for each in plane.requests_of(THERE, SECOND) if each.verb not in ("get", "list", "watch")
        }
        assert written <= OWN
        assert first.stop() == 0
        wait_until(
            lambda: gating(installed, SECOND) == (True, "Leading"),
            what="the second gates",
            timeout_seconds=RECOVERY_SECONDS,
        )
        second.await_ready()
        assert_placed(mine, first=11)
        assert second.stop() == 0


@contextmanager
def doomed_release(installed: Installation) -> Iterator[None]:
    """A release that Helm can't uninstall: what it knows of it is in a namespace that goes."""
    plane = installed.testbed
    plane.create_namespace(DOOMED_THERE)
    plane.helm("install", DOOMED, str(CHART), f"--namespace={DOOMED_THERE}", "--skip-crds")
    try:
        yield
    finally:
        plane.kubectl("delete", CLUSTER_WIDE, f"--selector=app.kubernetes.io/instance={DOOMED}")
        plane.kubectl("delete", "namespace", DOOMED_THERE, "--ignore-not-found")
        installed.admin.delete(GATE_SWITCH, DOOMED)


def test_a_release_whose_namespace_is_deleted_leaves_nothing_gated(installed: Installation, tmp_path: Path) -> None:
    """Its account goes with the namespace, and the policy that gates executors stays."""
    plane = installed.testbed
    with (
        pool(plane, "doomed", zones()) as mine,
        doomed_release(installed),
        replica(plane, "doomed", tmp_path, name=DOOMED, namespace=DOOMED_THERE),
    ):
        mine.policy()
        mine.await_gating()
        created = mine.executors(2, gates=())
        plane.kubectl("delete", "namespace", DOOMED_THERE, "--wait=false")
        until = partial(wait_until, timeout_seconds=RECOVERY_SECONDS)
        until(lambda: gating(installed, DOOMED) == (False, "Uninstalled"), what="the switch is off")
        created += mine.executors(2, first=11, application="late", gates=())
        until(
            lambda: installed.admin.read(ACCOUNT, DOOMED, namespace=DOOMED_THERE).code == 404,
            what="its account is gone",
        )
        assert not any(map(mine.gated, [*created, *mine.executors(2, first=21, application="later", gates=())]))
