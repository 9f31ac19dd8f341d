"""Scenarios as what is run in: small enough to travel with the task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ballast.errors import InvalidField
from ballast.simulation.scenario import Scenario
from ballast.simulation.trial import ScenarioTrial
from ballast.spark.backtest.cases import Run, Window, digest
from ballast.spark.backtest.task import TOLD, told

Batches = Iterator[pa.RecordBatch]


class Scenarios:
    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        """Raises InvalidField for two of one name."""
        self._documents = {each.name: each.to_dict() for each in scenarios}
        if len(self._documents) < len(scenarios):
            names = [each.name for each in scenarios]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidField("--scenario", twice, "two scenarios have this name: rename one")
        self.left_out: Mapping[str, str] = {}
        self.windows = tuple(
            Window(each.name, digest("Scenario", self._documents[each.name]["spec"]), each.spec.seed)
            for each in scenarios
        )

    def told(self, spark: SparkSession, runs: Sequence[Run]) -> DataFrame:
        needed = {run.case.window for run in runs}
        documents = {name: document for name, document in self._documents.items() if name in needed}
        tasks = spark.range(0, len(runs), 1, len(runs))
        return tasks.mapInArrow(_task(list(runs), documents), TOLD)


def _task(runs: list[Run], documents: Mapping[str, Any]) -> Callable[[Batches], Batches]:
    def task(batches: Batches) -> Batches:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                trial = ScenarioTrial(Scenario.parse(documents[runs[index].case.window]))
                yield told(runs[index], trial)

    return task
