"""Asking for many things at once, without waiting for those that the API server takes long for.

A webhook may look at the pods of one namespace, and take as long as it likes for each of them. Pods of other namespaces
must not wait for that.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_SECONDS = 2.0
_MOST_WHILE_SLOW = 16
"""Of one namespace under way, if some of it was lately not answered in time."""
_SLOW_SECONDS = 60.0
"""After which a namespace is waited for again."""


@dataclass(slots=True)
class _Batch(Generic[T, R]):
    work: Callable[[T], R]
    items: Sequence[T]
    waiting: deque[int]
    left: int
    """Not answered."""
    answers: dict[int, R] = field(default_factory=dict)
    error: BaseException | None = None
    done: Event = field(default_factory=Event)


class Patience:
    """Remembers what is under way: it is not asked for again before it has been answered.

    `threads`: how much is asked for at once. Those threads that are not waited for end with the process. `monotonic`:
    seconds that are never set back.
    """

    def __init__(
        self, threads: int, *, seconds: float = PATIENCE_SECONDS, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._threads, self._seconds, self._monotonic = threads, seconds, monotonic
        self._under_way: dict[str, str] = {}
        """Namespaces by key."""
        self._slow_until: dict[str, float] = {}
        """By namespace; none of these is waited for."""
        self._lock = Lock()

    def ask(
        self, work: Callable[[T], R], items: Sequence[T], *, key: Callable[[T], str], namespace: Callable[[T], str]
    ) -> list[R | None]:
        """What `work` says of each; None where there is no answer yet, or none was asked for.

        Raises what `work` raises.
        """
        with self._lock:
            self._forget_slow()
            quick, slow = self._chosen([(key(each), namespace(each)) for each in items])
        awaited, others = (_Batch(work, items, deque(each), len(each)) for each in (quick, slow))
        for batch, threads in ((awaited, self._threads), (others, len(slow))):
            for _ in range(min(threads, len(batch.waiting))):
                Thread(target=self._serve, args=(batch, key, namespace), daemon=True, name="patience").start()
        in_time = not quick or awaited.done.wait(self._seconds)
        with self._lock:
            awaited.waiting.clear()
            if not in_time:
                self._note_slow({namespace(items[index]) for index in quick if index not in awaited.answers})
            if error := awaited.error or others.error:
                raise error
            found = {**others.answers, **awaited.answers}
            return [found.get(index) for index in range(len(items))]

    def _forget_slow(self) -> None:
        now = self._monotonic()
        self._slow_until = {name: until for name, until in self._slow_until.items() if now < until}

    def _note_slow(self, unanswered: Container[str]) -> None:
        """Of these namespaces, those that were asked about and did not just wait behind others."""
        until = self._monotonic() + _SLOW_SECONDS
        for name in set(self._under_way.values()):
            if name in unanswered:
                self._slow_until[name] = until

    def _chosen(self, items: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
        """Indexes of those to ask for and to wait for, and of those not to wait for.

        The first of each namespace, then the second ones, and so on.
        """
        of_namespace: dict[str, list[int]] = defaultdict(list)
        for index, (key, namespace) in enumerate(items):
            if key not in self._under_way:
                of_namespace[namespace].append(index)
        slow: list[int] = []
        under_way = Counter(self._under_way.values())
        for namespace in self._slow_until:
            slow += of_namespace.pop(namespace, [])[: max(0, _MOST_WHILE_SLOW - under_way[namespace])]
        numbered = [(turn, index) for mine in of_namespace.values() for turn, index in enumerate(mine)]
        return [index for _, index in sorted(numbered)], slow

    def _serve(self, batch: _Batch[T, R], key: Callable[[T], str], namespace: Callable[[T], str]) -> None:
        while True:
            with self._lock:
                if not batch.waiting:
                    return
                index = batch.waiting.popleft()
                item = batch.items[index]
                self._under_way[key(item)] = namespace(item)
            try:
                answer = batch.work(item)
            except BaseException as error:  # noqa: BLE001 -- it is raised where the answers are waited for
                self._note(batch, key(item), error=error)
            else:
                with self._lock:
                    batch.answers[index] = answer
                self._note(batch, key(item))

    def _note(self, batch: _Batch[T, R], key: str, *, error: BaseException | None = None) -> None:
        with self._lock:
            del self._under_way[key]
            batch.left -= 1
            batch.error = batch.error or error
            if error is not None or not batch.left:
                batch.done.set()
