"""Back-off for pods that the API server does not let be released as they are.

Each try is a request of a megabyte and a half, and a user may create many such pods ("junk flood").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ballast.kube.actions import Refused, Release, ReleaseOutcome

_PAUSE_SECONDS = 60.0


class _OfPod(Protocol):
    @property
    def uid(self) -> str: ...


T = TypeVar("T", bound=_OfPod)


class ReleaseBackoff:
    """Such pods are tried again after a minute, not in every pass.

    `monotonic`: seconds that are never set back. Not safe for threads.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._until: dict[str, float] = {}
        """By uid."""

    def due(self, pods: Iterable[T]) -> list[T]:
        """The pods, or the releases of pods, that are to be tried now."""
        now = self._monotonic()
        self._until = {uid: until for uid, until in self._until.items() if now < until}
        return [pod for pod in pods if pod.uid not in self._until]

    def note(self, orders: Iterable[Release], outcomes: Iterable[ReleaseOutcome]) -> None:
        """What came of them."""
        until = self._monotonic() + _PAUSE_SECONDS
        for order, outcome in zip(orders, outcomes, strict=True):
            if isinstance(outcome, Refused) and outcome.lasting:
                self._until[order.uid] = until
