from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

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


QUANTITY = st.sampled_from([0, "1n", "1", 1000, "64Ki", "1E", "9E"])
NUMBER = st.sampled_from([1, 2, 7, 8, 997, 1_000_000])
LATENCY = st.sampled_from(["1us", "8ms", "1h"])


def given_or_not(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


STAGE = given_or_not(
    latency=LATENCY,
    parallelism=NUMBER,
    outputPercent=st.sampled_from([0, 1, 100, 100_000_000]),
    remoteRateLimit=QUANTITY,
)
SIZING = given_or_not(
    goal=st.sampled_from(["Throughput", "Latency", "Memory", "Cost"]),
    recordsPerSecond=QUANTITY,
    recordBytes=QUANTITY,
    pendingPercent=st.sampled_from([100, 10_000]),
    source=given_or_not(brokers=NUMBER, partitions=NUMBER, maxFetch=QUANTITY),
    machine=given_or_not(count=NUMBER, cores=NUMBER, memory=QUANTITY),
    stages=st.lists(STAGE, max_size=3).map(lambda found: [{"component": f"s{n}", **e} for n, e in enumerate(found)]),
)
BATCH = given_or_not(batchTime=st.sampled_from(["1ms", "1h"])) | given_or_not(batchRecords=QUANTITY)


@given(SIZING, BATCH)
def test_anything_that_the_api_server_admits_gives_a_status(sizing: dict[str, Any], batch: dict[str, Any]) -> None:
    """A tenant writes spec.sizing: no value of it may end the operator's pass."""
    told = sizing_status(Sizing.model_validate({**sizing, **batch}))
    assert told is None or told[0].to_dict()


def test_steps_that_multiply_records_beyond_all_numbers_give_a_status() -> None:
    """Any user may declare them, and the operator works out the status."""
    steps = [{"component": f"c{number}", "latency": "1h", "outputPercent": 100_000_000} for number in range(50)]
    for more in ({"recordsPerSecond": "9E"}, {"batchRecords": "9E", "recordBytes": "9E"}):
        machine = {"machine": {"count": 4, "cores": 4, "memory": "9E"}}
        told = sizing_status(Sizing.model_validate({"pendingPercent": 10_000, "stages": steps, **machine, **more}))
        assert told is not None
