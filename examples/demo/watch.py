"""Looking at the nodes, the job and the machine all the time, next to what the demonstration does."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import requests

from examples.demo.figures import Figures
from examples.demo.machine import Machine, Use
from examples.demo.screen import NodeState, Screen, State
from examples.demo.streaming.running import RunningJob
from tests.testbed.errors import TestbedError
from tests.testbed.nodes import NodeSpec

_EVERY_SECONDS = 2.0


class Watch:
    """Shows the state every two seconds, and keeps how busy the machine is while scores count."""

    def __init__(self, screen: Screen, *, figures: Figures, specs: Sequence[NodeSpec], machine: Machine) -> None:
        self._screen, self._figures, self._specs, self._machine = screen, figures, specs, machine
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._counting = False
        self.job: RunningJob | None = None
        self.noisy: str | None = None
        self.move = ""
        self.uses: list[Use] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def count(self, *, scores: bool) -> None:
        """From now on scores count, or no longer do."""
        if scores:
            self._machine.forget()
        self._counting = scores

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            use = self._machine.look()
            if self._counting and use is not None:
                self.uses.append(use)
            try:
                self._screen.show(self._state(use))
            except (requests.RequestException, TestbedError, KeyError):
                # The next look is two seconds away; what matters is checked by the acts themselves.
                continue

    def _state(self, use: Use | None) -> State:
        scores, hits = self._scores(), self._figures.hits()
        executors = Counter(each.node for each in self.job.running_executors()) if self.job else Counter[str | None]()
        batches = self.job.batches() if self.job else []
        return State(
            nodes=[
                NodeState(
                    spec=spec,
                    score=scores.get(spec.name),
                    executors=executors[spec.name],
                    hits=hits.get(spec.name, (0, 0)),
                    noisy=spec.name == self.noisy,
                )
                for spec in self._specs
            ],
            machine=use,
            batch_seconds=batches[-1].seconds if batches else None,
            records=self.job.source.written if self.job else 0,
            move=self.move,
        )

    def _scores(self) -> dict[str, float]:
        """The operator's; before there is one, the same figure from Prometheus."""
        return self._figures.scores() or self._figures.latest()
