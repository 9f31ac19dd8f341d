"""A streaming job that was submitted to the testbed: its executors, its batches, its end."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from examples.demo.streaming.application import Job
from examples.demo.streaming.batches import Batch, read_batches
from examples.demo.streaming.records import Comparison, Source, arrived, compare
from tests.testbed.errors import TestbedError
from tests.testbed.testbed import Testbed
from tests.testbed.waiting import wait_until

_STARTED_SECONDS = 300.0
_DRAINED_SECONDS = 90.0
_ENDED_SECONDS = 60.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExecutorPod:
    """An executor as the API server has it."""

    name: str
    uid: str
    phase: str
    node: str | None
    gated: bool
    leaving: bool
    document: Json

    @classmethod
    def of(cls, pod: Json) -> Self:
        return cls(
            name=pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            phase=pod["status"].get("phase", "Pending"),
            node=pod["spec"].get("nodeName"),
            gated=bool(pod["spec"].get("schedulingGates")),
            leaving="deletionTimestamp" in pod["metadata"],
            document=pod,
        )

    @property
    def running(self) -> bool:
        return self.phase == "Running" and not self.leaving


@dataclass(slots=True)
class RunningJob:
    """A job that was submitted, with the source that feeds it."""

    testbed: Testbed
    job: Job
    source: Source

    @classmethod
    def submit(cls, testbed: Testbed, job: Job) -> Self:
        """Start the driver; the namespace must exist. Nothing flows before `feed`."""
        shutil.rmtree(job.folder, ignore_errors=True)
        for name in ("source", "sink"):
            (job.folder / name).mkdir(parents=True)
        testbed.apply(*job.manifests())
        return cls(testbed, job, Source(job.folder / "source", job.stream))

    def feed(self) -> None:
        """Let records flow, once the query runs: what piles up before would make the first batch a long one."""
        self._await((self.job.folder / "started").exists, "the query runs", timeout_seconds=_STARTED_SECONDS)
        self.source.start()

    @property
    def sink(self) -> Path:
        return self.job.folder / "sink"

    def executors(self) -> list[ExecutorPod]:
        """Those that have not ended, in the order of their names."""
        path = f"/api/v1/namespaces/{self.job.namespace}/pods?labelSelector=spark-app-selector%3D{self.job.application}"
        pods = [pod for pod in self.testbed.api.get(path)["items"] if _role(pod) == "executor"]
        found = [ExecutorPod.of(pod) for pod in pods]
        return sorted((e for e in found if e.phase in ("Pending", "Running")), key=lambda e: (len(e.name), e.name))

    def running_executors(self) -> list[ExecutorPod]:
        return [executor for executor in self.executors() if executor.running]

    def batches(self) -> list[Batch]:
        return read_batches(self.job.folder / "progress.jsonl")

    def await_executors(self, count: int | None = None, *, timeout_seconds: float = _STARTED_SECONDS) -> None:
        """Until so many run, all of the job's by default."""
        wanted = self.job.executors if count is None else count
        self._await(
            lambda: len(self.running_executors()) == wanted, f"{wanted} executors run", timeout_seconds=timeout_seconds
        )

    def await_batches(self, count: int, *, timeout_seconds: float = _STARTED_SECONDS) -> None:
        """Until so many more batches have ended."""
        before = len(self.batches())
        self._await(
            lambda: len(self.batches()) >= before + count, f"{count} more batches end", timeout_seconds=timeout_seconds
        )

    def await_placed(self, count: int, *, timeout_seconds: float = _STARTED_SECONDS) -> list[ExecutorPod]:
        """So many executors, once all of them have a node; whether they run already does not matter."""

        def placed() -> list[ExecutorPod] | None:
            found = [executor for executor in self.executors() if executor.node and not executor.leaving]
            return found if len(found) == count else None

        self._await(placed, f"{count} executors have a node", timeout_seconds=timeout_seconds)
        return placed() or self.executors()

    def compared_so_far(self) -> Comparison:
        """Every record written until now, compared once all of them had time to come out; the job goes on."""
        written = self.source.written
        self._await(
            lambda: arrived(self.sink, below=written) >= written,
            "the sink has caught up",
            timeout_seconds=_DRAINED_SECONDS,
        )
        return compare(self.job.stream, written=written, sink=self.sink, below=written)

    def finish(self) -> Comparison:
        """Let everything written pass through, end the application, and compare source and sink."""
        self.source.close()
        # What has not come out by then is lost, which the comparison says.
        with contextlib.suppress(TestbedError):
            self._await(self._drained, "the sink has every record", timeout_seconds=_DRAINED_SECONDS)
        self.stop()
        return compare(self.job.stream, written=self.source.written, sink=self.sink)

    def _drained(self) -> bool:
        return arrived(self.sink) >= self.source.written

    def stop(self) -> None:
        """End the application, whatever it is doing, and forget its pods."""
        self.source.halt()
        (self.job.folder / "stop").touch()
        try:
            self._await(self._driver_ended, "the driver has ended", timeout_seconds=_ENDED_SECONDS)
        finally:
            where = f"--namespace={self.job.namespace}"
            selector = f"--selector=spark-app-selector={self.job.application}"
            self.testbed.kubectl("delete", "pods", selector, where, "--grace-period=5", "--wait=false")
        self._await(lambda: not self.executors(), "the executors have gone", timeout_seconds=_ENDED_SECONDS)

    def abandon(self) -> None:
        """End it at once, whatever becomes of its records."""
        self.source.halt()
        where, selector = f"--namespace={self.job.namespace}", f"--selector=spark-app-selector={self.job.application}"
        self.testbed.kubectl("delete", "pods", selector, where, "--grace-period=1", "--wait=false")

    def _driver_ended(self) -> bool:
        return self._driver_phase() in ("Succeeded", "Failed", "")

    def _driver_phase(self) -> str:
        where = f"--namespace={self.job.namespace}"
        found = self.testbed.kubectl("get", "pod", self.job.driver, where, "--ignore-not-found", "--output=json")
        return str(json.loads(found)["status"].get("phase")) if found.strip() else ""

    def _await(self, condition: Callable[[], object], what: str, *, timeout_seconds: float) -> None:
        wait_until(condition, what=what, timeout_seconds=timeout_seconds, poll_seconds=0.5, explain=self._explanation)

    def _explanation(self) -> str:
        where = f"--namespace={self.job.namespace}"
        log = self.testbed.kubectl("logs", self.job.driver, where, "--tail=30", "--ignore-errors")
        return (
            f"driver: {self._driver_phase()}; executors: {[(e.name, e.phase, e.node) for e in self.executors()]}\n{log}"
        )


def _role(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"].get("labels", {}).get("spark-role", ""))
