"""How Storm computes the loads that it reports: `JCQueue.getQueueLoad` and netty's `Client.getLoad`."""

from __future__ import annotations

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
