"""Further commands inside a running container: exec probes, hooks."""

from __future__ import annotations

import asyncio
import contextlib
import signal

from tests.testbed.kubelet.attempts import Attempt

OUTPUT_LIMIT_BYTES = 16_384


async def capture(attempt: Attempt, argv: list[str], timeout_seconds: float) -> tuple[int, str]:
    """Run a command inside and return its exit code and output.

    Raises TimeoutError after killing it, ProcessLookupError when the container has ended.
    """
    process = await asyncio.create_subprocess_exec(
        *attempt.inside(argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout_seconds):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, output[-OUTPUT_LIMIT_BYTES:].decode(errors="replace")
