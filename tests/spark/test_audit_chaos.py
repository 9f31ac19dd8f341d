"""The audit of real streams from Kafka to Kafka whose executors are killed and decommissioned."""

from __future__ import annotations

from collections import Counter

import pytest

from ballast.spark.audit.verdict import Status
from tests.spark import executor_chaos
from tests.spark.audited_job import DROPPED, LEAKY, SOUND
from tests.spark.executor_chaos import Outcome

pytestmark = pytest.mark.soak
TROUBLES = 2
SEED = 2
"""One executor is killed, then one decommissioned."""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return executor_chaos.run(tmp_path_factory.mktemp("chaos"), seconds=0.0, least=TROUBLES, seed=SEED)


def test_the_ledger_and_a_count_without_spark_agree_that_no_record_is_lost_or_doubled(outcome: Outcome) -> None:
    assert outcome.troubles.keys() == {"killed", "decommissioned"}
    assert {verdict.status for verdict in outcome.verdicts[SOUND]} == {Status.BALANCED}
    assert sum(verdict.records for verdict in outcome.verdicts[SOUND]) == outcome.produced
    counted = outcome.counted[SOUND]
    assert counted.batches_of.keys() == set(range(outcome.produced))
    assert {len(batches) for batches in counted.batches_of.values()} == {1}
    assert counted.clicks_of == outcome.clicks_of_users()


def test_the_ledger_and_the_count_agree_on_the_one_record_that_a_sink_drops(outcome: Outcome) -> None:
    assert set(range(outcome.produced)) - outcome.counted[LEAKY].batches_of.keys() == {DROPPED}
    assert Counter(verdict.status for verdict in outcome.verdicts[LEAKY])[Status.UNBALANCED] == 1
    (bad,) = [verdict for verdict in outcome.verdicts[LEAKY] if verdict.status is not Status.BALANCED]
    (gap,) = bad.gaps
    assert (gap.stage, gap.expected.count - (gap.consumed.count if gap.consumed else 0)) == ("leaky: delivered", 1)
