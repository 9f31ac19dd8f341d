from __future__ import annotations

from pathlib import Path

from ballast.api import reference

PAGE = Path(__file__).parents[3] / "docs" / "resources.md"


def row_of(field: str) -> str:
    return next(line for line in reference.generate().splitlines() if line.startswith(f"| `{field}` |"))


def test_the_committed_page_is_that_of_the_models() -> None:
    assert reference.is_current(PAGE), "run `ballast crds`"


def test_a_row_tells_type_default_meaning_and_bounds() -> None:
    assert (
        row_of("placement.scope.higherBoundPercent") == "| `placement.scope.higherBoundPercent` | integer | `80` | "
        "Used capacity of the scope above which the component spreads farther. (0 to 100) |"
    )


def test_a_row_tells_what_each_profile_sets() -> None:
    assert "Default, by profile: Conservative 10; Balanced 5; Aggressive 3. (0 to 100) |" in row_of("moves.minGain")


def test_types_are_in_the_words_of_kubernetes() -> None:
    assert "| duration | `60s` |" in row_of("interval")
    assert "| quantity | `1Gi` |" in row_of("moves.maxStateSize")
    assert "| one of `Zone`, `Rack`, `Node` | `Zone` |" in row_of("moves.pin")
    assert "| time |" in row_of("timings.ended")
    assert "| label selector |  |" in row_of("nodeSelector")
    assert "| list of object | *required* |" in row_of("components")


def test_the_rules_between_fields_are_listed() -> None:
    assert "- set exactly one of bytesPerSecond and query\n" in reference.generate()


def test_an_edited_or_missing_page_is_not_current(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "resources.md"
    assert not reference.is_current(page)

    reference.write(page)
    assert reference.is_current(page)

    page.write_text("edited")
    assert not reference.is_current(page)
