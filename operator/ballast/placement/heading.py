"""Where executors go that have been released and are not bound yet: no node shows them, but their places are taken."""

from __future__ import annotations

from collections.abc import Iterable

from ballast.model import Phase, Snapshot


def headings(snapshot: Snapshot, sent: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Node by uid, of those of whom it is known: by the move that they are the replacement of, or by `sent`.

    `sent`: uid and node of those that earlier passes released.
    """
    replacing = {m.replacement_uid: m.target for m in snapshot.moves if m.phase.traveling and m.replacement_uid}
    known = replacing | dict(sent)
    unbound = (e.uid for e in snapshot.executors if e.phase is Phase.PENDING and e.node is None) if known else ()
    return {uid: known[uid] for uid in unbound if uid in known}
