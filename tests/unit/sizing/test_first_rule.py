from __future__ import annotations

from typing import Any

import pytest

from ballast.api.topology_sizing import Sizing
from ballast.sizing.bottleneck import first_rule
from ballast.sizing.facts import Facts
from tests.unit.sizing.values import log, progress, stage, task


@pytest.mark.parametrize(
    ("arriving", "behind", "ready", "room"),
    [(90.0, 5.0, True, True), (110.0, 0.0, False, False), (None, None, None, None)],
)
def test_a_source_is_ready_if_records_wait_and_there_is_room_if_they_are_processed_faster_than_they_arrive(
    arriving: float | None, behind: float | None, ready: bool | None, room: bool | None
) -> None:
    (found,) = first_rule(
        Facts(progress=progress([(100.0, 1.0)] * 3, arriving=arriving, behind=behind)), rate=None, parallelism=2
    )
    assert (found.stage, found.ready_upstream, found.room_downstream) == ("source", ready, room)


@pytest.mark.parametrize(
    ("seconds", "ready", "room"),
    [([1.0, 1.0], True, True), ([1.0, 0.2], False, True), ([9.0, 9.0, 9.0, 99.0], True, False)],
)
def test_a_stage_is_ready_if_its_tasks_fill_the_cores_and_has_room_if_none_lags(
    seconds: list[float], ready: bool, room: bool
) -> None:
    cores = 1 if len(seconds) == 4 else 2
    tasks = [task(seconds=each) for each in seconds]
    (found,) = first_rule(Facts(log=log(stage(0, *tasks, name="work"), cores={"1": cores})), rate=None, parallelism=2)
    assert (found.stage, found.ready_upstream, found.room_downstream) == ("work", ready, room)


CHAIN: list[dict[str, Any]] = [
    {"component": "read", "latency": "1ms", "parallelism": 4},
    {"component": "slow", "latency": "8ms", "parallelism": 16},
    {"component": "store", "latency": "1ms", "parallelism": 4},
]


@pytest.mark.parametrize(
    ("rate", "ready", "room"),
    [
        (None, [None, True, None], [True, True, True]),
        (1000.0, [None, False, None], [True, True, True]),
        (3000.0, [None, True, None], [False, True, True]),
    ],
)
def test_declared_stages_are_judged_by_what_they_pass(
    rate: float | None, ready: list[bool | None], room: list[bool | None]
) -> None:
    found = first_rule(Facts(Sizing.model_validate({"stages": CHAIN})), rate=rate, parallelism=16)
    assert [each.ready_upstream for each in found] == ready
    assert [each.room_downstream for each in found] == room


def test_with_nothing_known_nothing_is_judged() -> None:
    assert first_rule(Facts(), rate=None, parallelism=1) == ()
