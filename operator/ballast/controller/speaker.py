"""Which policy speaks of a topology in its status. One does: what two say, each would take back in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ballast.controller.ends import Finding
from ballast.controller.status import Outlook
from ballast.model import Phase


@dataclass(frozen=True, slots=True)
class Voice:
    """A policy that could speak."""

    outlook: Outlook
    at_home: int
    """Executors of the topology that the policy holds, or has on its nodes."""
    stalls: Finding | None = None
    """Why nothing of the topology is acted on."""

    @classmethod
    def of(cls, outlook: Outlook, topology: str, *, nodes: frozenset[str], stalls: Finding | None) -> Voice:
        """`nodes`: names of those in the policy's pool."""
        members = outlook.executors.get(topology, ())
        at_home = sum(executor.phase is Phase.GATED or executor.node in nodes for executor in members)
        return cls(outlook, at_home, stalls)

    @property
    def policy(self) -> str:
        return self.outlook.policy.name


def speaker(voices: Sequence[Voice], *, last: str | None) -> Voice | None:
    """The last owner, while it has executors in its pool; else the policy with most of them; else the last owner, or
    the oldest policy. Any policy reports a topology that stalls. None if the owner can report nothing now.

    `voices`: the oldest policy's first. `last`: the policy that spoke last, unless that is gone.
    """

    def rank(voice: Voice) -> tuple[bool, bool, int, bool]:
        spoke = voice.policy == last
        return voice.stalls is None, not (spoke and voice.at_home), -voice.at_home, not spoke

    best = min(voices, key=rank, default=None)
    if best is None or best.stalls is not None or best.at_home or last in (None, best.policy):
        return best
    return None
