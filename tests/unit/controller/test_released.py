"""Which releases without a decided place are remembered."""

from __future__ import annotations

from ballast.controller.released import Released
from ballast.model import Reason


def test_executors_that_were_not_to_be_placed_are_not_remembered() -> None:
    """They would be faults for life once the policy is started again, or enforces."""
    released = Released()
    released.add(
        {
            "late": Reason.GATE_TIMEOUT,
            "stopped": Reason.NOT_ENFORCED,
            "foreign": Reason.FOREIGN_SCHEDULER,
            "gang": Reason.GANG,
        }
    )
    assert released.reasons == {"late": Reason.GATE_TIMEOUT}


def test_executors_are_forgotten_with_their_pods() -> None:
    released = Released()
    released.add({"gone": Reason.GATE_TIMEOUT, "there": Reason.POOL_FULL})
    released.keep({"there"})
    assert released.reasons == {"there": Reason.POOL_FULL}
