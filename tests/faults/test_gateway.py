"""Between the operator and the API server stands a gateway that fails in every way that gateways do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.chart.installation import Installation
from tests.cluster.controller.pool import PATIENCE_SECONDS
from tests.faults.behind import Scene, behind_a_gateway
from tests.faults.gateway import Fault
from tests.faults.invariants import await_said
from tests.faults.play import Play
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

LASTS_SECONDS = 2.0


SOON = frozenset({Fault.DROPPED, Fault.ERROR})
"""What `make test` has of them; all others are in `make soak`."""
FAULTS = [
    pytest.param(fault, id=fault.name.lower(), marks=() if fault in SOON else pytest.mark.soak) for fault in Fault
]


@pytest.fixture(scope="module")
def scene(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with behind_a_gateway(installed, tmp_path_factory.mktemp("gateway"), "gateway") as found:
        yield found


@pytest.fixture
def play(scene: Scene) -> Iterator[Play]:
    with scene.stage.play() as found:
        yield found


def test_undisturbed_the_set_is_placed_and_the_executor_moves(scene: Scene, play: Play) -> None:
    """What every fault's end is compared with."""
    with scene.watched() as witness:
        play.begin()
        assert play.ends() == play.aim()
    assert len(witness.evicted()) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_everything_ends_as_undisturbed(scene: Scene, play: Play, fault: Fault) -> None:
    with scene.watched() as witness:
        hits = scene.gateway.hits
        with scene.gateway.failing(fault), witness.outage():
            play.begin()
            play.last(LASTS_SECONDS, until=lambda: scene.gateway.hits > hits)
        assert play.ends(outage_seconds=witness.outage_seconds) == play.aim()
    assert len(witness.evicted()) == 1, "one eviction for one move"


@pytest.mark.parametrize(
    ("field", "fault", "reason"),
    [
        pytest.param("down", True, "Unreachable", id="away"),
        pytest.param("ahead_seconds", 3600.0, "ClocksDisagree", id="clock-ahead", marks=pytest.mark.soak),
    ],
)
def test_a_prometheus_that_fails_is_said_in_a_condition_and_sets_are_placed(
    scene: Scene, play: Play, field: str, fault: float, reason: str
) -> None:
    mine, right = scene.stage.moving, getattr(scene.stage.metrics, field)
    with scene.watched() as witness:
        setattr(scene.stage.metrics, field, fault)
        try:
            await_said(mine, "MetricsAvailable", "False", reason)
            play.begin(moving=False)
            assert play.ends(moving=False) == play.aim(moving=False)
        finally:
            setattr(scene.stage.metrics, field, right)
        await_said(mine, "MetricsAvailable", "True", "Available")
        assert witness.evicted() == []


def test_an_api_server_that_refuses_writes_is_said_by_the_probe_the_log_and_a_metric(scene: Scene) -> None:
    """No status can be written meanwhile, so no condition says it."""
    operator = scene.operator
    with scene.gateway.failing(Fault.READ_ONLY):
        operator.await_unready("update leases: HTTP 500", seconds=PATIENCE_SECONDS)
        assert "election: update leases" in operator.log.read_text()
        assert not operator.leads()
        assert operator.metric('ballast_api_requests_total{code="500",resource="leases",verb="update"}')
    wait_until(operator.leads, what="it leads again", timeout_seconds=PATIENCE_SECONDS)
    operator.await_ready()


@pytest.mark.soak
def test_an_authority_that_is_rotated_is_trusted_at_once(scene: Scene, play: Play) -> None:
    with scene.watched():
        scene.gateway.rotate()
        play.begin()
        assert play.ends() == play.aim()
