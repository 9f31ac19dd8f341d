"""Lanes for tests of what is written, and not of when."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ballast.tenancy.lane import Job, Lane, Limits, Rank

T = TypeVar("T")


class AtOnce(Lane):
    """Calls the work in the thread that submits it, so that writes come one after the other."""

    def submit(self, namespace: str, key: str, rank: Rank, work: Callable[[], T], *, anyway: bool = False) -> Job[T]:
        job = Job(namespace, key, rank, work)
        if anyway or not self.rests(key):
            job._answer = work()
        job.over = True
        return job

    def wait(self, jobs: Iterable[Job[Any]], *, seconds: float | None = None, late_too: bool = False) -> None:
        del jobs, seconds, late_too


def impatient() -> Lane:
    """One that waits for no answer that a test keeps back."""
    return Lane(Limits(late_seconds=0.05))


def patient() -> Lane:
    """One that waits for every answer, as slow as the machine may be."""
    return Lane(Limits(late_seconds=60.0))
