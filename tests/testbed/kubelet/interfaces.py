"""Network counters of another network namespace."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.testbed.kubelet.figures import InterfaceFigures

CLONE_NEWNET = 0x40000000
T = TypeVar("T")


def within(namespace: Path, work: Callable[[], T]) -> T:
    """Do `work` inside a network namespace: in its own thread, which alone changes over."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def visit() -> None:
        try:
            descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number), str(namespace))
            finally:
                os.close(descriptor)
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 -- carried over to the caller
            failure.append(error)

    thread = threading.Thread(target=visit)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def parse(text: str) -> list[InterfaceFigures]:
    """The interfaces of a /proc/net/dev, without the loopback one."""
    found = []
    for row in text.splitlines()[2:]:
        name, _, counters = row.partition(":")
        value = [int(number) for number in counters.split()]
        if name.strip() != "lo":
            figures = InterfaceFigures(
                name.strip(), value[0], value[1], value[2], value[3], value[8], value[9], value[10], value[11]
            )
            found.append(figures)
    return found


def interfaces(namespace: Path) -> list[InterfaceFigures]:
    """Counters of the interfaces in a network namespace, given by its file."""
    return parse(within(namespace, lambda: Path("/proc/thread-self/net/dev").read_text()))
