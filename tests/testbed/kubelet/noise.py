"""Burns CPU to a given level: its own program, standard library only.

`--cores 0.3` keeps the average at 0.3 of a core, as far as the cgroup lets it: what the process was denied
is not made up for later.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time

PERIOD_SECONDS = 0.05


def burn(cores: float) -> None:
    """Use `cores` (at most 1) of a core for ever: spin for that share of each period, sleep for the rest."""
    due = time.monotonic()
    while True:
        spin_until = time.process_time() + cores * PERIOD_SECONDS
        due = max(due + PERIOD_SECONDS, time.monotonic())
        while time.process_time() < spin_until and time.monotonic() < due + PERIOD_SECONDS:
            pass
        time.sleep(max(0.0, due - time.monotonic()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Burns CPU to a given level.")
    parser.add_argument("--cores", type=float, required=True)
    left: float = parser.parse_args().cores
    if left <= 0:
        parser.error(f"--cores must be above 0, not {left}")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while left > 1:
        if os.fork() == 0:
            burn(1.0)
        left -= 1
    print("burning", file=sys.stderr, flush=True)
    burn(left)


if __name__ == "__main__":
    main()
