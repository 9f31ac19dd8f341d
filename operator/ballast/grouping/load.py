"""How busy a target is, 0…1, from its receive queue and from what waits on the way to it.

Source: Storm's `JCQueue.getQueueLoad`, netty `Client.getLoad`, `Load` and `LoadMapping`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

UNKNOWN_LOAD = 1.0
"""A target of which nothing is known counts as full, so that it draws no traffic that nearer ones could take."""

PENDING_MESSAGES_AT_FULL = 1024


def queue_capacity(configured_messages: int) -> int:
    """Slots that a ring-buffer queue really has: the configured size, rounded up to a power of two."""
    return 1 << max(configured_messages - 1, 0).bit_length()


def queue_load(*, waiting_messages: int, capacity_messages: int) -> float:
    """Share of the queue that is taken. What overflows beyond it does not count."""
    return waiting_messages / capacity_messages


def connection_load(pending_messages: int) -> float:
    """What waits to be sent on the connection, as a share of what counts as full."""
    return min(pending_messages, PENDING_MESSAGES_AT_FULL) / PENDING_MESSAGES_AT_FULL


def _known(load: float) -> float:
    """One that is no number would take the weight of all those that it is compared with."""
    return load if math.isfinite(load) else UNKNOWN_LOAD


@dataclass(frozen=True, slots=True)
class RemoteLoad:
    """A target in another process: what its process reported, and what waits on our side."""

    queue: float
    connection: float = 0.0

    @property
    def value(self) -> float:
        return max(_known(self.queue), _known(self.connection))


@dataclass(frozen=True, slots=True)
class Loads:
    """The latest figures, by target. What is measured in our own process wins over what a peer reported."""

    local: Mapping[int, float] = field(default_factory=dict)
    remote: Mapping[int, RemoteLoad] = field(default_factory=dict)

    def of(self, target: int) -> float:
        if target in self.local:
            return _known(self.local[target])
        known = self.remote.get(target)
        return UNKNOWN_LOAD if known is None else known.value
