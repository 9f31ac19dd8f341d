"""The operator's own machine is at fault."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.cluster.chart.installation import Installation
from tests.cluster.controller.process import Replica, replica
from tests.faults import growing, older_version, shifted_clock
from tests.faults.behind import Scene, behind_a_gateway
from tests.faults.invariants import watched
from tests.faults.metrics import serving
from tests.faults.play import MOST_UNDER_WAY, stage
from tests.testbed.kubelet import cgroups
from tests.testbed.kubelet.cgroups import Cgroups
from tests.testbed.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

HOUR_SECONDS = 3600
PAUSE_SECONDS = 60.0
MEMORY_BYTES = 512 << 20
OLDER = (sys.executable, older_version.__file__)


@contextmanager
def wrong_clock(installed: Installation, folder: Path, name: str, *, seconds: int) -> Iterator[Scene]:
    program = [sys.executable, str(shifted_clock.__file__), str(seconds)]
    with behind_a_gateway(installed, folder, name, program=program) as scene:
        yield scene


@pytest.mark.parametrize(
    ("name", "seconds"), [("behind", -HOUR_SECONDS), ("ahead", HOUR_SECONDS)], ids=["behind", "ahead"]
)
def test_with_a_clock_that_is_wrong_by_an_hour_sets_are_placed_and_executors_move(
    installed: Installation, tmp_path: Path, name: str, seconds: int
) -> None:
    with wrong_clock(installed, tmp_path, name, seconds=seconds) as scene:
        with scene.watched() as witness, scene.stage.play() as play:
            play.begin()
            assert play.ends() == play.aim()
        assert len(witness.evicted()) == 1
        behind_seconds = scene.operator.metric("ballast_clock_behind_seconds")
        assert behind_seconds == pytest.approx(-seconds, abs=3.0)


@contextmanager
def limited(installed: Installation, name: str) -> Iterator[tuple[Cgroups, str]]:
    """A cgroup with as much memory as the chart gives a container of the operator."""
    groups = cgroups.detect(Path("/proc/self/mounts").read_text())
    group = f"{installed.testbed.instance.cgroup_prefix}/{name}"
    groups.create(group)
    try:
        groups.set_memory_limit(group, MEMORY_BYTES)
        yield groups, group
    finally:
        groups.remove(group)


def test_killed_at_its_limit_of_memory_it_goes_on_when_it_is_started_again(
    installed: Installation, tmp_path: Path
) -> None:
    program = [sys.executable, growing.__file__]
    plane = installed.testbed
    with ExitStack() as stack:
        groups, group = stack.enter_context(limited(installed, "memory"))
        on = stack.enter_context(stage(plane, "memory", stack.enter_context(serving())))
        first = stack.enter_context(replica(plane, "limited", tmp_path, program=program))
        for entry in groups.entry_files(group):
            Path(entry).write_text(str(first.process.pid))
        first.await_ready()
        witness = stack.enter_context(watched(plane, on.moving.name, on.placing.name, most_under_way=MOST_UNDER_WAY))
        with on.play() as play:
            play.begin()
            with witness.outage():
                first.process.send_signal(signal.SIGUSR1)
                assert first.process.wait(timeout=60) == -signal.SIGKILL
                assert groups.oom_kills(group) == 1
                again = stack.enter_context(replica(plane, "limited", tmp_path))
                again.await_ready()
            assert play.ends() == play.aim()
            assert len(witness.evicted()) == 1
        assert again.stop() == 0


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [("upgrade", OLDER, ()), ("rollback", (), OLDER)],
    ids=["upgrade", "rollback"],
)
def test_of_two_versions_one_acts_and_the_other_carries_on_what_it_began(
    installed: Installation, tmp_path: Path, name: str, before: Sequence[str], after: Sequence[str]
) -> None:
    plane = installed.testbed
    with ExitStack() as stack:
        on = stack.enter_context(stage(plane, name, stack.enter_context(serving())))
        first = stack.enter_context(replica(plane, "first", tmp_path, program=before))
        first.await_ready()
        witness = stack.enter_context(watched(plane, on.moving.name, on.placing.name, most_under_way=MOST_UNDER_WAY))
        with on.play() as play:
            second = stack.enter_context(replica(plane, "second", tmp_path, program=after))
            second.await_ready()
            assert (first.leads(), second.leads()) == (True, False)
            play.begin()
            play.last(0.0, until=lambda: play.picture()["phase"] in ("Leaving", "Arriving"))
            assert first.stop() == 0
            assert play.ends() == play.aim()
            assert second.leads()
            assert len(witness.evicted()) == 1
        assert second.stop() == 0


@contextmanager
def paused(one: Replica) -> Iterator[None]:
    """For a minute at least, as a machine that is suspended, or one that has no CPU left for it."""
    began = time.monotonic()
    one.process.send_signal(signal.SIGSTOP)
    try:
        yield
        time.sleep(max(0.0, began + PAUSE_SECONDS - time.monotonic()))
    finally:
        one.process.send_signal(signal.SIGCONT)


def test_a_leader_that_is_paused_for_a_minute_is_followed_and_does_nothing_when_it_goes_on(
    installed: Installation, tmp_path: Path
) -> None:
    """Its lease has ended, and all that it knows is of a minute ago: it was about to carry the same move on."""
    plane = installed.testbed
    with ExitStack() as stack:
        on = stack.enter_context(stage(plane, "paused", stack.enter_context(serving())))
        first, second = (stack.enter_context(replica(plane, name, tmp_path)) for name in ("first", "second"))
        wait_until(lambda: first.leads() or second.leads(), what="one leads")
        sleeper, standby = (first, second) if first.leads() else (second, first)
        standby.await_ready()
        witness = stack.enter_context(watched(plane, on.moving.name, on.placing.name, most_under_way=MOST_UNDER_WAY))
        with on.play() as play:
            play.begin()
            play.last(0.0, until=lambda: play.picture()["phase"] in ("Leaving", "Arriving"))
            with paused(sleeper):
                wait_until(standby.leads, what="the standby takes over", timeout_seconds=PAUSE_SECONDS)
                assert play.ends() == play.aim()
            wait_until(lambda: not sleeper.leads(), what="the sleeper knows that it leads no more")
            with on.play() as again:
                again.begin()
                assert again.ends() == again.aim()
        assert standby.leads()
        assert len(witness.evicted()) == 2
        for one in (sleeper, standby):
            assert one.stop() == 0


def test_alone_and_paused_for_a_minute_it_carries_on_what_it_began(installed: Installation, tmp_path: Path) -> None:
    plane = installed.testbed
    with ExitStack() as stack:
        on = stack.enter_context(stage(plane, "suspended", stack.enter_context(serving())))
        only = stack.enter_context(replica(plane, "only", tmp_path))
        only.await_ready()
        witness = stack.enter_context(watched(plane, on.moving.name, on.placing.name, most_under_way=MOST_UNDER_WAY))
        with on.play() as play:
            play.begin()
            play.last(0.0, until=lambda: play.picture()["phase"] in ("Leaving", "Arriving"))
            with witness.outage(), paused(only):
                pass
            assert play.ends(anywhere=True) == play.aim()
        assert len(witness.evicted()) == 1
        assert only.stop() == 0
