from __future__ import annotations

import pytest

from ballast.cli.several import spelled_out

REPEATED = ("--policies", "--grid")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--policies a b c", "--policies a --policies b --policies c"),
        ("--policies=a b", "--policies=a --policies b"),
        ("--policies a b --grid x y", "--policies a --policies b --grid x --grid y"),
        ("--policies a --seeds 5", "--policies a --seeds 5"),
        ("--seeds 5 --policies a b -o json", "--seeds 5 --policies a --policies b -o json"),
        ("--seeds 5 stray", "--seeds 5 stray"),
    ],
)
def test_what_follows_a_repeated_option_is_more_of_it(given: str, meant: str) -> None:
    assert list(spelled_out(given.split(), REPEATED)) == meant.split()
