"""The API server of a play: what there is of pods and moves after every change, and at the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.apiserver import ApiServer
from tests.apiserver.store import Change

JSON = dict[str, Any]
NAMESPACE = "analytics"
BUDGET: JSON = {
    "metadata": {"name": "none", "namespace": NAMESPACE},
    "spec": {"selector": {}},
    "status": {"disruptionsAllowed": 0},
}


class Ended(BaseException):
    """The process that asked leads no more, or is no more: it never learns what became of its request."""


@dataclass(frozen=True)
class Stored:
    """Everything that is kept; pods and moves by name."""

    pods: Mapping[str, JSON] = field(default_factory=dict)
    moves: Mapping[str, JSON] = field(default_factory=dict)


class PlayedServer(ApiServer):
    """`rules`: called after every change with what was there before, and what is there now."""

    def __init__(self, rules: Callable[[Stored, Stored], None]) -> None:
        super().__init__(checked=self._became)
        self._rules = rules
        self.stored, self.before_last = Stored(), Stored()
        self.evicted: list[str] = []
        """Uids, in order."""

    def _became(self, change: Change) -> None:
        plural, _, name = change.key
        if plural == "pods":
            after = replace(self.stored, pods=_with(self.stored.pods, name, change.after))
            if _leaves(change.after) and not _leaves(change.before):
                self.evicted.append((change.after or {})["metadata"]["uid"])
        elif plural == "executormoves":
            after = replace(self.stored, moves=_with(self.stored.moves, name, change.after))
        else:
            return
        self.before_last, self.stored = self.stored, after
        self._rules(self.before_last, after)


def _leaves(pod: JSON | None) -> bool:
    return pod is not None and "deletionTimestamp" in pod["metadata"]


def _with(items: Mapping[str, JSON], name: str, item: JSON | None) -> dict[str, JSON]:
    kept = {key: value for key, value in items.items() if key != name}
    return kept if item is None else {**kept, name: item}
