"""How the interpreter and the numeric library are set in a program that plans."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 500_000
"""Values more than before until the next look: more than one pass over a pool of thousands of nodes makes."""


# Both go for the whole process, so it is for the program that begins the work to say, in one thread at a time.


@contextmanager
def planning_runtime() -> Iterator[None]:
    """`seldom_sought`, and matrices are multiplied on one thread inside the block; as before afterwards.

    A pass multiplies many small matrices. Threads that wait for the next one in a loop take longer than they save:
    twice the CPU on two cores, and more where a node has more cores than the container may use.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 -- only what plans pays for it

    with seldom_sought(), threadpool_limits(limits=1, user_api="blas"):
        yield


@contextmanager
def seldom_sought() -> Iterator[None]:
    """Raises the gen-0 GC threshold inside the block and restores it; a collector that is off stays off.

    A pass makes some values for every executor, which all end with it, and none of which is part of a cycle. Looking
    at each of them thrice takes a quarter of the time, and more than in proportion where the pool is large.
    """
    allocations, *older = gc.get_threshold()
    gc.set_threshold(max(allocations, ALLOCATIONS) if allocations else 0, *older)
    try:
        yield
    finally:
        gc.set_threshold(allocations, *older)
