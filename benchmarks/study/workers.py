"""What Spark's Python workers below this process take, while it lasts."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

import psutil

LOOK_SECONDS = 0.1


class Workers:
    """Looks at memory that is a worker's own: what it shares with its parent is there once, however many there are."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.peak_bytes = max([self.peak_bytes, *(_own_bytes(each) for each in psutil.Process().children(True))])


def _own_bytes(process: psutil.Process) -> int:
    """0 for what is no Python worker."""
    try:
        if not any("pyspark" in word and "daemon" in word for word in process.cmdline()):
            return 0
        return int(process.memory_full_info().uss)
    except psutil.Error:
        return 0
