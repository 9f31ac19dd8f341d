from __future__ import annotations

from ballast.api import BalancingPolicy
from ballast.model import MovesMode, PlacementMode
from ballast.model.from_api import policy_from


def policy(*, stopped: bool) -> BalancingPolicy:
    return BalancingPolicy.parse(
        {
            "apiVersion": "ballast.dev/v1alpha1",
            "kind": "BalancingPolicy",
            "metadata": {"name": "streaming"},
            "spec": {"stopped": stopped, "placement": {"mode": "Enforce"}, "moves": {"mode": "Enforce"}},
        }
    )


def test_a_stopped_policy_places_and_moves_nothing_whatever_its_modes_are() -> None:
    found = policy_from(policy(stopped=True))
    assert (found.placement.mode, found.moves.mode) == (PlacementMode.DISABLED, MovesMode.DISABLED)


def test_a_started_policy_has_the_modes_that_its_owner_wrote() -> None:
    found = policy_from(policy(stopped=False))
    assert (found.placement.mode, found.moves.mode) == (PlacementMode.ENFORCE, MovesMode.ENFORCE)
