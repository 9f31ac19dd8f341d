"""Four hours of data that say everything: gauges, a counter with a reset, gaps, odd values and odd labels."""

from __future__ import annotations

import random
from collections.abc import Iterator

START = 1_767_225_600
"""2026-01-01T00:00:00Z."""
EVERY_SECONDS = 15
END = START + 4 * 3600 - EVERY_SECONDS
ODD_VALUES = ("NaN", "+Inf", "-Inf", "1e-300", "5e-324", "-0", "1.7976931348623157e308", "123456789012345680")
ODD_LABEL = 'a"b},\\{[]] é'


def openmetrics() -> Iterator[str]:
    for line in (*_gauges(), *_counters(), *_odd(), "# EOF"):
        yield f"{line}\n"


def _gauges() -> Iterator[str]:
    chance = random.Random(2)
    yield "# TYPE load gauge"
    for pod in range(8):
        node = f',node="n{pod % 3}"' if pod != 7 else ""
        for second in range(START, END + 1, EVERY_SECONDS):
            if pod == 5 and START + 3600 <= second < START + 7200:  # away for an hour
                continue
            yield f'load{{pod="p{pod}"{node}}} {chance.random() * 100!r} {second}'


def _counters() -> Iterator[str]:
    chance = random.Random(3)
    yield "# TYPE records counter"
    for pod in range(3):
        count = 0.0
        for at, second in enumerate(range(START, END + 1, EVERY_SECONDS)):
            count = 0.0 if at == 500 else count + chance.random()
            yield f'records_total{{pod="p{pod}"}} {count!r} {second}'


def _odd() -> Iterator[str]:
    yield "# TYPE odd gauge"
    label = ODD_LABEL.replace("\\", "\\\\").replace('"', '\\"')
    for at, value in enumerate(ODD_VALUES):
        yield f'odd{{label="{label}"}} {value} {START + at * EVERY_SECONDS}'
