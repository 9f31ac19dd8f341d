from __future__ import annotations

from ballast.controller.breaker import FIRST_SECONDS, LONGEST_SECONDS, Rest, after, lasting, rests_of, written
from tests.unit.kube.builders import CREATED_AT as NOW

NO = {"analytics": 'admission webhook "no.example" denied the request: no'}


def test_a_namespace_whose_releases_are_refused_rests_and_then_returns() -> None:
    rests = after((), NO, NOW)
    assert lasting(rests, NOW + FIRST_SECONDS - 1).keys() == {"analytics"}
    assert not lasting(rests, NOW + FIRST_SECONDS)
    assert rests[0].message == NO["analytics"]


def test_a_rest_is_no_longer_for_what_is_refused_in_it() -> None:
    """Executors that a pod template gates are still refused then."""
    rests = after((), NO, NOW)
    assert after(rests, NO, NOW + 60) == rests


def test_the_next_rest_is_twice_as_long_up_to_an_hour() -> None:
    rests, now, found = after((), NO, NOW), NOW, []
    for _ in range(6):
        found.append(rests[0].until - rests[0].since)
        now = rests[0].until + 20
        rests = after(rests, NO, now)
    assert found == [300, 600, 1200, 2400, 3600, 3600]


def test_an_hour_after_its_end_a_rest_is_forgotten() -> None:
    rests = after((), NO, NOW)
    assert after(rests, {}, rests[0].until + 3599) == rests
    assert after(rests, {}, rests[0].until + 3601) == ()


def test_the_next_leader_reads_what_the_last_one_wrote() -> None:
    rests = after((), {**NO, "ads": "x" * 1000}, NOW)
    assert rests_of({"refusals": written(rests)}) == rests


def test_times_that_ballast_does_not_write_count_for_nothing() -> None:
    entry = {"namespace": "analytics", "message": ""}
    times = [("2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z"), ("0000-01-01T00:00:00Z", "2026-01-01T00:00:00Z")]
    assert rests_of({"refusals": [{**entry, "since": since, "until": until} for since, until in times]}) == ()


def test_a_rest_that_begins_in_the_far_future_because_the_clock_was_set_back_does_not_last() -> None:
    rest = Rest("analytics", NOW + LONGEST_SECONDS, NOW + LONGEST_SECONDS + FIRST_SECONDS, "no")
    assert not lasting([rest], NOW)
