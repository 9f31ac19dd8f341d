"""The program `ballast` on a machine whose wall clock is wrong: shifted_clock.py SECONDS ARGUMENT..."""

from __future__ import annotations

import sys
import time


def shift(seconds: float) -> None:
    """Let `time.time` be wrong by so much."""
    right = time.time
    time.time = lambda: right() + seconds


if __name__ == "__main__":
    shift(float(sys.argv.pop(1)))
    from ballast.cli.main import main

    main()
