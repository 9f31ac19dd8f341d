"""The program `ballast`, which takes ever more memory once it gets SIGUSR1: growing.py ARGUMENT..."""

from __future__ import annotations

import signal
from typing import NoReturn

PIECE_BYTES = 1 << 20


def grow(number: int, frame: object) -> NoReturn:
    del number, frame
    kept = []
    while True:
        kept.append(b"x" * PIECE_BYTES)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, grow)
    from ballast.cli.main import main

    main()
