"""The operator's process ends before or after each of its writes; started again, it comes to the same end.

Everything is real but the process: reconciles run in this one, and end at the n-th write of a placement, of a move, of
one that gains nothing, and of one that never begins. At the end of the module it is processes that are killed, two in a
run, at a sample of writes of the same plays.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ballast.kube import names
from ballast.kube.kinds import DISRUPTION_BUDGET, SPARK_TOPOLOGY
from ballast.kube.nodes import NodeFacts
from ballast.kube.pods import Pod
from tests.cluster.chart.installation import Installation
from tests.cluster.controller.hand import FakeFigures, Fate, When
from tests.cluster.controller.leaders import Kill, Leaders
from tests.cluster.controller.pool import ENFORCE, Pool, pool, zones
from tests.cluster.controller.scene import Scene
from tests.faults.invariants import watched
from tests.faults.metrics import Values, serving
from tests.testbed.nodes import ZONE_LABEL

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

JSON = dict[str, Any]
Told = Counter[tuple[str, str]]
Done = Callable[[Scene], bool]
Live = Callable[[Scene, Done], object]
"""The operator at work until a scene is done."""


@dataclass(frozen=True, slots=True)
class World:
    """What plays share."""

    installed: Installation
    mine: Pool
    values: Values
    """Of the Prometheus that policies name. Reconciles in this process have the scene's own metrics."""


Play = Callable[[World, str, Live], tuple[JSON, Told]]
"""The end state, and of what there were Events."""

GATED = {**ENFORCE, "gateTimeout": "10s"}
"""Longer than a leader's lease, so that the next one places what waits."""
TWO_OF_THREE = {**GATED, "maxExecutorsPerNodePercent": 67}
"""At most two of three executors on one node."""


@pytest.fixture(scope="module")
def world(installed: Installation) -> Iterator[World]:
    with pool(installed.testbed, "crashes", zones()) as mine, serving() as values:
        yield World(installed, mine, values)


def placing(world: World, name: str, live: Live) -> tuple[JSON, Told]:
    """A set of three is placed."""
    scene = Scene(world.installed, world.mine, name, executors=3)
    world.mine.topology(name, {"name": "ingest", "executors": 3})
    world.mine.policy(name, placement=TWO_OF_THREE)
    return _ended(scene, live, _placed)


def _ended(scene: Scene, live: Live, done: Done) -> tuple[JSON, Told]:
    """Let the operator run, and again if it was killed. All runs together may do no more than one."""
    with watched(scene.installed.testbed, scene.mine.name, most_under_way=1):
        live(scene, done)
    found = scene.picture(), scene.told()
    scene.clear()
    return found


def _placed(scene: Scene) -> bool:
    """All executors run, and the topology says so."""
    condition = scene.mine.condition(SPARK_TOPOLOGY, "Placed", scene.name) or {}
    running = [pod for pod in scene.driver.pods() if pod["status"].get("phase") == "Running"]
    return len(running) == scene.executors and condition.get("status") == "True"


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


def moving(world: World, name: str, live: Live) -> tuple[JSON, Told]:
    """The executor on a noisy node is moved to a quiet one."""
    return _leveled(world, name, live, FakeFigures(_noise(world.mine)))


def moving_in_vain(world: World, name: str, live: Live) -> tuple[JSON, Told]:
    """The node was not hot because of the executor: nothing is gained."""
    return _leveled(world, name, live, InVain(_noise(world.mine)))


def blocked(world: World, name: str, live: Live) -> tuple[JSON, Told]:
    """A disruption budget never lets the executor leave."""
    none = {"maxUnavailable": 0, "selector": {"matchLabels": {names.SPARK_APPLICATION: name}}}
    world.mine.apply(DISRUPTION_BUDGET, name, none)
    try:
        return _leveled(world, name, live, FakeFigures(_noise(world.mine)))
    finally:
        world.mine.delete(DISRUPTION_BUDGET, name)


class InVain(FakeFigures):
    def _ratio(self, node: NodeFacts, busy: list[Pod]) -> float:
        return self.noise.get(node.name, 0.0)


