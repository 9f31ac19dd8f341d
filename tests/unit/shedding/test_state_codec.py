from __future__ import annotations

import pytest

from ballast.shedding.strategies import decoded, encoded


def test_figures_are_read_back_by_whoever_knows_the_nodes() -> None:
    text = encoded({"a": (1.0, 0.25), "gone": (2.0, 0.5)}, extra=3)
    assert decoded(text, ["a", "new"], width=2) == ({"a": (1.0, 0.25)}, 3.0)


def test_six_digits_are_kept() -> None:
    assert decoded(encoded({"a": (0.123456789,)}), ["a"], width=1) == ({"a": (0.123457,)}, 0.0)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"nodes":{"x":["y"]},"extra":0}', '{"nodes":[],"extra":0}'])
def test_foreign_text_is_a_fresh_start(text: str) -> None:
    assert decoded(text, ["a"], width=1) == ({}, 0.0)


def test_figures_of_another_width_are_not_ours() -> None:
    assert decoded(encoded({"a": (1.0,)}), ["a"], width=2) == ({}, 0.0)


def test_a_thousand_nodes_take_little_room() -> None:
    names = [f"ip-10-0-0-{index}.eu-central-1.compute.internal" for index in range(1000)]
    assert len(encoded(dict.fromkeys(names, (0.123456, 123456789.0)))) < 40_000
