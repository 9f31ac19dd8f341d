"""Whether a watch is ever dead: an informer meets every fault, twenty times over, on a machine that is kept busy."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.report import Aim, Result, machine, write
from tests.apiserver import Fault
from tests.testbed.errors import TestbedError
from tests.unit.kube.trials import TIMING, Recovery, burners, recoveries

REPETITIONS = 20
BURNERS_PER_CORE = 4
LATE_SECONDS = 1.0
"""How much later than the allowance a watch may be opened again, since the informer's thread has to be run first."""


def run() -> Iterator[Result]:
    found: list[Recovery] = []
    recovered = 0
    with burners(BURNERS_PER_CORE * (os.cpu_count() or 1)), tempfile.TemporaryDirectory() as folder:
        for seed in range(REPETITIONS):
            try:
                found += recoveries(Path(folder), random.Random(seed))
                recovered += 1
            except TestbedError as error:
                print(f"seed {seed}: {error}", flush=True)
    case = f"{REPETITIONS} times every fault, {BURNERS_PER_CORE} busy processes a core"
    yield Result(case, "complete after every fault", recovered, "times", aim=Aim(REPETITIONS, at_least=True))
    allowed = TIMING.silent_seconds + LATE_SECONDS
    for fault in Fault:
        mine = [each for each in found if each.fault is fault]
        asked = max((each.asked_after_seconds for each in mine), default=float("nan"))
        complete = max((each.complete_after_seconds for each in mine), default=float("nan"))
        yield Result(fault.value, "until the watch is opened again, at most", asked, "s", aim=Aim(allowed))
        yield Result(fault.value, "until everything is known again, at most", complete, "s")


if __name__ == "__main__":
    at_start = machine()
    write("watching", list(run()), before=at_start)
