"""The program `ballast`, killed at one of its writes: killed.py AT before|after ARGUMENT…

The first write is 1; those of the lease, which come by the clock, are not counted. The kernel ends the process, so that
nothing is put in order: its lease, its connections and its Events stay as they are.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import threading
from typing import Any

from ballast.kube.client import Client


def kill_at(at: int, *, after: bool) -> None:
    """End this process at its write of this number, before or after the server has got it."""
    send, numbers, lock = Client._once, itertools.count(1), threading.Lock()

    def once(self: Client, request: Any, read: Any) -> Any:
        if request.method == "GET" or "/leases" in request.path:
            return send(self, request, read)
        with lock:
            fatal = next(numbers) == at
        if fatal and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send(self, request, read)
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Client._once = once  # type: ignore[method-assign]


if __name__ == "__main__":
    kill_at(int(sys.argv.pop(1)), after=sys.argv.pop(1) == "after")
    from ballast.cli.main import main

    main()
