"""What stays near on limited links: with `client.rack` alone, placement alone, routing alone, and all three.

A stream reads from a real Kafka, shuffles into state and writes to Kafka. Executors and brokers are processes on nodes
whose racks and zones have limited links; the links' own counters tell what crossed. Brokers that replicate to each
other would be counted, too: the topic that is written to has one replica.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from kafka.admin import KafkaAdminClient
from pydantic import TypeAdapter

from ballast.cli.picture.exhibits import write_pngs
from benchmarks.report import FOLDER, Aim, Baseline, Result, machine, write
from benchmarks.routed.backing_off import ENDED_AT, RESUMED_AT, STOPPED_AT, Moment, picture, share_near, watched
from benchmarks.routed.links import EXECUTORS, SPREAD, Links, links, placed
from benchmarks.routed.piped import IN, OUT, PARTITIONS, RECORDS, Run, Settings
from tests.spark.session import PATHS
from tests.testbed.kafka import jars

ROUNDS, WARM_UP_ROUNDS = 4, 1
NOTHING, CLIENT_RACK, ROUTING, BOTH = (False, False), (True, False), (False, True), (True, True)
NAMES = {
    (False, NOTHING): "nothing",
    (False, CLIENT_RACK): "client.rack alone",
    (False, ROUTING): "routing alone",
    (False, BOTH): "client.rack and routing",
    (True, NOTHING): "placement alone",
    (True, BOTH): "all three",
}


def runs(at: Links, workers: Sequence[str], ways: Sequence[tuple[bool, bool]], folder: Path) -> list[Run]:
    """With the executors on these nodes."""
    with at.spark(workers, folder) as master:
        settings = Settings(
            master=master,
            address=at.network.control_address,
            bootstrap=at.brokers.bootstrap,
            jars=str(jars("kafka-connector")),
            instance=at.network.instance.number,
            executors=EXECUTORS,
            ways=tuple(ways),
            rounds=ROUNDS if ways else 0,
            fill=not ways,
        )
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.routed.piped", json.dumps(asdict(settings))],
            env={**os.environ, "PYTHONPATH": PATHS},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    found = [TypeAdapter(Run).validate_json(line) for line in done.stdout.splitlines()]
    return [run for run in found if run.round >= WARM_UP_ROUNDS]


def measured(folder: Path) -> tuple[dict[str, list[Run]], list[Moment]]:
    near = placed()
    with links(folder) as at:
        with KafkaAdminClient(bootstrap_servers=at.brokers.bootstrap) as admin:
            admin.create_topics({IN: {"num_partitions": PARTITIONS, "replication_factor": len(at.brokers.racks)}})
            admin.create_topics({OUT: {"num_partitions": PARTITIONS, "replication_factor": 1}})
            admin.wait_for_topics([IN, OUT], timeout_ms=30_000)
        runs(at, SPREAD, (), folder / "fill")
        spread = runs(at, SPREAD, (NOTHING, CLIENT_RACK, ROUTING, BOTH), folder / "spread")
        together = runs(at, near, (NOTHING, BOTH), folder / "together")
        moments = watched(at, near, folder / "watched")
    found: dict[str, list[Run]] = {}
    for is_near, several in ((False, spread), (True, together)):
        for run in several:
            found.setdefault(NAMES[is_near, (run.client_rack, run.routed)], []).append(run)
    return found, moments


def results(found: dict[str, list[Run]]) -> list[Result]:
    def median(case: str, field: str) -> float:
        return float(statistics.median(getattr(run, field) for run in found[case]))

    told: list[Result] = []
    for case in NAMES.values():
        for level in ("racks", "zones"):
            before = Baseline("nothing", median("nothing", f"{level}_bytes") / 2**20)
            crossed = median(case, f"{level}_bytes") / 2**20
            aim = Aim(0.3, of_ratio=True) if case == "all three" else None
            told.append(Result(case, f"across {level}", crossed, "MiB", before, aim))
        rate = RECORDS / median(case, "seconds")
        told.append(
            Result(case, "records a second", rate, "1/s", Baseline("nothing", RECORDS / median("nothing", "seconds")))
        )
    return told


def back_off(moments: list[Moment]) -> list[Result]:
    """The first seconds of each part belong to the change."""
    case = "readers of the near partitions stop, and go on"
    begin, stop, resume, end = 5.0, STOPPED_AT, RESUMED_AT, ENDED_AT
    return [
        Result(case, "near before", share_near(moments, begin, stop), "share", aim=Aim(0.99, at_least=True)),
        Result(case, "near while they stop", share_near(moments, resume - 10.0, resume), "share", aim=Aim(0.5)),
        Result(case, "near afterwards", share_near(moments, end - 10.0, end), "share", aim=Aim(0.99, at_least=True)),
    ]


if __name__ == "__main__":
    at_start = machine()
    with tempfile.TemporaryDirectory() as place:
        crossing, over_time = measured(Path(place))
    write("routing-locality", [*results(crossing), *back_off(over_time)], before=at_start)
    print(*write_pngs([picture(over_time)], FOLDER))
