"""Executors that were released without a decided place, for as long as their pods exist."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock

from ballast.model import Reason

_NOT_OURS = frozenset({Reason.NOT_ENFORCED, Reason.FOREIGN_SCHEDULER, Reason.GANG})
"""The policy places no such executor. A later policy may: the release was right all the same."""


class Released:
    """Remembers why, by uid. Safe for threads: the gate timeout releases in its own."""

    def __init__(self) -> None:
        self._reasons: dict[str, Reason] = {}
        self._lock = Lock()

    def add(self, reasons: Mapping[str, Reason]) -> None:
        """Executors that Ballast did not have to place are left out."""
        with self._lock:
            self._reasons |= {uid: reason for uid, reason in reasons.items() if reason not in _NOT_OURS}

    def keep(self, uids: Collection[str]) -> None:
        """Forget all but these, which exist."""
        with self._lock:
            self._reasons = {uid: reason for uid, reason in self._reasons.items() if uid in uids}

    @property
    def reasons(self) -> Mapping[str, Reason]:
        with self._lock:
            return dict(self._reasons)
