"""GC logs of every collector of the JVMs at hand, made under memory pressure and counted by grep."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ballast.sizing.gc_log_reader import read
from tests.unit.sizing.gc_logs import churn, compiled

COLLECTORS = {
    "G1": "-XX:+UseG1GC",
    "Parallel": "-XX:+UseParallelGC",
    "Serial": "-XX:+UseSerialGC",
    "ZGC": "-XX:+UseZGC",
    "Shenandoah": "-XX:+UseShenandoahGC",
}
"""Java 25's are in tests/field/gc: one version of the wheel can be installed."""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("classes"))


@pytest.mark.soak
@pytest.mark.parametrize("java", [17, 21])
@pytest.mark.parametrize("collector", COLLECTORS)
def test_every_pause_and_stall_under_pressure_is_counted(
    classes: Path, tmp_path: Path, java: int, collector: str
) -> None:
    file = tmp_path / "gc.log"
    churn(classes, file, java=java, heap_mib=96, options=COLLECTORS[collector], arguments="1500 50")

    def lines_with(pattern: str) -> int:
        command = ["grep", "-cE", pattern, str(file)]
        return int(subprocess.run(command, check=False, capture_output=True, text=True).stdout)

    found = read(file.read_text(encoding="utf-8").splitlines(), "gc.log")
    assert (found.collector, found.java) == (collector, java)
    assert (found.passed_over, found.first_passed_over) == (0, "")
    assert found.lines == lines_with(r"\[gc[], ]")
    assert len(found.pauses) == lines_with(r"Pause [A-Z].*ms$") > 0
    assert len(found.stalls_seconds) == lines_with(r"Allocation Stall \(.*ms$")
    degenerated = lines_with(r"Pause Degenerated.*ms$")
    assert sum(each.degenerated for each in found.pauses) == degenerated
