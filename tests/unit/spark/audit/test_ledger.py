from __future__ import annotations

import pytest

from ballast.spark.audit.ledger import _file_part


@pytest.mark.parametrize(
    ("one", "other"),
    [("clicks a", "clicks_a"), ("größe", "grüße"), ("ü", "ö"), ("a" * 300, "a" * 299), ("a/b", "a\\b"), ("", "_")],
)
def test_the_files_of_two_queries_differ_and_are_short(one: str, other: str) -> None:
    """The second one replaced what the first had recorded."""
    assert _file_part(one) != _file_part(other)
    assert max(len(_file_part(each)) for each in (one, other)) < 100


def test_a_name_that_can_be_a_files_stays_as_it_is() -> None:
    assert _file_part("clicks-v1.2") == "clicks-v1.2"
