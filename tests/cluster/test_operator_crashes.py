"""The operator's process ends before or after each of its writes; started again, it comes to the same end.

Everything is real but the process: reconciles run in this one, and end at the n-th write of a placement, of a move, of
one that gains nothing, and of one that never begins. At the end of the module it is processes that are killed, two in a
run, at a sample of writes.
"""

from __future__ import annotations

import itertools
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ballast.kube import names
from ballast.kube.kinds import DISRUPTION_BUDGET, SPARK_TOPOLOGY
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from tests.cluster.chart.installation import Installation
from tests.cluster.controller import killed
from tests.cluster.controller.hand import FakeFigures, Fate, When
from tests.cluster.controller.pool import ENFORCE, Pool, pool, zones
from tests.cluster.controller.process import replica
from tests.cluster.controller.scene import Scene
from tests.faults.invariants import watched
from tests.testbed.nodes import ZONE_LABEL
from tests.testbed.waiting import wait_until

pytestmark = pytest.mark.cluster

PATIENCE_SECONDS = 60.0
"""For processes that start, and a lease that has to end first, on a machine with much to do."""
LEASE_SECONDS = 3
"""For processes that are killed: the next one waits for so long."""
JSON = dict[str, Any]
Told = Counter[tuple[str, str]]
Play = Callable[[Installation, Pool, str, Fate], tuple[JSON, Told]]
"""The end state, and of what there were Events."""


TWO_OF_THREE = {**ENFORCE, "maxExecutorsPerNodePercent": 67}
"""At most two of three executors on one node."""


@pytest.fixture(scope="module")
def mine(installed: Installation) -> Iterator[Pool]:
    with pool(installed.testbed, "crashes", zones()) as found:
        yield found


def placing(installed: Installation, mine: Pool, name: str, fate: Fate) -> tuple[JSON, Told]:
    """A set of three is placed."""
    scene = Scene(installed, mine, name, executors=3)
    mine.topology(name, {"name": "ingest", "executors": 3})
    mine.policy(name, placement=TWO_OF_THREE)
    for _ in range(3):
        scene.driver.start()
    _live(scene, fate, _all_run)
    found = scene.picture(), scene.told()
    scene.clear()
    return found


def _live(scene: Scene, fate: Fate, done: Callable[[Scene], bool]) -> None:
    """Run the operator, and again if it was killed. Both runs together may do no more than one."""
    with watched(scene.installed.testbed, scene.mine.name, most_under_way=1):
        scene.live(fate, done)


def _all_run(scene: Scene) -> bool:
    return all(pod["status"].get("phase") == "Running" for pod in scene.driver.pods())


def assert_placed(found: JSON) -> None:
    assert len(found["required"]) == 3
    assert all(ZONE_LABEL in place for place in found["required"]), found["required"]


MOVES = {
    "mode": "Enforce",
    "minExecutorAge": "0s",
    "allowUnknownState": True,
    "cooldown": "0s",
    "settle": "6s",
    "leaveTimeout": "5m",
    "budgets": [{"moves": 1, "per": "1h", "scope": "Topology"}],
}
LEAVE_SECONDS = 300.0
SHEDDING = {"strategy": "AvgShedder", "avgShedder": {"lowHits": 1, "highHits": 1}}


def moving(installed: Installation, mine: Pool, name: str, fate: Fate) -> tuple[JSON, Told]:
    """The executor on a noisy node is moved to a quiet one."""
    return _leveled(installed, mine, name, fate, FakeFigures(_noise(mine)))


def moving_in_vain(installed: Installation, mine: Pool, name: str, fate: Fate) -> tuple[JSON, Told]:
    """The node was not hot because of the executor: nothing is gained."""
    return _leveled(installed, mine, name, fate, InVain(_noise(mine)))


def blocked(installed: Installation, mine: Pool, name: str, fate: Fate) -> tuple[JSON, Told]:
    """A disruption budget never lets the executor leave."""
    none = {"maxUnavailable": 0, "selector": {"matchLabels": {names.SPARK_APPLICATION: name}}}
    mine.apply(DISRUPTION_BUDGET, name, none)
    try:
        return _leveled(installed, mine, name, fate, FakeFigures(_noise(mine)))
    finally:
        mine.delete(DISRUPTION_BUDGET, name)


class InVain(FakeFigures):
    def _ratio(self, node: NodeFacts, busy: list[Pod]) -> float:
        return self.noise.get(node.name, 0.0)


def _noise(mine: Pool) -> dict[str, float]:
    return {mine.node("a1"): 0.7, mine.node("a2"): 0.3, mine.node("b2"): 0.3}


def _leveled(installed: Installation, mine: Pool, name: str, fate: Fate, figures: FakeFigures) -> tuple[JSON, Told]:
    scene = Scene(installed, mine, name, executors=2, metrics=figures)
    mine.topology(name, {"name": "ingest", "workload": "Streaming", "executors": 2})
    metrics = {"window": "5s"}
    anywhere = {**ENFORCE, "maxExecutorsPerNodePercent": 100}
    mine.policy(name, placement=anywhere, interval="1s", metrics=metrics, moves=MOVES, shedding=SHEDDING)
    for node in ("b1", "a1"):
        scene.driver.start(gates=(), nodeName=mine.node(node))
    scene.driver.await_running()
    scene.driver.grow_old()
    _live(scene, fate, _moved)
    found = scene.picture(), scene.told()
    scene.clear()
    return found


