"""The runner itself: what it reads, what it lets pass, what it reports."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from _pytest.reports import TestReport

from tests.vectors import report
from tests.vectors.case import KEPT, Case, cases, files
from tests.vectors.closeness import same
from tests.vectors.defects import DEFECTS, faithful
from tests.vectors.outcome import MAY_BE_LEFT_OPEN, Outcome


def case(class_name: str = "AvgShedder", **raw: Any) -> Case:
    return Case("system", class_name, "x-1", {"given": {}, "want": {}} | raw)


def written(root: Path, name: str, *ids: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": each}) + "\n" for each in ids), encoding="utf-8")


def test_every_case_of_every_file_is_read(tmp_path: Path) -> None:
    written(tmp_path, "deep/storm/LoadMapping/cases.jsonl", "a", "b")
    written(tmp_path, "deep/storm/LoadMapping/cases-2.jsonl", "c")
    written(tmp_path, "deep/storm/Other/cases.jsonl", "d")
    assert {each.id for each in cases("storm", "LoadMapping", tmp_path)} == {"a", "b", "c"}
    assert files(tmp_path).keys() == {("storm", "LoadMapping"), ("storm", "Other")}


def test_a_folder_of_one_class_can_be_named(tmp_path: Path) -> None:
    written(tmp_path, "storm/LoadMapping/cases.jsonl", "a")
    assert len(cases("storm", "LoadMapping", tmp_path / "storm" / "LoadMapping")) == 1


def test_ids_are_unique_within_a_class() -> None:
    for system, class_name in files(KEPT):
        ids = [each.id for each in cases(system, class_name)]
        assert len(set(ids)) == len(ids)


def test_flags_are_tags_true_marks_and_the_wanted_status() -> None:
    flagged = case(tags=["cycle"], tie=True, edge=False, want={"status": "running-partial"})
    assert flagged.flags == {"cycle", "tie", "running-partial"}


def test_only_a_case_that_carries_the_flag_may_leave_something_open() -> None:
    assert Outcome(case(tie=True), "tie").flag == "tie"
    with pytest.raises(AssertionError, match="nothing may be left open by 'tie'"):
        Outcome(case(tie=False), "tie")


@pytest.mark.parametrize("flag", ["cycle", "corner", "edge"])
def test_other_tags_leave_nothing_open(flag: str) -> None:
    assert flag not in MAY_BE_LEFT_OPEN
    with pytest.raises(AssertionError, match="nothing may be left open"):
        Outcome(case(tags=[flag]), flag)


def test_a_flag_counts_only_in_the_classes_it_is_meant_for() -> None:
    with pytest.raises(AssertionError, match="nothing may be left open"):
        Outcome(case("LoadMapping", tie=True), "tie")


@pytest.mark.parametrize(
    ("ours", "theirs", "equal"),
    [
        (1.0, 1.0 + 1e-10, True),
        (1.0, 1.0 + 1e-8, False),
        (3, 3.0, True),
        ("a", "a", True),
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0], [1.0, 2.0], False),
        ({"a": [0.1 + 0.2]}, {"a": [0.3]}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        (math.nan, "NaN", True),
        (1.0, "NaN", False),
        (None, 1.0, False),
    ],
)
def test_figures_agree_to_a_billionth_and_all_else_exactly(ours: object, theirs: object, *, equal: bool) -> None:
    assert same(ours, theirs) is equal


def test_every_defect_names_what_the_real_class_does_and_what_ours_does() -> None:
    assert all("ours" in defect.what and defect.option for defect in DEFECTS)
    assert len({(defect.class_name, defect.option) for defect in DEFECTS}) == len(DEFECTS)
    assert {defect.class_name for defect in DEFECTS} <= {class_name for _, class_name in files(KEPT)}


def test_the_faithful_options_are_those_of_the_class() -> None:
    assert faithful("TaskNameGrouperProxy") == {"by_names": True}
    assert faithful("LoadMapping") == {}


def of_a_case(outcome: str, *flags: str) -> TestReport:
    properties = [(report.COMPARED, "LoadMapping"), *((report.LEFT_OPEN, flag) for flag in flags)]
    return TestReport("id", ("file", 1, "test"), {}, outcome, None, "call", user_properties=properties)  # type: ignore[arg-type]


def test_the_report_counts_cases_passes_and_what_was_left_open() -> None:
    reports = [of_a_case("passed"), of_a_case("passed", "tie", "tie"), of_a_case("failed")]
    header, row = report.lines(report.tallies(reports))
    assert header.split()[:3] == ["class", "cases", "passed"]
    assert row.split() == ["LoadMapping", "3", "2", "tie", "1"]
