from __future__ import annotations

from enum import StrEnum

import pytest

from ballast import model
from ballast.api import move, policy_metrics, policy_moves, policy_placement, policy_shedding, scale, topology
from ballast.prometheus import Preset

PAIRS = [
    (move.MovePhase, model.MovePhase),
    (policy_metrics.Preset, Preset),
    (policy_moves.MovesMode, model.MovesMode),
    (policy_placement.ExecutorOrder, model.ExecutorOrder),
    (policy_placement.PlacementMode, model.PlacementMode),
    (policy_shedding.LoadUnit, model.LoadUnit),
    (scale.Pin, model.Pin),
    (topology.Grouping, model.Grouping),
    (topology.Workload, model.Workload),
]


@pytest.mark.parametrize(("written", "read"), PAIRS, ids=lambda words: words.__name__)
def test_the_planner_knows_every_word_that_a_user_may_write(written: type[StrEnum], read: type[StrEnum]) -> None:
    assert [word.value for word in written] == [word.value for word in read]
    assert written.__name__ == read.__name__
