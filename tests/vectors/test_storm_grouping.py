"""Storm's load-aware shuffle grouping and the loads that it goes by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from ballast.enums import Scope
from ballast.errors import InvalidField
from ballast.grouping.place import Place, reach
from tests.reference.storm.queues import connection_load, queue_capacity, queue_load
from tests.reference.storm.shuffle import Bounds, Loads, RemoteLoad, Shuffle, certain_slots
from tests.vectors.case import Case
from tests.vectors.closeness import same

SCOPES = {
    "WORKER_LOCAL": Scope.PROCESS,
    "HOST_LOCAL": Scope.NODE,
    "RACK_LOCAL": Scope.RACK,
    "EVERYTHING": Scope.CLUSTER,
}


def place(given: Mapping[str, Any], at: Mapping[str, Any] | None) -> Place | None:
    if at is None:
        return None
    host = given["node_to_host"].get(at["node"])
    return Place(node=at["node"], process=at["port"], rack=given["host_to_rack"].get(host))


def places(given: Mapping[str, Any], table: Mapping[str, Any]) -> list[Place | None]:
    return [place(given, table.get(str(task))) for task in given["target_tasks"]]


def loads(given: Mapping[str, Any] | None) -> Loads | None:
    if given is None:
        return None
    remote = {
        int(task): RemoteLoad(queue=load["bolt_load"], connection=load["connection_load"])
        for task, load in given["remote"].items()
    }
    return Loads(local={int(task): load for task, load in given["local"].items()}, remote=remote)


def assert_route(shuffle: Shuffle, around: Any, tasks: list[int], want: Mapping[str, Any]) -> None:
    route = shuffle.route
    assert route.scope == SCOPES[want["scope"]]
    assert dict(zip(map(str, tasks), route.weights.tolist(), strict=True)) == want["weights"]
    assert route.ring.size == want["ring_capacity"]
    in_scope = around.within[route.scope]
    certain = certain_slots(route.weights, in_scope, route.ring.size)
    base = {str(tasks[at]): slots for at, slots in zip(in_scope, certain.tolist(), strict=True) if slots}
    if len(base) == 1:
        base = dict.fromkeys(base, route.ring.size)  # the only one to copy gets all the rest
    assert base == want["ring_base"]
    chosen = Counter(str(tasks[at]) for at in shuffle.choose(route.ring.size))
    assert chosen.keys() == want["ring_sample"].keys()
    assert all(chosen[task] >= slots for task, slots in base.items())


@pytest.mark.vectors("storm", "LoadAwareShuffleGrouping")
def test_shuffle(case: Case) -> None:
    given, bounds = (
        case.raw["given"],
        Bounds(
            widen_above=case.config["topology.localityaware.higher.bound"],
            narrow_below=case.config["topology.localityaware.lower.bound"],
        ),
    )
    tasks = given["target_tasks"]
    source = place(given, given["source"])
    assert source is not None
    now = places(given, given["task_to_node_port"])

    def prepare() -> Shuffle:
        return Shuffle(source, tasks, now, random=np.random.default_rng(0), bounds=bounds)

    if "error" in case.rounds[0]["want"]:
        with pytest.raises(InvalidField, match="targets"):
            prepare()
        return
    shuffle = prepare()
    for number, each in enumerate(case.rounds):
        if "task_to_node_port" in each["given"]:
            now = places(given, each["given"]["task_to_node_port"])
            shuffle.targets_moved(now)
        known = loads(each["given"]["load"])
        if number:
            shuffle.refresh(known)
        assert_route(shuffle, reach(source, now), tasks, each["want"])
        for task, load in each["want"].get("load", {}).items():
            assert known is not None
            assert same(known.of(int(task)), load)


@pytest.mark.vectors("storm", "LoadMapping")
def test_loads(case: Case) -> None:
    given, want = case.raw["given"], case.raw["want"]
    queues, local, remote = {}, {}, {}
    for task, queue in given["receive_queues"].items():
        slots = queue_capacity(queue["configured_size"])
        accepted = min(queue["offered"], slots)
        load = queue_load(waiting_messages=accepted, capacity_messages=slots)
        queues[task] = {"accepted": accepted, "queue_load": load}
        if queue["where"] == "local":
            local[int(task)] = load
    for task in given["server_reported_tasks"] or ():
        reported = queues[str(task)]["queue_load"]
        remote[task] = RemoteLoad(queue=reported, connection=connection_load(given["pending_messages"]))
    assert same(queues, want["queues"])
    assert same(
        {str(task): {"bolt_load": load.queue, "connection_load": load.connection} for task, load in remote.items()},
        want["remote"],
    )
    known = Loads(local=local, remote=remote)
    assert same({task: known.of(int(task)) for task in want["load"]}, want["load"])
