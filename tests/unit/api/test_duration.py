from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ballast.api.duration import NANOSECONDS, Duration
from ballast.errors import InvalidField
from tests.cluster.crds.grammar import DURATIONS, NO_DURATIONS


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_a_duration_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert Duration.parse(text).seconds == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_anything_else_is_refused_with_the_field_and_the_remedy(text: str) -> None:
    with pytest.raises(InvalidField, match=r"spec.interval.*write a duration such as 30s, 2m or 1h30m"):
        Duration.parse(text, "spec.interval")


def test_a_duration_beyond_what_go_can_hold_is_refused() -> None:
    with pytest.raises(InvalidField, match="below 292 years"):
        Duration.parse("3000000h")


def test_durations_are_equal_by_length_and_keep_their_text() -> None:
    assert Duration.parse("60s") == Duration.parse("1m")
    assert hash(Duration.parse("60s")) == hash(Duration.parse("1m"))
    assert str(Duration.parse("60s")) == "60s"
    assert Duration.parse("90s") < Duration.parse("2m")


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(sorted(NANOSECONDS))), min_size=1, max_size=5))
def test_terms_add_up(terms: list[tuple[int, str]]) -> None:
    text = "".join(f"{count}{unit}" for count, unit in terms)

    assert Duration.parse(text).nanoseconds == sum(count * NANOSECONDS[unit] for count, unit in terms)
