"""How often the interpreter looks for reference cycles in a program that plans."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 500_000
"""Values more than before until the next look: more than one pass over a pool of thousands of nodes makes."""


@contextmanager
def seldom_sought() -> Iterator[None]:
    """Raises the gen-0 GC threshold inside the block and restores it; a collector that is off stays off.

    A pass makes some values for every executor, which all end with it, and none of which is part of a cycle. Looking
    at each of them thrice takes a quarter of the time, and more than in proportion where the pool is large.

    It goes for the whole process, so it is for the program that begins the work to say, in one thread at a time.
    """
    allocations, *older = gc.get_threshold()
    gc.set_threshold(max(allocations, ALLOCATIONS) if allocations else 0, *older)
    try:
        yield
    finally:
        gc.set_threshold(allocations, *older)