def _noise(mine: Pool) -> dict[str, float]:
    return {mine.node("a1"): 0.7, mine.node("a2"): 0.3, mine.node("b2"): 0.3}


def _leveled(world: World, name: str, live: Live, figures: FakeFigures) -> tuple[JSON, Told]:
    scene = Scene(world.installed, world.mine, name, executors=2, metrics=figures)
    world.mine.topology(name, {"name": "ingest", "workload": "Streaming", "executors": 2})
    metrics = world.values.spec()
    anywhere = {**GATED, "maxExecutorsPerNodePercent": 100}
    world.mine.policy(name, placement=anywhere, interval="1s", metrics=metrics, moves=MOVES, shedding=SHEDDING)
    for node in ("b1", "a1"):
        scene.driver.start(gates=(), nodeName=world.mine.node(node))
    scene.driver.await_running()
    scene.driver.grow_old()
    return _ended(scene, live, _moved)


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
def test_it_ends_alike_wherever_the_process_ends(world: World, play: Play, assert_done: Callable[[JSON], None]) -> None:
    """Events of what the process did last may be lost with it; none is of anything else, or posted twice."""
    undisturbed, label = Fate(), play.__name__.replace("_", "-")
    expected, told = play(world, f"{label}-0", _in_this_process(undisturbed))
    assert_done(expected)
    assert len(undisturbed.writes) > 8, undisturbed.writes
    for at, when in _ends(undisturbed):
        fate = Fate(at, when)
        found, told_now = play(world, f"{label}-{at}-{when.value}", _in_this_process(fate))
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


def _in_this_process(fate: Fate) -> Live:
    return lambda scene, done: scene.live(fate, done)


RELEASE = r"PATCH \S+/pods/[^/ ]+ "
PROPOSAL = r"POST \S+/executormoves "
EVICTION = r"POST \S+/eviction "
VERDICT = r'PATCH \S+/executormoves/\S+/status .*"(Succeeded|Failed)"'
REPORT = r"PATCH \S+/sparktopologies/\S+/status "
Kills = tuple[Kill, Kill]


@pytest.mark.parametrize(
    ("play", "assert_done", "pairs"),
    [
        (
            placing,
            assert_placed,
            {
                (Kill(When.AFTER, RELEASE), Kill(When.BEFORE, REPORT)): (),
                (Kill(When.BEFORE, RELEASE), Kill(When.AFTER, RELEASE, 3)): (),
            },
        ),
        (
            moving,
            assert_moved,
            {
                (Kill(When.AFTER, PROPOSAL), Kill(When.BEFORE, EVICTION)): (
                    "AwaitingReplacement",
                    "Measuring",
                    "Helped",
                ),
                (Kill(When.AFTER, EVICTION), Kill(When.AFTER, RELEASE)): ("Measuring", "Helped"),
            },
        ),
        (
            moving_in_vain,
            assert_in_vain,
            {
                (Kill(When.BEFORE, EVICTION), Kill(When.BEFORE, VERDICT)): ("DidNotHelp",),
                (Kill(When.AFTER, RELEASE), Kill(When.AFTER, VERDICT)): (),
            },
        ),
    ],
    ids=["placing", "moving", "moving_in_vain"],
)
def test_it_ends_alike_when_two_leaders_are_killed_one_after_the_other(
    world: World,
    tmp_path: Path,
    play: Play,
    assert_done: Callable[[JSON], None],
    pairs: Mapping[Kills, Collection[str]],
) -> None:
    """Real processes, by SIGKILL: each leaves its lease behind, and the next one must wait until it is over.

    By each pair of kills: the reasons of the Events that the last leader posts, which none of them can lose.
    """
    label = f"killed-{play.__name__.replace('_', '-')}"
    expected, told = play(world, f"{label}-0", _in_this_process(Fate()))
    assert_done(expected)
    for number, (kills, sure) in enumerate(pairs.items(), 1):
        leaders = Leaders(kills, world.values, tmp_path, frozenset(sure))
        found, told_now = play(world, f"{label}-{number}", leaders.live)
        assert found == expected, kills
        assert told_now <= told, kills
