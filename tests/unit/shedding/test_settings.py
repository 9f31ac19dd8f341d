from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ballast.shedding.avg_shedder_traffic import TrafficSettings
from ballast.shedding.overload_shedder import OverloadSettings
from ballast.shedding.strategies import (
    overload_settings,
    threshold_settings,
    traffic_settings,
    transfer_settings,
    uniform_settings,
)
from ballast.shedding.threshold_shedder import ThresholdSettings
from ballast.shedding.transfer_shedder import TransferSettings
from ballast.shedding.uniform_load_shedder import UniformSettings


@pytest.mark.parametrize(
    ("read", "given", "meant"),
    [
        (
            traffic_settings,
            {
                "low_threshold": 1.0,
                "high_threshold": 2.0,
                "low_hits": 3.0,
                "high_hits": 4.0,
                "max_unload_ratio": 0.5,
                "min_rate": 6.0,
                "min_throughput": 7.0,
            },
            TrafficSettings(1.0, 2.0, 3, 4, 0.5, 6.0, 7.0),
        ),
        (
            threshold_settings,
            {"threshold": 1.0, "history_weight": 0.2, "min_throughput": 3.0, "lower_boundary": 1.0},
            ThresholdSettings(1.0, 0.2, 3.0, lower_boundary=True),
        ),
        (overload_settings, {"threshold": 1.0}, OverloadSettings(1.0)),
        (
            uniform_settings,
            {
                "rate_difference": 1.0,
                "throughput_ratio": 2.0,
                "max_unload_ratio": 0.3,
                "min_rate": 4.0,
                "min_throughput": 5.0,
                "max_executors": 6.0,
            },
            UniformSettings(1.0, 2.0, 0.3, 4.0, 5.0, 6),
        ),
        (
            transfer_settings,
            {
                "target_std_dev": 10.0,
                "hits": 2.0,
                "max_nodes_per_pass": 3.0,
                "overload_threshold": 4.0,
                "history_weight": 0.5,
                "delay": 6.0,
                "max_age": 7.0,
            },
            TransferSettings(
                target_std_ratio=0.1,
                hits=2,
                max_nodes=3,
                overload_threshold=4.0,
                history_ratio=0.5,
                cooldown_seconds=6.0,
                ttl_seconds=7.0,
            ),
        ),
    ],
    ids=["traffic", "threshold", "overload", "uniform", "transfer"],
)
def test_a_policys_numbers_become_settings(
    read: Callable[[Mapping[str, float]], object], given: Mapping[str, float], meant: object
) -> None:
    assert read(given) == meant
    assert read({}) == type(meant)()


def test_whole_numbers_are_whole() -> None:
    assert isinstance(traffic_settings({"low_hits": 3.0}).low_hits, int)
    assert isinstance(uniform_settings({"max_executors": 3.0}).max_executors, int)
