"""Requests about many objects at once, of which those of a slow namespace delay no others ("bulkhead").

A webhook may look at the pods of one namespace, and take as long as it likes for each of them.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

from ballast.fairness import in_turn

T = TypeVar("T")
R = TypeVar("R")

WAIT_SECONDS = 2.0
"""For all answers together, before slow namespaces are looked for."""
_MOST_WAITS = 3
"""Of so many seconds, while no namespace is slow: there may be thousands of requests."""
_SLOW_AFTER_SECONDS = 0.5
"""A namespace is slow if one of its requests is under way for as long."""
_MOST_WHILE_SLOW = 16
"""Requests under way about a slow namespace."""
_MOST_WHILE_MANY_SLOW = 256
"""About all slow namespaces together, or one of each: every request takes a thread and a connection."""
_SLOW_SECONDS = 60.0
"""How long a namespace counts as slow, and is not waited for, after an answer was late."""


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


class Bulkhead:
    """Remembers which requests are under way: none is sent again before it has been answered.

    `threads`: how many requests are sent at once; those about slow namespaces come on top: `most_while_slow` of each
    (fewer while many are slow), and `most_slow` of all together. Threads that are not waited for end with the process.
    `monotonic`: seconds that are never set back. `wait`: for an Event, at most so many of these seconds.
    """

    def __init__(
        self,
        threads: int,
        *,
        seconds: float = WAIT_SECONDS,
        most_while_slow: int = _MOST_WHILE_SLOW,
        most_slow: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wait: Callable[[Event, float], bool] = Event.wait,
    ) -> None:
        self._threads, self._seconds, self._monotonic, self._wait = threads, seconds, monotonic, wait
        self._most_while_slow, self._most_slow = most_while_slow, most_slow
        self._under_way: dict[str, tuple[str, float]] = {}
        """Namespaces, and since when (monotonic), by key."""
        self._slow_until: dict[str, float] = {}
        """By namespace."""
        self._lock = Lock()

    def map(
        self, work: Callable[[T], R], items: Sequence[T], *, key: Callable[[T], str], namespace: Callable[[T], str]
    ) -> list[R | None]:
        """What `work` returns for each; None where that is not known yet, or `work` was not called.

        Raises what `work` raises.
        """
        with self._lock:
            self._forget_slow()
            named = [(key(each), namespace(each)) for each in items]
            quick, slow = self._chosen(named)
            # From now on, not from when their threads begin: the next call counts them.
            self._under_way |= {named[index][0]: (named[index][1], self._monotonic()) for index in slow}
        awaited, unawaited = (_Batch(work, items, deque(each), len(each)) for each in (quick, slow))
        for batch, threads in ((awaited, self._threads), (unawaited, len(slow))):
            for _ in range(min(threads, len(batch.waiting))):
                Thread(target=self._serve, args=(batch, key, namespace), daemon=True, name="bulkhead").start()
        if quick:
            self._await(awaited)
        with self._lock:
            awaited.waiting.clear()
            if error := awaited.error or unawaited.error:
                raise error
            found = {**unawaited.answers, **awaited.answers}
            return [found.get(index) for index in range(len(items))]

    def one(self, work: Callable[[], R], *, key: str, namespace: str) -> R | None:
        """The same for a single request."""
        (answer,) = self.map(lambda _: work(), [key], key=lambda each: each, namespace=lambda _: namespace)
        return answer

    def under_way(self, key: str) -> bool:
        """Whether a request of this key has been sent and is not answered."""
        with self._lock:
            return key in self._under_way

    def _forget_slow(self) -> None:
        now = self._monotonic()
        self._slow_until = {name: until for name, until in self._slow_until.items() if now < until}

    def _await(self, batch: _Batch[T, R]) -> None:
        """Until it is done, or a namespace turns out to be slow, or it has taken long enough."""
        for _ in range(_MOST_WAITS):
            if self._wait(batch.done, self._seconds) or self._note_slow():
                return

    def _note_slow(self) -> bool:
        """Whether there are slow namespaces that were not known to be slow."""
        with self._lock:
            now = self._monotonic()
            late = {name for name, since in self._under_way.values() if now - since >= _SLOW_AFTER_SECONDS}
            found = late - self._slow_until.keys()
            self._slow_until |= dict.fromkeys(found, now + _SLOW_SECONDS)
            return bool(found)

    def _chosen(self, items: Sequence[tuple[str, str]]) -> tuple[list[int], list[int]]:
        """Indexes of the requests to send and to wait for, each namespace in turn, and of those not to wait for.

        `items`: keys and namespaces.
        """
        quick: list[int] = []
        slow: list[int] = []
        under_way = Counter(name for name, _ in self._under_way.values())
        most_of_each = min(self._most_while_slow, max(1, _MOST_WHILE_MANY_SLOW // max(1, len(self._slow_until))))
        for index, (key, namespace) in enumerate(items):
            if key in self._under_way:
                continue
            if namespace not in self._slow_until:
                quick.append(index)
            elif under_way[namespace] < most_of_each and not self._too_many_slow(under_way):
                under_way[namespace] += 1
                slow.append(index)
        return in_turn(quick, namespace=lambda index: items[index][1]), slow

    def _too_many_slow(self, under_way: Mapping[str, int]) -> bool:
        """`under_way`: requests by namespace."""
        if self._most_slow is None:
            return False
        return sum(under_way[name] for name in self._slow_until if name in under_way) >= self._most_slow

    def _serve(self, batch: _Batch[T, R], key: Callable[[T], str], namespace: Callable[[T], str]) -> None:
        while True:
            with self._lock:
                if not batch.waiting:
                    return
                index = batch.waiting.popleft()
                item = batch.items[index]
                self._under_way[key(item)] = namespace(item), self._monotonic()
            try:
                answer = batch.work(item)
            except BaseException as error:  # noqa: BLE001 -- it is raised where answers are awaited
                self._end(batch, key(item), error=error)
            else:
                with self._lock:
                    batch.answers[index] = answer
                self._end(batch, key(item))

    def _end(self, batch: _Batch[T, R], key: str, *, error: BaseException | None = None) -> None:
        with self._lock:
            del self._under_way[key]
            batch.left -= 1
            batch.error = batch.error or error
            if error is not None or not batch.left:
                batch.done.set()
