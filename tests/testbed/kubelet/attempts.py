"""One run of a container as the kubelet sees it: a shim process and the files that it leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]
LAUNCHER = Path(__file__).resolve().parent / "launch.py"
LOST_EXIT_CODE = 137


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended. `setup_error`: why its program never started."""

    exit_code: int
    signal: int
    started: float
    finished: float
    setup_error: str = ""


@dataclass(frozen=True, slots=True)
class Main:
    """The container's main process."""

    pid: int
    started: float


async def readable(descriptor: int) -> None:
    """Wait until reading from a descriptor wouldn't block; a pidfd is readable when its process has ended."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def process_ticks(pid: int) -> int | None:
    """When a living process started; None when there is none (a zombie counts as none)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])


def load(path: Path) -> Json | None:
    try:
        return dict(json.loads(path.read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


class Attempt:
    """The run in `folder`. Made by `start`, or found there after a restart of the kubelet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = int(folder.name)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def spec_file(self) -> Path:
        return self.folder / "spec.json"

    @property
    def main(self) -> Main | None:
        """The main process, once it has been started."""
        found = load(self.folder / "running.json")
        return Main(found["pid"], found["started"]) if found else None

    @property
    def spec(self) -> Json:
        return load(self.spec_file) or {}

    async def start(self, spec: Json) -> None:
        """Start the shim and wait until the program runs or couldn't be started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        paths = {name: str(self.folder / f"{name}.json") for name in ("shim", "running", "result")}
        self.spec_file.write_text(json.dumps(spec | paths))
        reader, writer = os.pipe()
        self._process = self._spawn(writer)
        os.close(writer)
        try:
            await readable(reader)
        finally:
            os.close(reader)

    def _spawn(self, output: int) -> subprocess.Popen[bytes]:
        with (self.folder / "shim.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), "run", str(self.spec_file)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
            )

    async def wait(self) -> Result:
        """Wait for the end of the shim, and say how the container ended."""
        shim = load(self.folder / "shim.json")
        if shim and process_ticks(shim["pid"]) == shim["ticks"]:
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(shim["pid"])
                try:
                    await readable(descriptor)
                finally:
                    os.close(descriptor)
        if self._process is not None:
            await asyncio.to_thread(self._process.wait)
        return self._result()

    def _result(self) -> Result:
        found = load(self.folder / "result.json")
        if found is None:
            begun = self.main.started if self.main else self.folder.stat().st_mtime
            said = (self.folder / "shim.log").read_text(errors="replace")[-1000:]
            return Result(LOST_EXIT_CODE, signal.SIGKILL, begun, begun, f"its shim ended without a result\n{said}")
        return Result(
            exit_code=found["exitCode"],
            signal=found["signal"],
            started=found["started"],
            finished=found["finished"],
            setup_error=found["setupError"],
        )

    def signal(self, number: int) -> None:
        """Send a signal to the main process, if it still is the one that was started."""
        found = load(self.folder / "running.json")
        if found and process_ticks(found["pid"]) == found["ticks"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found["pid"], number)

    def inside(self, argv: list[str]) -> list[str]:
        """The command line that runs `argv` inside this container. Raises ProcessLookupError when it has ended."""
        if (self.folder / "result.json").exists() or self.main is None:
            raise ProcessLookupError("the container is not running")
        launcher = [sys.executable, "-I", "-S", str(LAUNCHER), "exec", str(self.spec_file)]
        return [*launcher, str(self.main.pid), *argv]


def existing(folder: Path) -> list[Attempt]:
    """The runs found in a container's folder, oldest first."""
    if not folder.is_dir():
        return []
    return [Attempt(path) for path in sorted(folder.iterdir(), key=lambda path: int(path.name))]
