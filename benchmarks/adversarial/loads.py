"""Scenarios drawn at random: does the default policy lose to doing nothing, move to and fro, or never come to rest?"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Any

import yaml

from ballast.errors import BallastError
from ballast.runtime import planning_runtime
from ballast.simulation.engine import simulate
from ballast.simulation.policies import from_name
from ballast.simulation.run_metrics import run_metrics
from ballast.simulation.scenario import Scenario
from ballast.simulation.trace import Trace

Spec = dict[str, Any]
"""A scenario's spec as YAML has it."""

_DEFAULT, _NOTHING = "AvgShedder", "None"
_SEEDS = (1, 2, 3)
_OTHER_SEEDS = (101, 102, 103, 104, 105)
"""Of chances that no search has chosen: a climb ends at loads that are bad by luck, too."""
_LEAST_POINTS = 2.0
"""A pool that strays from its mean by less, in the mean over time, counts as one that strays by so much."""
_REST_SHARE = 0.5
"""Of a run: what is moved after it, though the load is constant, does not come to rest."""
_HOURS = (1, 2, 4)
_KINDS: tuple[Callable[[Random], Spec], ...] = (
    lambda r: {"kind": "Noise", "deviation": r.choice((0.2, 0.4, 0.8)), "memory": r.choice(("1m", "5m", "30m"))},
    lambda r: {"kind": "Bursts", "perHour": r.choice((1, 3)), "factor": r.choice((2, 4)), "lasts": _minutes(r)},
    lambda r: {"kind": "HeavyTail", "alpha": r.choice((1.5, 2.5)), "renewed": _minutes(r), "most": 5},
    lambda r: {"kind": "HeavyTail", "alpha": r.choice((1.5, 2.5)), "most": 5},
    lambda r: {"kind": "RandomWalk", "step": r.choice((0.02, 0.1))},
    lambda r: {"kind": "Diurnal", "amplitude": r.choice((0.3, 0.8)), "period": r.choice(("1h", "4h")), "peak": "0s"},
    lambda r: {"kind": "Surge", "at": r.choice(("20m", "60m")), "factor": 3, "lasts": _minutes(r)},
)


def _minutes(random: Random) -> str:
    return random.choice(("5m", "10m", "15m", "30m", "1h"))


def drawn(random: Random) -> Spec:
    """Up to twelve nodes and some applications, whose load and whose neighbors' varies."""
    return {
        "duration": f"{random.choice(_HOURS)}h",
        "nodes": [_machines(index, random) for index in range(random.randint(1, 3))],
        "applications": [_application(index, random) for index in range(random.randint(1, 3))],
        "metrics": {"scrapeInterval": "30s", "pressure": random.random() < 0.5},
    }


def drawn_constant(random: Random) -> Spec:
    return constant(drawn(random))


def changed(spec: Spec, random: Random) -> Spec:
    """One group of nodes or one application is drawn again, comes or goes; or a part of one changes."""
    found = copy.deepcopy(spec)
    kind, draw = random.choice((("nodes", _machines), ("applications", _application)))
    listed, chance = found[kind], random.random()
    index = random.randrange(len(listed))
    if chance < 0.15 and len(listed) < 4:
        listed.append(draw(len(listed), random))
    elif chance < 0.3 and len(listed) > 1:
        listed.pop()
    else:
        other = draw(index, random)
        keys = sorted({*other, *listed[index]} - {"name"})
        for key in keys if chance < 0.4 else [random.choice(keys)]:
            listed[index].pop(key, None)
            listed[index].update({key: other[key]} if key in other else {})
    if random.random() < 0.1:
        found["duration"] = f"{random.choice(_HOURS)}h"
    return found


def changed_constant(spec: Spec, random: Random) -> Spec:
    return constant(changed(spec, random))


def constant(spec: Spec) -> Spec:
    """The same without anything that varies."""
    found = copy.deepcopy(spec)
    for machines in found["nodes"]:
        machines.get("neighbor", {}).pop("vary", None)
    for application in found["applications"]:
        application["load"].pop("vary", None)
    return found


