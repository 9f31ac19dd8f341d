"""`python -m examples.sizing.trim FROM TO`: keep of a run of the example what `ballast size` reads, without paths."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_SETTINGS = ("spark.master", "spark.app.name", "spark.sql.files.minPartitionNum")
_METRICS = ("Executor Run Time", "Executor CPU Time", "JVM GC Time", "Disk Bytes Spilled", "Input Metrics")
_SHUFFLES = {
    "Shuffle Read Metrics": ("Remote Bytes Read", "Local Bytes Read", "Fetch Wait Time"),
    "Shuffle Write Metrics": ("Shuffle Bytes Written",),
}
_PROGRESS = ("id", "runId", "timestamp", "batchId", "numInputRows", "durationMs")
_GC = re.compile(
    r" Pause .*ms$|regions: |Concurrent Mark Cycle .*ms$|Version: |Using G1|Heap (Region Size|Max Capacity)"
)


def main(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    (log,) = (source / "event-log").iterdir()
    _write(target / "event-log.jsonl", _events(log.read_text(encoding="utf-8").splitlines()))
    _write(target / "progress.jsonl", _progress((source / "progress.jsonl").read_text(encoding="utf-8").splitlines()))
    _write(target / "gc.log", filter(_GC.search, (source / "gc.log").read_text(encoding="utf-8").splitlines()))


def _write(path: Path, lines: Iterator[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _progress(lines: list[str]) -> Iterator[str]:
    for line in lines:
        batch = json.loads(line)
        sources = [{"inputRowsPerSecond": each.get("inputRowsPerSecond")} for each in batch["sources"]]
        yield json.dumps({**_part(batch, _PROGRESS), "sources": sources})


def _events(lines: list[str]) -> Iterator[str]:
    for line in lines:
        event = json.loads(line)
        match event["Event"]:
            case "SparkListenerApplicationStart" | "SparkListenerApplicationEnd":
                yield json.dumps(_part(event, ("Event", "App Name", "Timestamp")))
            case "SparkListenerEnvironmentUpdate":
                java = _part(event["JVM Information"], ("Java Version",))
                settings = _part(event["Spark Properties"], _SETTINGS)
                yield json.dumps({"Event": event["Event"], "JVM Information": java, "Spark Properties": settings})
            case "SparkListenerExecutorAdded":
                cores = _part(event["Executor Info"], ("Total Cores",))
                yield json.dumps({**_part(event, ("Event", "Executor ID")), "Executor Info": cores})
            case "SparkListenerStageCompleted":
                info = _part(event["Stage Info"], ("Stage ID", "Stage Name", "Parent IDs"))
                info["Stage Name"] = re.sub(r"/\S*/", "", info["Stage Name"])
                yield json.dumps({"Event": event["Event"], "Stage Info": info})
            case "SparkListenerTaskEnd":
                yield json.dumps(_task(event))


def _task(event: Mapping[str, Any]) -> dict[str, Any]:
    metrics = event["Task Metrics"]
    shuffles = {name: _part(metrics[name], kept) for name, kept in _SHUFFLES.items()}
    return {
        **_part(event, ("Event", "Stage ID", "Task End Reason")),
        "Task Info": _part(event["Task Info"], ("Executor ID", "Launch Time", "Finish Time")),
        "Task Metrics": {**_part(metrics, _METRICS), **shuffles},
    }


def _part(of: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: of[name] for name in names if name in of}


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
