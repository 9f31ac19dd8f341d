"""Runs every recorded case against ours: `pytest tests/vectors [--vectors DIR]`.

A comparison is a test marked `vectors("system", "Class")` that takes `case` and, where it may have to leave
something open, `record`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.reports import TestReport
from _pytest.terminal import TerminalReporter

from tests.vectors import report
from tests.vectors.case import KEPT, Case, cases
from tests.vectors.outcome import Outcome, Record


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--vectors", type=Path, default=None, metavar="DIR", help="another set of recorded cases")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "vectors(system, class_name): compares every case of a real class")
    root = vectors_root(config)
    if not root.is_dir():
        message = f"--vectors {root}: no such directory; name one that holds system/Class/cases*.jsonl"
        raise pytest.UsageError(message)


def vectors_root(config: pytest.Config) -> Path:
    # The option is unknown when a run starts above this folder; then there is only the kept copy.
    return config.getoption("--vectors", default=None) or KEPT


@pytest.fixture(scope="session")
def root(pytestconfig: pytest.Config) -> Path:
    return vectors_root(pytestconfig)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marks = list(metafunc.definition.iter_markers("vectors"))
    root = vectors_root(metafunc.config)
    if marks:
        found = [case for mark in marks for case in cases(mark.args[0], mark.args[1], root)]
        metafunc.parametrize("case", found, ids=[case.id for case in found])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the comparisons for which the chosen set holds no case at all."""
    empty = [item for item in items if _is_comparison(item) and not isinstance(_case(item), Case)]
    items[:] = [item for item in items if item not in empty]
    config.hook.pytest_deselected(items=empty)


def _is_comparison(item: pytest.Item) -> bool:
    return item.get_closest_marker("vectors") is not None


def _case(item: pytest.Item) -> object:
    return getattr(item, "callspec").params.get("case")  # noqa: B009 - callspec is on functions only


@pytest.fixture(autouse=True)
def _counted(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    if _is_comparison(request.node):
        record_property(report.COMPARED, request.getfixturevalue("case").class_name)


@pytest.fixture
def record(record_property: Callable[[str, object], None]) -> Record:
    def note(outcome: Outcome) -> None:
        record_property(report.LEFT_OPEN, outcome.flag)

    return note


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    stats = terminalreporter.stats
    reports = [each for kind in ("passed", "failed") for each in stats.get(kind, ()) if isinstance(each, TestReport)]
    found = report.tallies(each for each in reports if each.when == "call")
    if found:
        terminalreporter.section("vectors")
        for line in report.lines(found):
            terminalreporter.write_line(line)
