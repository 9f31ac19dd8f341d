"""docs/metrics.md: every metric of the operator, as it is declared. `make generate` writes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from ballast.controller.telemetry import Telemetry

FILE = Path(__file__).parents[1] / "docs" / "metrics.md"
_TABLE = "\n| Metric | Type | Labels | Meaning |\n"
_ENDINGS = {"counter": "_total", "info": "_info"}
_LABELS_OF_INFO = {"ballast_build": ("version", "python")}


@dataclass(frozen=True, slots=True, order=True)
class Metric:
    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def row(self) -> str:
        labels = ", ".join(f"`{label}`" for label in self.labels)
        return f"| `{self.name}` | {self.kind} | {labels} | {self.meaning} |"


def metrics() -> list[Metric]:
    """By name, as queries have it."""
    declared = [each for each in vars(Telemetry(CollectorRegistry())).values() if isinstance(each, MetricWrapperBase)]
    return sorted(
        Metric(
            each._name + _ENDINGS.get(str(each._type), ""),
            str(each._type),
            _LABELS_OF_INFO.get(each._name, tuple(each._labelnames)),
            each._documentation,
        )
        for each in declared
    )


def rendered() -> str:
    """What belongs into the file: its own introduction, and the table below it."""
    introduction = FILE.read_text(encoding="utf-8").split(_TABLE)[0]
    return introduction + _TABLE + "|---|---|---|---|\n" + "".join(f"{metric.row}\n" for metric in metrics())


if __name__ == "__main__":
    FILE.write_text(rendered(), encoding="utf-8")
