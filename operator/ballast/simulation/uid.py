"""Names of executors: which slot of the scenario they fill, and the how manieth they are in it."""

from __future__ import annotations


def uid_of(slot: int, generation: int) -> str:
    return f"{slot}.{generation}"


def slot_of(uid: str) -> int:
    return int(uid.partition(".")[0])
