from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ballast.model import Weights
from ballast.simulation.recorded.assumptions import of_recording
from ballast.simulation.recorded.executors import Arrivals
from ballast.simulation.recorded.known import Known
from tests.unit.simulation.recordings import executor, node, recording
from tests.unit.simulation.small_world import policy

MEMBERS = (executor(1, 0), executor(2, 1))


def lines(given: dict[str, Any], arrivals: Arrivals = Arrivals.RECORDED, **settings: Any) -> str:
    chosen = replace(policy({"avgShedder": {"unit": "Traffic"}}), **settings)
    return "\n".join(of_recording(recording(MEMBERS, **given), chosen, Known(), arrivals=arrivals))


def gap(*, nodes: slice) -> np.ndarray[Any, Any]:
    figures = recording(MEMBERS).node_cpu.copy()
    figures[3:5, nodes] = np.nan
    return figures


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"unknown": ("something is amiss",)}, "something is amiss"),
        ({"nodes": (replace(node("n1"), whole=True), node("n2"))}, "what 1 of 2 nodes offer to pods is not known"),
        ({"step_seconds": 300.0}, "figures are 300 s apart, passes 60 s"),
        ({"node_cpu": gap(nodes=slice(0, 2))}, "2 of 10 steps have no metrics of any node"),
        ({"node_cpu": gap(nodes=slice(0, 1))}, "1 nodes lack figures at some steps"),
        ({"nodes": (node("n1", cores=1.0), node("n2"))}, "nodes were full at 10 of 20 node-steps"),
        ({}, "executors' records are not recorded"),
        ({"cordoned": None}, "which nodes were cordoned is not recorded"),
        ({}, "hits are counted from the window's first pass on"),
    ],
)
def test_what_a_recording_lacks_is_said(given: dict[str, Any], words: str) -> None:
    assert words in lines(given)


def test_what_a_recording_has_is_not_complained_of() -> None:
    found = lines({})
    assert not [
        words
        for words in ("offer", "cordoned", "apart", "lack figures", "nodes were full", "weight", "20 s")
        if words in found
    ]


def test_weights_of_what_is_not_recorded_are_said_to_count_for_nothing() -> None:
    nothing = np.full((10, 2), np.nan)
    found = lines({"node_memory": nothing}, weights=Weights(memory=1.0, network_receive=0.5))
    assert "nodes' memory is not recorded" in found
    assert "what nodes' networks can carry is not recorded" in found
    assert "memory is not recorded" not in lines({}, weights=Weights(memory=1.0))


def test_placements_by_the_policy_are_said_to_start_in_a_time_of_their_own() -> None:
    assert "executors that the policy places start in 20 s" in lines({}, Arrivals.POLICY)
