"""The program `ballast`, killed at one of its writes: killed.py PATTERN NUMBER before|after ARGUMENT…

Counted are writes whose method, path and body the pattern is found in; the first is 1. The kernel ends the process, so
that nothing is put in order: its lease, its connections and its Events stay as they are.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import sys
import threading
from typing import Any

from ballast.kube.client import Client


def kill_at(pattern: str, number: int, *, after: bool) -> None:
    """End this process at that write, before or after the server has got it."""
    send, numbers, lock = Client._once, itertools.count(1), threading.Lock()

    def once(self: Client, request: Any, read: Any) -> Any:
        words = f"{request.method} {request.path.partition('?')[0]} {json.dumps(request.body)}"
        if request.method == "GET" or not re.search(pattern, words):
            return send(self, request, read)
        with lock:
            fatal = next(numbers) == number
        if fatal and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = send(self, request, read)
        if fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Client._once = once  # type: ignore[method-assign]


if __name__ == "__main__":
    kill_at(sys.argv.pop(1), int(sys.argv.pop(1)), after=sys.argv.pop(1) == "after")
    from ballast.cli.main import main

    main()
