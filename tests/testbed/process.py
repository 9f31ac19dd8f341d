"""Starting the parts of a testbed so that they can be watched, explained and found again."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.testbed.errors import TestbedError, log_tail
from tests.testbed.instance import Instance
from tests.testbed.manifest import Part
from tests.testbed.procfs import MARKER_VARIABLE, identify
from tests.testbed.waiting import wait_until

Result = TypeVar("Result")
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Running:
    """A started part; it leads its own process group."""

    part: Part
    popen: subprocess.Popen[bytes]

    def is_alive(self) -> bool:
        return self.popen.poll() is None

    def wait_for(self, condition: Callable[[], Result], *, what: str, timeout_seconds: float = 60.0) -> Result:
        """The first truthy result; TestbedError with the end of the part's log when it died or was late."""

        def checked() -> Result:
            if not self.is_alive():
                code = self.popen.returncode
                raise TestbedError(f"{self.part.name} ended with {code}\n{log_tail(self.part.log)}")
            return condition()

        title = f"{self.part.name}: {what}"
        return wait_until(checked, what=title, timeout_seconds=timeout_seconds, explain=lambda: log_tail(self.part.log))


@dataclass(slots=True)
class Supervisor:
    """Starts parts of one testbed and reaps those that have ended."""

    instance: Instance
    running: list[Running] = field(default_factory=list)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> Running:
        """Run `command` in the background with output to the testbed's `logs/NAME.log`, and record it."""
        log = self.instance.folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        mark = {MARKER_VARIABLE: str(self.instance.folder)}
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory or self.instance.folder,
                env={**os.environ, **(environment or {}), **mark},
                start_new_session=True,
            )
        started = Running(Part(name, identify(popen.pid), log), popen)
        self.running.append(started)
        self.instance.manifest.record_part(started.part)
        return started

    def start_module(self, name: str, module: str, *arguments: str) -> Running:
        """Run a Python module of this repository, with this interpreter."""
        return self.start(
            name,
            [sys.executable, "-u", "-m", module, *arguments],
            environment={"PYTHONPATH": f"{REPOSITORY / 'operator'}:{REPOSITORY}"},
            directory=REPOSITORY,
        )

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Kill the part of that name, as if its machine had gone, and start it again after the block."""
        (killed,) = (one for one in self.running if one.part.name == name)
        killed.part.process.send_to_group(signal.SIGKILL)
        killed.popen.wait()
        self.running.remove(killed)
        try:
            yield
        finally:
            self.start(name, list(killed.popen.args))  # type: ignore[arg-type]  # as `start` gave them

    def reap(self) -> None:
        """Collect the exit codes of parts that were ended; to be called after tearing down."""
        for one in self.running:
            one.popen.wait()
        self.running.clear()
