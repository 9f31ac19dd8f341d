"""Executors that Ballast places under no policy's mode: those of schedulers that the policy doesn't name, and gangs."""

from __future__ import annotations

from collections.abc import Collection

from ballast.model import Executor, Objection, Reason


def never_placed(executor: Executor, scheduler_names: Collection[str]) -> Objection | None:
    """Why this executor is not placed, and what to do; None if it is. `scheduler_names`: as the policy has them."""
    if executor.scheduler not in scheduler_names:
        return Reason.FOREIGN_SCHEDULER, (
            f"its scheduler is {executor.scheduler}, and the policy places executors of {', '.join(scheduler_names)}: "
            f"if {executor.scheduler} is a profile of kube-scheduler, or keeps to scheduling gates and node affinity, "
            "add it to placement.schedulerNames"
        )
    if executor.gang:
        return Reason.GANG, (
            f"it belongs to a gang ({executor.gang}), for which its scheduler reserves room before Ballast has chosen "
            "a place: submit the application without the gang to have it placed"
        )
    return None
