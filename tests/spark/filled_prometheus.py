"""A real Prometheus that holds what it is given, and its own API to compare with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.testbed.instance import free_port
from tests.testbed.waiting import wait_until


@dataclass(frozen=True, slots=True)
class FilledPrometheus:
    url: str

    def matrix(self, query: str, *, start: str, end: str, step: str) -> list[dict[str, Any]]:
        """Its own answer to a range query."""
        fields = urlencode({"query": query, "start": start, "end": end, "step": step})
        with urllib.request.urlopen(f"{self.url}/api/v1/query_range?{fields}", timeout=60) as answer:
            document = json.load(answer)
        result: list[dict[str, Any]] = document["data"]["result"]
        return result

    def vector(self, query: str) -> list[float]:
        """The values of its own answer to an instant query."""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?{urlencode({'query': query})}", timeout=60) as answer:
            document = json.load(answer)
        return [float(series["value"][1]) for series in document["data"]["result"]]


@contextmanager
def holding(
    openmetrics: Iterable[str], folder: Path, *, binary: str | Path = "prometheus", more: Sequence[str] = ()
) -> Iterator[FilledPrometheus]:
    """`openmetrics`: the lines of the exposition with their times, `# EOF` as the last one. `more`: arguments."""
    text = folder / "data.om"
    with text.open("w") as file:
        file.writelines(openmetrics)
    # As large as compaction makes them in time; for each block promtool reads the whole text again.
    blocks = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=744h"]
    subprocess.run([*blocks, "openmetrics", text, folder / "data"], check=True, stdout=subprocess.DEVNULL)
    with running(folder, "global: {}\n", binary=binary, more=more) as filled:
        yield filled


@contextmanager
def running(
    folder: Path, config: str, *, binary: str | Path = "prometheus", more: Sequence[str] = ()
) -> Iterator[FilledPrometheus]:
    """With what the folder's `data` holds, and what the configuration makes it scrape."""
    (folder / "prometheus.yaml").write_text(config)
    port = free_port("127.0.0.1")
    command = [
        str(binary),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y",
        # Nothing is added, so nothing need be compacted.
        "--storage.tsdb.min-block-duration=2h",
        "--storage.tsdb.max-block-duration=2h",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
        *more,
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_until_ready(f"http://127.0.0.1:{port}", process, folder / "log")
        yield FilledPrometheus(f"http://127.0.0.1:{port}")
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    def ready() -> bool:
        assert process.poll() is None, f"Prometheus did not start: {log.read_text()}"
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return True
        except (urllib.error.URLError, ConnectionError):
            return False

    wait_until(ready, what="Prometheus is ready", explain=log.read_text)
