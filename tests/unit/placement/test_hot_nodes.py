import numpy as np
import pytest

from ballast.model import AvgShedderPolicy, LoadUnit, SheddingPolicy
from ballast.placement.placement_view import would_be_unloaded

NONE = float("nan")


def hot(*scores: float, policy: SheddingPolicy | None = None) -> list[bool]:
    rules = AvgShedderPolicy(min_hot_score=70.0, low_threshold=15.0)
    found: list[bool] = would_be_unloaded(np.array(scores), policy or SheddingPolicy(avg_shedder=rules)).tolist()
    return found


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((20.0, 69.9, 70.0, 90.0), [False, False, True, True]),
        ((60.0, 74.9, 75.0), [False, False, True]),
        ((90.0, 95.0), [False, False]),
        ((NONE, 20.0, 80.0), [False, False, True]),
        ((NONE, NONE), [False, False]),
        ((), []),
    ],
)
def test_hot_is_who_is_hot_enough_and_far_enough_from_the_coldest(
    scores: tuple[float, ...], expected: list[bool]
) -> None:
    assert hot(*scores) == expected


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (SheddingPolicy("OverloadShedder", settings=(("threshold", 60.0),)), [False, True, True, False]),
        (SheddingPolicy("ThresholdShedder", settings=(("threshold", 20.0),)), [False, False, True, False]),
        (SheddingPolicy("ThresholdShedder", settings=(("threshold", 40.0),)), [False, False, False, False]),
        (
            SheddingPolicy("TransferShedder", settings=(("overload_threshold", 60.0), ("target_std_dev", 5.0))),
            [False, True, True, False],
        ),
        (
            SheddingPolicy("TransferShedder", settings=(("overload_threshold", 85.0), ("target_std_dev", 5.0))),
            [False, True, True, False],
        ),
        (
            SheddingPolicy("TransferShedder", settings=(("overload_threshold", 85.0), ("target_std_dev", 25.0))),
            [False, False, False, False],
        ),
        (
            SheddingPolicy("ThresholdShedder", settings=(("lower_boundary", 1.0), ("threshold", 30.0))),
            [False, False, True, False],
        ),
        (
            SheddingPolicy("ThresholdShedder", settings=(("lower_boundary", 1.0), ("threshold", 40.0))),
            [False, False, False, False],
        ),
        (
            SheddingPolicy("TransferShedder", settings=(("overload_threshold", 60.0), ("target_std_dev", 25.0))),
            [False, False, True, False],
        ),
    ],
    ids=lambda value: value.strategy if isinstance(value, SheddingPolicy) else None,
)
def test_every_strategy_that_goes_by_scores_has_its_own_measure(policy: SheddingPolicy, expected: list[bool]) -> None:
    assert hot(20.0, 60.0, 80.0, NONE, policy=policy) == expected


@pytest.mark.parametrize(
    "policy",
    [
        SheddingPolicy("None"),
        SheddingPolicy("UniformLoadShedder", settings=(("max_unload_ratio", 0.5),)),
        SheddingPolicy(avg_shedder=AvgShedderPolicy(unit=LoadUnit.TRAFFIC)),
    ],
)
def test_a_strategy_that_goes_by_other_figures_calls_nobody_hot(policy: SheddingPolicy) -> None:
    assert hot(0.0, 100.0, policy=policy) == [False, False]
