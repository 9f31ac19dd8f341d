"""Namespaces that the passes of a policy leave out, because a pass with their objects fails.

Whatever a user writes, and whichever defect of Ballast it meets, executors of others are placed and leveled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ballast.controller.backoff import Backoff
from ballast.errors import described

T = TypeVar("T")
_LOG = logging.getLogger(__name__)

FIRST_SECONDS = 300.0
"""Until a namespace is tried again, twice as long each time: to find it takes many times as long as a pass."""
LONGEST_SECONDS = 86_400.0
TOGETHER_SECONDS = 60.0
"""For which one namespace is left out with which a pass fails only together with another; then the other one is."""
MOST_TRIES = 40
"""In one pass: enough to find one namespace of many thousands, or some of hundreds."""
_LONGEST_REASON_CHARACTERS = 300
_LATER = "it comes in a later pass"


def logged(policy: str) -> Callable[[str, Exception], None]:
    def tell(namespace: str, error: Exception) -> None:
        _LOG.error("policy %s leaves out namespace %s: its pass fails", policy, namespace, exc_info=error)

    return tell


class Quarantine:
    """Of one policy. `monotonic`: seconds that are never set back; `tell`: of a namespace that is found, and why."""

    def __init__(self, monotonic: Callable[[], float], tell: Callable[[str, Exception], object] | None = None) -> None:
        self._monotonic, self._tell = monotonic, tell
        self._backoff = Backoff(first_seconds=FIRST_SECONDS, longest_seconds=LONGEST_SECONDS)
        self._together = Backoff(first_seconds=TOGETHER_SECONDS, longest_seconds=TOGETHER_SECONDS)
        self._causes: dict[str, str] = {}
        """By namespace that is left out."""
        self._searches = 0

    def decide(
        self, decide: Callable[[frozenset[str]], T], namespaces: Callable[[], Collection[str]]
    ) -> tuple[T, Mapping[str, str]]:
        """What `decide` returns without the namespaces with which it fails; and which these are, with why.

        `decide`: called with the namespaces to leave out of the pass; `namespaces`: all that have objects in it. Raises
        what `decide` raises without any of them: then none is the cause.
        """
        now = self._monotonic()
        left_out = self._backoff.keys(now) | self._together.keys(now)
        self._causes = {namespace: self._causes[namespace] for namespace in left_out}
        try:
            return decide(left_out), self._causes
        except Exception:  # noqa: BLE001 -- raised again by the search where no namespace is the cause
            self._searches += 1
            order = sorted(set(namespaces()).difference(left_out), reverse=self._searches % 2 == 0)
            found = _search(decide, left_out, order)
        for namespace, error in found.causes.items():
            if self._tell is not None:
                self._tell(namespace, error)
            self._causes[namespace] = described(error, most_characters=_LONGEST_REASON_CHARACTERS)
            self._backoff.add(namespace, now)
        for namespace in found.together:
            self._causes[namespace] = _LATER
            self._together.add(namespace, now)
        return found.decided, self._causes | dict.fromkeys(found.untried, _LATER)


@dataclass(frozen=True, slots=True)
class _Found(Generic[T]):
    decided: T
    """Without any of those below."""
    causes: Mapping[str, Exception]
    together: frozenset[str]
    """It fails only with both of two namespaces, each of which may be the cause."""
    untried: frozenset[str]


def _search(decide: Callable[[frozenset[str]], T], known: frozenset[str], namespaces: Sequence[str]) -> _Found[T]:
    """The namespaces with which `decide` fails, by halves. It does without `known`.

    Of two with which it fails only together, the one that comes first is followed.
    """
    all_out = known.union(namespaces)
    decided, left_out = decide(all_out), all_out
    causes: dict[str, Exception] = {}
    together: set[str] = set()
    parts, tries = [namespaces], 0
    while parts and tries < MOST_TRIES:
        part = parts.pop()
        tries += 1
        try:
            decided = decide(left_out.difference(part))
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is one namespace's
            middle = len(part) // 2
            if middle:
                parts += [part[middle:], part[:middle]]
            elif left_out == all_out or _fails(decide, all_out.difference(part)):
                causes[part[0]] = error
            else:
                together.add(part[0])
        else:
            left_out = left_out.difference(part)
    return _Found(decided, causes, frozenset(together), left_out - known - causes.keys() - together)


def _fails(decide: Callable[[frozenset[str]], object], left_out: frozenset[str]) -> bool:
    try:
        decide(left_out)
    except Exception:  # noqa: BLE001 -- another try has the cause
        return True
    return False
