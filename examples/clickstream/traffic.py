"""What is measured while clicks flow, second by second, and its plot."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from kafka.admin import KafkaAdminClient

from examples.clickstream.topics import ends, in_background, lags
from examples.demo.plots import Frame, Mark, Point, Size
from tests.testbed.network import Crossed
from tests.testbed.testbed import Testbed

_EVERY_SECONDS = 1.0
_SMOOTHED = 4
"""Samples over which rates are taken: longer than the time between micro-batches."""
_SETTLED_SECONDS = 12.0
_SIZE = Size(760.0, 130.0, ticks=12)
_STYLE = """
svg{background:#fff;font:11px sans-serif}.grid{stroke:#ddd}.tick,.mark{fill:#555;font-size:10px}
line.mark{stroke:#888;stroke-dasharray:3 3}polyline{fill:none;stroke-width:2}
polyline.hot{stroke:#c0392b}text.hot{fill:#c0392b}polyline.cold{stroke:#2471a3}text.cold{fill:#2471a3}
"""


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    written: Mapping[str, int]
    """Records in the sink so far, by the zone of their partition's leader."""
    lag: Mapping[str, int]
    """Of the group that reads the sink, by zone."""
    crossed: Crossed


@dataclass(slots=True)
class Watch:
    """Samples of one run. `partitions`: of the sink, by zone."""

    testbed: Testbed
    bootstrap: str
    topic: str
    partitions: Mapping[str, Sequence[int]]
    samples: list[Sample] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[Self]:
        with in_background("watch", self._run):
            yield self

    def mark(self, text: str) -> None:
        self.marks.append((time.time(), text))

    def _run(self, stop: threading.Event) -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            while not stop.wait(_EVERY_SECONDS):
                at_end = ends(admin, self.topic)
                behind = lags(admin, self.topic, at_end)
                self.samples.append(
                    Sample(time.time(), self._by_zone(at_end), self._by_zone(behind), self.testbed.crossed())
                )

    def _by_zone(self, values: Mapping[int, int]) -> dict[str, int]:
        return {zone: sum(values.get(part, 0) for part in parts) for zone, parts in self.partitions.items()}

    def share(self, zone: str, *, before: float) -> float:
        """Of the records written in the last `_SETTLED_SECONDS` before a time, those into the zone."""
        span = [sample for sample in self.samples if before - _SETTLED_SECONDS <= sample.at < before]
        found = {each: span[-1].written[each] - span[0].written[each] for each in self.partitions}
        return found[zone] / max(sum(found.values()), 1)

    def plot(self) -> str:
        """Records a second into each zone's partitions."""
        rates = {zone: list(self._rates(zone)) for zone in self.partitions}
        top = max((value for points in rates.values() for _, value in points), default=1.0)
        frame = Frame(self.samples[0].at, self.samples[-1].at, top, self.marks, _SIZE)
        drawn = [f"<style>{_STYLE}</style>", *frame.axes("records a second into each zone"), *frame.flags()]
        for style, (zone, points) in zip(("hot", "cold"), sorted(rates.items()), strict=True):
            drawn += _line(frame, points, name=zone, style=style)
        svg = frame.svg(drawn, "Records a second into the partitions of each zone, over time")
        return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)

    def _rates(self, zone: str) -> Iterable[Point]:
        for before, after in zip(self.samples, self.samples[_SMOOTHED:], strict=False):
            yield after.at, (after.written[zone] - before.written[zone]) / (after.at - before.at)


def _line(frame: Frame, points: Sequence[Point], *, name: str, style: str) -> Iterable[str]:
    path = " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in points)
    x, y = frame.x(points[-1][0]), frame.y(points[-1][1])
    yield f'<polyline class="{style}" points="{path}"/>'
    yield f'<text class="{style}" x="{x + 6:.1f}" y="{y + 4:.1f}">{name}</text>'
