"""`python -m examples.clickstream`: the job without and with Ballast. Exit code 0 only if all was as expected."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from examples.clickstream.acts import MOST_BEHIND_SECONDS, READS_ON, Look, Played, Stage
from examples.clickstream.cluster import (
    HERE,
    LABELS,
    NAMESPACE,
    PLAIN_NAMESPACE,
    RACK_MEGABITS,
    SYSTEM,
    TOLERATIONS,
    ZONE_MEGABITS,
    Submission,
    brokers,
    nodes,
)
from examples.demo import manifests
from examples.demo.installation import await_gating, install, keep_logs
from examples.demo.screen import Screen
from tests.testbed.testbed import Testbed

OUTPUT = Path(__file__).parents[2] / "build" / "clickstream"
MOST_ZONE_BYTES = 0.3
"""Of the bytes that the job sends across zones without Ballast, what it may still send with it."""
MOST_NEAR_RATIO = 0.5
"""Of the records, what may still go to partitions whose reader has stalled."""
LEAST_NEAR_RATIO = 0.9
"""Of the records, what must go there again after it has read on."""


@dataclass(frozen=True, slots=True)
class Found:
    alone: Look
    plain: Played
    near: Played

    def zone_bytes(self, played: Played) -> float:
        """Of the job, for each click: without Kafka's replication of the clicks."""
        return played.looked.zone_bytes_per_click - self.alone.zone_bytes_per_click

    @property
    def zone_ratio(self) -> float:
        return self.zone_bytes(self.near) / self.zone_bytes(self.plain)

    def near_ratios(self) -> tuple[float, float]:
        """Of the records, those written to near partitions: while their reader had stalled, and at the end."""
        watch, zone = self.near.watch, self.near.near_zone
        read_on = next(at for at, text in watch.marks if text == READS_ON)
        return watch.share(zone, before=read_on), watch.share(zone, before=watch.samples[-1].at)

    def failures(self) -> Iterator[str]:
        if self.zone_ratio > MOST_ZONE_BYTES:
            yield f"{self.zone_ratio:.0%} of the bytes across zones are left, not at most {MOST_ZONE_BYTES:.0%}"
        stalled, again = self.near_ratios()
        if stalled > MOST_NEAR_RATIO:
            yield f"{stalled:.0%} of the records went to the stalled reader, not at most {MOST_NEAR_RATIO:.0%}"
        if again < LEAST_NEAR_RATIO:
            yield f"{again:.0%} of the records came back to near partitions, not {LEAST_NEAR_RATIO:.0%}"
        for name, played in (("without", self.plain), ("with", self.near)):
            if played.looked.behind_seconds > MOST_BEHIND_SECONDS:
                yield f"{name} Ballast, the job was {played.looked.behind_seconds:.0f} s behind"
            if not played.exact:
                yield f"{name} Ballast, clicks and sink disagree: {played.sent} sent, {played.delivered} arrived"

    def summary(self) -> dict[str, object]:
        runs = {"without": self.plain, "with": self.near}
        return {
            "failures": list(self.failures()),
            "replication": asdict(self.alone),
            "jobZoneBytesPerClick": {name: self.zone_bytes(played) for name, played in runs.items()},
            "jobZoneBytesRatio": self.zone_ratio,
            "nearRatios": dict(zip(("stalled", "again"), self.near_ratios(), strict=True)),
            "runs": {
                name: {
                    "executorsByZone": dict(played.executors_by_zone),
                    **asdict(played.looked),
                    "sent": played.sent,
                    "delivered": played.delivered,
                    "different": played.distinct,
                    "balanced": played.balanced,
                }
                for name, played in runs.items()
            },
        }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m examples.clickstream", description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where summary.json and traffic.svg go")
    output: Path = parser.parse_args(arguments).output
    output.mkdir(parents=True, exist_ok=True)
    with Screen(Console()) as screen:
        found = _play(screen, output)
        (output / "summary.json").write_text(json.dumps(found.summary(), indent=2) + "\n")
        (output / "traffic.svg").write_text(found.near.watch.plot())
        screen.title(
            f"bytes of the job across zones, for each click: {found.zone_bytes(found.plain):,.0f} without Ballast, "
            f"{found.zone_bytes(found.near):,.0f} with it"
        )
        failures = list(found.failures())
        for failure in failures:
            screen.title(f"not as expected: {failure}")
    return 1 if failures else 0


def _play(screen: Screen, output: Path) -> Found:
    screen.title("a real control plane, a kubelet for seven nodes in two zones, two brokers of Kafka")
    testbed = Testbed(progress=screen.say)
    up = testbed.up(nodes=nodes(), network=True, rack_megabits=RACK_MEGABITS, zone_megabits=ZONE_MEGABITS)
    with tempfile.TemporaryDirectory(prefix="ballast-clicks-") as name, up:
        folder = Path(name)
        folder.chmod(0o755)
        try:
            with brokers(testbed, folder) as kafka:
                stage = Stage(testbed, screen, kafka.bootstrap)
                alone = stage.clicks_alone()
                screen.say(f"Kafka's replication of a click alone sends {alone}")
                screen.title("the job as Spark and kube-scheduler run it")
                plain = Submission(PLAIN_NAMESPACE, folder / "plain", kafka.bootstrap, ["--plain"])
                without = stage.play(plain, stall=False)
                screen.title("the job with placement, client.rack and routing")
                add_ballast(testbed)
                near = Submission(NAMESPACE, folder / "near", kafka.bootstrap, labels=LABELS)
                return Found(alone, without, stage.play(near, stall=True))
        finally:
            keep_logs(testbed, output / "logs")


def add_ballast(testbed: Testbed) -> None:
    """The operator, and a topology and a policy by which it places the job's executors."""
    install(testbed, node_selector=SYSTEM, tolerations=TOLERATIONS)
    testbed.create_namespace(NAMESPACE)
    testbed.apply(HERE / "topology.yaml", manifests.policy(testbed.prometheus_url, leveling=False))
    await_gating(testbed, NAMESPACE, labels=LABELS)


if __name__ == "__main__":
    sys.exit(main())
