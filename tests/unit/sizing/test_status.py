from __future__ import annotations

from ballast.api.topology_sizing import Sizing
from ballast.api.topology_status import SizingVariable
from ballast.sizing.facts import Facts
from ballast.sizing.recommendation import recommend
from ballast.sizing.status import in_status, sizing_status
from tests.unit.sizing.test_variables import NOTES


def test_the_status_holds_the_variables_the_configuration_and_the_warnings() -> None:
    told = sizing_status(Sizing.model_validate(NOTES))
    assert told is not None
    status, headline = told
    assert headline == "Run 4 executors of 4 cores: batches of 1600 records pass 2000 records/s."
    assert status.bottleneck.startswith("CPU at wukong: by its declared latency")
    assert status.spark_conf["spark.executor.instances"] == "4"
    assert status.warnings == ("sourceTasks: declared 4 (stage spout), but the formula gives 16.",)
    formula = "batchSeconds ÷ recordSeconds × parallelism"
    assert SizingVariable(name="batchRecords", value="1600 records", formula=formula, origin="Declared") in (
        status.variables
    )


def test_a_goal_alone_sizes_nothing() -> None:
    assert sizing_status(Sizing()) is None
    assert sizing_status(Sizing.model_validate({"goal": "Latency"})) is None


def test_an_unknown_bottleneck_says_so() -> None:
    status = in_status(recommend(Facts(Sizing.model_validate({"recordBytes": 10}))))
    assert status.bottleneck.startswith("nothing is declared or measured")


def test_a_status_fits_into_its_schema() -> None:
    """Every field that may be set at once."""
    everything = {
        **NOTES,
        "goal": "Cost",
        "recordsPerSecond": 1e6,
        "source": {"brokers": 4, "partitions": 17, "maxFetch": 10},
        "machine": {"count": 5, "cores": 16, "memory": "512Gi"},
    }
    everything["recordsPerSecond"] = "1M"
    told = sizing_status(Sizing.model_validate(everything))
    assert told is not None
    assert len(told[0].variables) <= 64
    assert len(told[0].warnings) > 3
