from __future__ import annotations

from dataclasses import replace

import pytest

from ballast.spark.audit.verdict import Entry, Status, Sum, Verdict, verdicts

A, B, C, D = 0b0001, 0b0010, 0b0100, 0b1000
"""The edges to noah, shem, ham and abe in the walk-through of Storm's acker."""


def of(*ids: int) -> Sum:
    total = Sum()
    for each in ids:
        total = total.plus(Sum(1, each))
    return total


def entry(
    stage: str, *, after: tuple[str, ...] = (), consumed: Sum, emitted: Sum, batch: int = 0, recorded_ms: int = 0
) -> Entry:
    return Entry(
        query="q", batch=batch, stage=stage, after=after, consumed=consumed, emitted=emitted, recorded_ms=recorded_ms
    )


SPOUT = entry("spout", consumed=of(A), emitted=of(A))
BOLT_0 = entry("bolt-0", after=("spout",), consumed=of(A), emitted=of(B, C))
SHEM = entry("bolt-1", after=("bolt-0",), consumed=of(B), emitted=of(D))
BOLT_1 = entry("bolt-1", after=("bolt-0",), consumed=of(B, C), emitted=of(D))
BOLT_2 = entry("bolt-2", after=("bolt-1",), consumed=of(D), emitted=of())
ABE_TO_COME = entry("bolt-2", after=("bolt-1",), consumed=of(), emitted=of())
SILENT = (entry("bolt-0", after=("spout",), consumed=of(), emitted=of()),)


def judged(*entries: Entry, now_ms: int = 60_000, timeout_ms: int = 60_000) -> list[Verdict]:
    return verdicts(entries, now_ms=now_ms, timeout_ms=timeout_ms)


@pytest.mark.parametrize(
    "acked",
    [
        (SPOUT, *SILENT),
        (SPOUT, BOLT_0, entry("bolt-1", after=("bolt-0",), consumed=of(), emitted=of())),
        (SPOUT, BOLT_0, SHEM, ABE_TO_COME),
        (SPOUT, BOLT_0, BOLT_1, ABE_TO_COME),
    ],
    ids=["noah: a", "noah: b^c", "noah: c^d", "noah: d"],
)
def test_each_step_of_the_acker_s_walk_through_is_unbalanced_before_its_end(acked: tuple[Entry, ...]) -> None:
    assert judged(*acked)[0].status is Status.UNBALANCED


def test_the_end_of_the_acker_s_walk_through_is_balanced() -> None:
    assert judged(SPOUT, BOLT_0, BOLT_1, BOLT_2)[0].status is Status.BALANCED


def test_a_lost_record_is_named_by_its_hash() -> None:
    (verdict,) = judged(SPOUT, BOLT_0, SHEM, BOLT_2)
    assert verdict.status is Status.UNBALANCED
    assert [str(gap) for gap in verdict.gaps] == [
        f"bolt-0 emitted 2, bolt-1 consumed 1: one missing, whose id has xxhash64 {C}"
    ]


def test_a_record_twice_is_found_although_twice_two_copies_cancel_in_the_xor() -> None:
    twice = replace(BOLT_2, consumed=of(D, D, D))
    (gap,) = judged(SPOUT, BOLT_0, BOLT_1, twice)[0].gaps
    assert (gap.difference, str(gap)) == (0, "bolt-1 emitted 1, bolt-2 consumed 3: 2 too many")


def test_a_record_that_became_another_is_found_although_the_counts_agree() -> None:
    (gap,) = judged(SPOUT, BOLT_0, BOLT_1, replace(BOLT_2, consumed=of(C)))[0].gaps
    assert str(gap) == "bolt-1 emitted 1, bolt-2 consumed 1, with other ids"


def test_a_stage_after_two_consumes_what_both_emitted() -> None:
    other = entry("other", consumed=of(B), emitted=of(B))
    both = entry("both", after=("spout", "other"), consumed=of(A, B), emitted=of())
    assert judged(SPOUT, other, both)[0].status is Status.BALANCED


