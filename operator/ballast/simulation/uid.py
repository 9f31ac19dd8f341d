"""Uids of simulated executors, such as `7.2`: the slot that one fills, and a number that grows from one to the next."""

from __future__ import annotations


def uid_of(slot: int, generation: int) -> str:
    return f"{slot}.{generation}"


def slot_of(uid: str) -> int:
    return int(uid.partition(".")[0])