def _moved(scene: Scene) -> bool:
    """Time passes only while something waits for it."""
    states = [move.get("status") or {} for move in scene.moves()]
    phases = [state.get("phase") for state in states]
    if "Settling" in phases:
        scene.clock.ahead_seconds += 7.0
    if any(state.get("reason") == "DisruptionBudget" and state["phase"] == "Leaving" for state in states):
        scene.clock.ahead_seconds += LEAVE_SECONDS
    return bool(phases) and all(phase in ("Succeeded", "Failed", "Refused", "Expired") for phase in phases)


def assert_moved(found: JSON) -> None:
    (move,) = found["moves"]
    assert (move["phase"], move["node"], move["pinned"]) == ("Succeeded", move["to"], True), move


def assert_in_vain(found: JSON) -> None:
    (move,) = found["moves"]
    assert (move["phase"], move["reason"], move["node"]) == ("Failed", "DidNotHelp", move["to"]), move


def assert_stayed(found: JSON) -> None:
    (move,) = found["moves"]
    assert (move["phase"], move["reason"], found["created"]) == ("Refused", "DisruptionBudget", 2), move


@pytest.mark.parametrize(
    ("play", "assert_done"),
    [(placing, assert_placed), (moving, assert_moved), (moving_in_vain, assert_in_vain), (blocked, assert_stayed)],
)
def test_it_ends_alike_wherever_the_process_ends(
    installed: Installation, mine: Pool, play: Play, assert_done: Callable[[JSON], None]
) -> None:
    """Events of what the process did last may be lost with it; none is of anything else, or posted twice."""
    undisturbed, label = Fate(), play.__name__.replace("_", "-")
    expected, told = play(installed, mine, f"{label}-0", undisturbed)
    assert_done(expected)
    assert len(undisturbed.writes) > 8, undisturbed.writes
    for at, when in _ends(undisturbed):
        fate = Fate(at, when)
        found, told_now = play(installed, mine, f"{label}-{at}-{when.value}", fate)
        words = f"{when.value} write {at}: {fate.writes[-1]}"
        assert found == expected, words
        assert told_now <= told, words


def _ends(undisturbed: Fate) -> list[tuple[int, When]]:
    """After each write, and before the first one of each reconcile.

    Within a reconcile the world does nothing else, so before a write is after the one before it.
    """
    first = {count + 1 for count in undisturbed.reconciles}
    every = itertools.product(range(1, len(undisturbed.writes) + 1), When)
    return [(at, when) for at, when in every if when is When.AFTER or at in first]


@pytest.mark.parametrize(
    ("first_at", "second_at"),
    [
        (("1", "before"), ("1", "after")),
        (("3", "after"), ("2", "before")),
        (("4", "before"), ("2", "after")),
        (("5", "after"), ("1", "before")),
    ],
)
def test_it_ends_alike_when_two_leaders_are_killed_one_after_the_other(
    installed: Installation, mine: Pool, tmp_path: Path, first_at: tuple[str, str], second_at: tuple[str, str]
) -> None:
    """Real processes, by SIGKILL: each leaves its lease behind, and the next one must wait until it is over.

    Whether a pass places the executors or the gate timeout does depends on how fast processes start, and what was
    to be told by Events is lost with a process; so neither is asked for.
    """
    scene = Scene(installed, mine, "killed", executors=3)
    mine.topology("killed", {"name": "ingest", "executors": 3})
    mine.policy("killed", placement=TWO_OF_THREE)
    for _ in range(3):
        scene.driver.start()
    with watched(installed.testbed, mine.name) as witness:
        with witness.outage():
            for number, (at, when) in enumerate((first_at, second_at)):
                program = [sys.executable, str(killed.__file__), at, when]
                with replica(
                    installed.testbed, f"killed-{number}", tmp_path, lease_seconds=LEASE_SECONDS, program=program
                ) as one:
                    assert one.process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL, one.log.read_text()[-4000:]
        with replica(installed.testbed, "last", tmp_path) as last:
            last.await_ready()
            wait_until(lambda: _all_run(scene), what="everybody runs", timeout_seconds=PATIENCE_SECONDS)
            wait_until(lambda: _told(mine), what="the topology says so", timeout_seconds=PATIENCE_SECONDS)
            last.stop()
    found = scene.picture()
    assert_placed(found)
    assert scene.driver.created == 3, "executors were deleted on the way"
    assert len({str(place) for place in found["required"]}) == 1, "not one zone"
    assert found["gates"] == [[], [], []]
    scene.clear()


def _told(mine: Pool) -> bool:
    placed = mine.condition(SPARK_TOPOLOGY, "Placed", "killed") or {}
    return placed.get("status") == "True"
