"""A Spark driver in a process of its own, so that it can be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.spark.session import PATHS


@contextmanager
def driver(module: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the module as the leader of a process group, with its JVM in it. The end of the block kills the group."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": PATHS},
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # it has ended already
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
