from typing import Any

import pytest

from examples.demo.machine import Use
from examples.demo.pool import Spread
from examples.demo.streaming.records import Comparison
from examples.demo.verdict import Verdict
from tests.unit.demo.builders import around, batches, by_ballast, by_default, findings, move

LOST = Comparison(source=5, sink=4, lost=1, duplicated=0, altered=0)
ALTERED = Comparison(source=5, sink=5, lost=0, duplicated=0, altered=1)


def test_nothing_is_missing_when_all_went_well() -> None:
    verdict = Verdict.on(findings())
    assert verdict.passed
    assert verdict.headline.startswith("Passed")
    assert verdict.summary()["failures"] == []


@pytest.mark.parametrize("spread", [Spread(0.44, 0.4, {}), Spread(0.2, 0.5, {})])
def test_nearer_by_zones_or_by_racks_is_nearer(spread: Spread) -> None:
    assert Verdict.on(findings(ballast=by_ballast(spread))).passed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ballast": by_ballast(Spread(0.5, 0.4, {}))}, "not placed nearer"),
        ({"ballast": by_ballast(Spread(0.4, 0.8, {}))}, "not placed nearer"),
        ({"ballast": by_ballast(Spread(0.44, 0.5, {"large-b1-1": 6}))}, "not placed nearer"),
        ({"ballast": by_ballast(zones=451)}, "too many bytes crossed zones: 451 bytes a record under Ballast, 900"),
        ({"ballast": by_ballast(seconds=1.43)}, "1.43 s under Ballast and 1.50 s under kube-scheduler: at most 95%"),
        ({"default": by_default(count=3)}, "only 3 batches under kube-scheduler"),
        ({"move": move(phase="Failed", reason="DidNotHelp", message="why")}, "the move ended Failed, DidNotHelp: why"),
        ({"move": move(reason="Inconclusive")}, "the move ended Succeeded, Inconclusive"),
        ({"move": move(measured_gain=None)}, "was not measured"),
        ({"move": move(measured_gain=11.9)}, "narrowed by 11.9 points, 24.0 ± 50% were predicted"),
        ({"move": move(measured_gain=36.1)}, "the prediction was wrong"),
        ({"move": move(landed_on="large-b1-2")}, "is on large-b1-2, not large-b1-4"),
        ({"durations": around(move(), batches(noisy=1.0, moved=0.96))}, "0.96 s after the move and 1.00 s next to"),
        ({"durations": around(move(), batches()[:45])}, "only 2 batches after the move"),
        ({"default_records": LOST}, "source and sink disagree under kube-scheduler"),
        ({"records": LOST}, "source and sink disagree under Ballast"),
        ({"records": ALTERED}, "source and sink disagree under Ballast"),
    ],
)
def test_what_was_not_shown_is_told_in_the_first_line(changes: dict[str, Any], words: str) -> None:
    verdict = Verdict.on(findings(**changes))
    assert [words in failure for failure in verdict.failures] == [True], verdict.failures
    assert words in verdict.headline
    assert next(iter(verdict.summary().values())) == verdict.headline


def test_the_first_line_counts_the_other_failures() -> None:
    verdict = Verdict.on(findings(records=LOST, move=move(phase="Failed", reason="DidNotHelp")))
    assert "the move ended Failed" in verdict.headline
    assert verdict.headline.endswith("(and 1 more)")


def test_an_error_of_many_lines_gives_one_first_line() -> None:
    assert Verdict(["no executors\nlog of the driver"]).headline == "Failed: no executors"


@pytest.mark.parametrize(
    ("uses", "warnings"),
    [
        ([Use(40.0), Use(96.0), Use(50.0)], []),
        ([Use(99.0, 20.4)], ["usually 99 % busy (20 % stolen by its host)"]),
        ([], []),
    ],
)
def test_a_machine_that_is_usually_busy_is_a_warning(uses: list[Use], warnings: list[str]) -> None:
    verdict = Verdict.on(findings(uses=uses))
    assert verdict.passed
    assert len(verdict.warnings) == len(warnings)
    assert all(words in told for words, told in zip(warnings, verdict.warnings, strict=True))