def _machines(index: int, random: Random) -> Spec:
    cores = random.choice((8, 16, 32, 64))
    found: Spec = {
        "name": f"kind{index}",
        "count": random.randint(1, 4),
        "cores": cores,
        "zones": ["a", "b", "c"][: random.randint(1, 3)],
    }
    if random.random() < 0.3:
        found["speed"] = random.choice((0.5, 1.5, 2.0))
    if random.random() < 0.6:
        found["neighbor"] = {"cores": round(cores * random.choice((0.1, 0.3, 0.5)), 1), "vary": _vary(random)}
    return found


def _application(index: int, random: Random) -> Spec:
    cores = [round(random.uniform(0.3, 4.0), 1) for _ in range(random.choice((1, 1, 3)))]
    found: Spec = {
        "name": f"job{index}",
        "copies": random.choice((1, 1, 2)),
        "executors": random.choice((1, 2, 4, 8)),
        "cores": 4,
        "load": {"cores": cores, "vary": _vary(random)},
        "requests": {"cpu": random.choice(("500m", 1, 2))},
    }
    if random.random() < 0.7:
        found["taskSeconds"] = 0.5
    if random.random() < 0.4:
        found["runsOn"] = ["kind0"]
    return found


def _vary(random: Random) -> list[Spec]:
    return [random.choice(_KINDS)(random) for _ in range(random.choice((0, 1, 1, 2)))]


# How bad a scenario is.


def loss(spec: Spec) -> float:
    """Imbalance under the default policy by that without moves, over seeds; 0 for a scenario that is not valid."""
    return _loss(text(spec), _SEEDS)


def loss_by_other_chances(spec: Spec) -> float:
    """The same over other seeds than those that the search goes by."""
    return _loss(text(spec), _OTHER_SEEDS)


def unrest(spec: Spec) -> float:
    """Moves back to where an executor came from within an hour, by run."""
    return _unrest(text(spec))


def restlessness(spec: Spec) -> float:
    """Moves in the second half of a run whose load is constant."""
    return _restlessness(text(spec))


@lru_cache(maxsize=4096)
def _loss(document: str, seeds: tuple[int, ...]) -> float:
    world = _world(document)
    if world is None:
        return 0.0
    ours = theirs = 0.0
    for seed in seeds:
        trace = _run(world, _DEFAULT, seed)
        # Where nothing was moved in the first run there is little to lose.
        if seeds is _SEEDS and seed == seeds[0] and not trace.moves:
            return 1.0
        floor = _LEAST_POINTS * world.spec.duration.seconds / 3600.0
        ours += max(floor, run_metrics(trace).imbalance_point_hours)
        theirs += max(floor, run_metrics(_run(world, _NOTHING, seed)).imbalance_point_hours)
    return ours / theirs


@lru_cache(maxsize=4096)
def _unrest(document: str) -> float:
    world = _world(document)
    if world is None:
        return -1.0
    metrics = run_metrics(_run(world, _DEFAULT, _SEEDS[0]))
    # Moves that no executor came back from lead to where some do.
    return metrics.reversals + metrics.moves / 1000.0


@lru_cache(maxsize=4096)
def _restlessness(document: str) -> float:
    world = _world(document)
    if world is None:
        return -1.0
    trace = _run(world, _DEFAULT, _SEEDS[0])
    late = sum(move.decided_at > _REST_SHARE * trace.duration_seconds for move in trace.moves)
    return late + len(trace.moves) / 1000.0


def _run(world: Scenario, policy: str, seed: int) -> Trace:
    with planning_runtime():
        return simulate(world, from_name(policy, world), seed=seed)


def _world(document: str) -> Scenario | None:
    try:
        return Scenario.parse(yaml.safe_load(document))
    except BallastError:
        return None


def text(spec: Spec, name: str = "adversary") -> str:
    """The scenario's file."""
    document = {
        "apiVersion": "ballast.dev/v1alpha1",
        "kind": "Scenario",
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(document, sort_keys=False)