def test_before_the_timeout_it_is_open() -> None:
    late = replace(SHEM, recorded_ms=1)
    assert judged(SPOUT, BOLT_0, late, now_ms=60_000)[0].status is Status.OPEN
    assert judged(SPOUT, BOLT_0, late, now_ms=60_001)[0].status is Status.UNBALANCED


def test_a_stage_that_the_query_once_had_is_expected_from_then_on() -> None:
    sink = entry("sink", after=("spout",), consumed=of(A), emitted=of(), batch=1)
    before, with_it, without = (replace(SPOUT, batch=number) for number in range(3))
    found = judged(before, with_it, sink, without)
    assert [verdict.status for verdict in found] == [Status.BALANCED, Status.BALANCED, Status.UNBALANCED]
    assert str(found[2].gaps[0]) == "sink recorded nothing; spout emitted 1"


def test_micro_batches_before_the_first_one_of_a_stage_say_that_they_are_judged_without_it() -> None:
    """Of a sink that lost the first micro-batches whole, nothing says what arrived of them."""
    sent = [entry("source", consumed=of(A), emitted=of(A), batch=batch) for batch in range(4)]
    arrived = [entry("delivered", after=("source",), consumed=of(A), emitted=of(A), batch=batch) for batch in (2, 3)]
    found = judged(*sent, *arrived)
    assert [verdict.status for verdict in found] == [Status.BALANCED] * 4
    assert [verdict.without for verdict in found] == [("delivered",), ("delivered",), (), ()]


def test_a_micro_batch_between_others_that_the_ledger_does_not_have_is_a_finding() -> None:
    found = judged(SPOUT, replace(SPOUT, batch=2))
    assert [verdict.status for verdict in found] == [Status.BALANCED, Status.UNRECORDED, Status.BALANCED]
    assert found[1].status.is_finding


def test_the_later_entry_of_a_stage_counts() -> None:
    lost = replace(BOLT_0, consumed=of(), recorded_ms=0)
    again = replace(BOLT_0, recorded_ms=1)
    assert judged(again, lost, SPOUT, replace(BOLT_1, after=("bolt-0",)), BOLT_2)[0].status is Status.BALANCED


def test_where_spark_ran_tasks_again_a_difference_proves_nothing() -> None:
    twice = replace(SPOUT, emitted=of(A, A), recomputed=True)
    (verdict,) = judged(twice, BOLT_0, BOLT_1, BOLT_2)
    assert verdict.status is Status.RECOMPUTED
    assert not verdict.status.is_finding


def test_queries_are_judged_apart() -> None:
    other = replace(SPOUT, query="other", batch=7)
    assert [(each.query, each.batch) for each in judged(SPOUT, other)] == [("other", 7), ("q", 0)]


def test_a_record_of_an_absurd_micro_batch_is_a_finding_that_ends() -> None:
    """`ballast audit` would have told of as many micro-batches as are missing in between."""
    found = judged(SPOUT, replace(SPOUT, batch=2**62))
    assert [verdict.status for verdict in found[:2]] == [Status.BALANCED, Status.UNRECORDED]
    assert (found[-1].batch, len(found)) == (2**62, 1002)


def test_absurd_micro_batches_without_number_are_told_of_in_part() -> None:
    """Each pair of them made a thousand verdicts, and each verdict took as long as there are micro-batches."""
    found = judged(*(replace(SPOUT, batch=number << 20) for number in range(3000)))
    assert len(found) == 3000 + 10_000
    assert {verdict.status for verdict in found} == {Status.BALANCED, Status.UNRECORDED}


def test_whether_a_missing_micro_batch_is_late_is_told_by_the_first_record_of_any_later_one() -> None:
    later = (replace(SPOUT, batch=2, recorded_ms=50_000), replace(SPOUT, batch=4, recorded_ms=0))
    found = judged(SPOUT, *later)
    assert [verdict.status for verdict in found if verdict.batch in (1, 3)] == [Status.UNRECORDED] * 2
    (missing,) = [verdict for verdict in judged(SPOUT, later[0]) if verdict.batch == 1]
    assert missing.status is Status.OPEN
