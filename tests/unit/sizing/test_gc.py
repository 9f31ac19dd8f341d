"""GC logs and the rules of health, over logs of real JVMs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ballast.errors import InvalidField
from ballast.sizing.gc_health import gc_checks
from ballast.sizing.gc_log import GcLog, Generation
from ballast.sizing.gc_log_reader import read
from ballast.sizing.memory import MIB
from tests.unit.sizing.gc_logs import churn, compiled

Run = Callable[..., GcLog]
G1, ZGC, GENERATIONAL = "-XX:+UseG1GC", "-XX:+UseZGC", "-XX:+UseZGC -XX:+ZGenerational"
FULL, LATE, OLD_PAUSES, OLD_APART, YOUNG_PAUSES, YOUNG_APART, SURVIVORS = range(7)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("gc")
    classes = compiled(folder)

    def one(java: int, options: str, *, heap_mib: int = 128, arguments: str = "1000 40") -> GcLog:
        lines = churn(classes, folder / "gc.log", java=java, heap_mib=heap_mib, options=options, arguments=arguments)
        return read(lines, "gc.log")

    return one


def verdicts(log: GcLog) -> list[bool | None]:
    return [check.healthy for check in gc_checks(log)]


@pytest.mark.parametrize("java", [17, 21])
def test_g1_is_read_whole(run: Run, java: int) -> None:
    log = run(java, G1)
    assert (log.collector, log.java, log.heap_bytes) == ("G1", java, 128 * MIB)
    assert {pause.generation for pause in log.pauses} >= {Generation.YOUNG, Generation.OLD}
    assert log.cycles
    assert log.survivors
    assert log.steady_old_bytes is not None
    assert 10 * MIB < log.steady_old_bytes < 128 * MIB
    assert log.allocation_bytes_per_second is not None
    # The program allocates 1000 MiB in records, whose headers come on top. The log rounds to MiB.
    between = log.pauses[-1].at_seconds - log.pauses[0].at_seconds
    assert 700 * MIB < log.allocation_bytes_per_second * between < 1200 * MIB


@pytest.mark.parametrize("java", [17, 21])
def test_a_crowded_g1_breaks_the_rules_of_frequency(run: Run, java: int) -> None:
    found = verdicts(run(java, G1))
    assert found[OLD_APART] is False
    assert found[YOUNG_APART] is False


@pytest.mark.parametrize("java", [17, 21])
def test_a_full_collection_that_the_code_asked_for_is_told_as_such(run: Run, java: int) -> None:
    check = gc_checks(run(java, G1, arguments="200 5 full"))[FULL]
    assert check.healthy is False
    assert "System.gc()" in check.evidence


def test_full_collections_for_lack_of_room_ask_for_memory(run: Run) -> None:
    check = gc_checks(run(21, "-XX:+UseParallelGC", heap_mib=64, arguments="500 40"))[FULL]
    assert check.healthy is False
    assert "spark.executor.memory" in check.remedy


@pytest.mark.parametrize("java", [17, 21])
def test_a_roomy_g1_collects_in_time(run: Run, java: int) -> None:
    found = verdicts(run(java, G1, heap_mib=1024, arguments="400 1"))
    assert found[FULL] is True
    assert found[LATE] is True
    assert found[OLD_APART] is None


def test_zgc_of_java_17_has_one_generation(run: Run) -> None:
    log = run(17, ZGC, heap_mib=256)
    assert (log.collector, log.java, log.generational, log.concurrent) == ("ZGC", 17, False, True)
    assert log.cycles
    assert all(cycle.generation is Generation.OLD for cycle in log.cycles)
    found = verdicts(log)
    assert found[OLD_APART] is True
    assert found[YOUNG_APART] is True
    assert found[SURVIVORS] is None


def test_generational_zgc_of_java_21_is_read_whole(run: Run) -> None:
    log = run(21, GENERATIONAL, heap_mib=256, arguments="3000 40")
    assert (log.collector, log.java, log.generational, log.heap_bytes) == ("ZGC", 21, True, 256 * MIB)
    assert {cycle.generation for cycle in log.cycles} == {Generation.YOUNG, Generation.OLD}
    assert {pause.generation for pause in log.pauses} == {Generation.YOUNG, Generation.OLD}
    assert log.allocation_bytes_per_second is not None


def test_threads_that_wait_for_memory_are_a_finding(run: Run) -> None:
    check = gc_checks(run(21, GENERATIONAL, heap_mib=96, arguments="1500 60"))[LATE]
    assert check.healthy is False
    assert "allocation stalls" in check.evidence


def line(seconds: float, text: str) -> str:
    return f"[{seconds:.3f}s][info][gc] {text}"


def young(number: int, seconds: float, millis: float) -> str:
    return line(seconds, f"GC({number}) Pause Young (Normal) (G1 Evacuation Pause) 25M->3M(256M) {millis}ms")


def judged(*lines: str) -> list[bool | None]:
    return verdicts(read([line(0.001, "Using G1"), *lines], "gc.log"))


@pytest.mark.parametrize(("apart", "healthy"), [(9.9, False), (10.0, True), (60.0, True)])
def test_young_collections_belong_ten_seconds_apart(apart: float, healthy: bool) -> None:
    assert judged(*(young(n, 5 + apart * n, 8.0) for n in range(10)))[YOUNG_APART] is healthy


@pytest.mark.parametrize(("slow", "healthy"), [(0, True), (1, True), (2, False)])
def test_one_young_pause_in_twenty_may_last_longer_than_50_ms(slow: int, healthy: bool) -> None:
    lines = [young(n, 20.0 * n, 51.0 if n < slow else 50.0) for n in range(20)]
    assert judged(*lines)[YOUNG_PAUSES] is healthy


@pytest.mark.parametrize(("millis", "healthy"), [(1000.0, True), (1001.0, False)])
def test_an_old_pause_lasts_a_second_at_most(millis: float, healthy: bool) -> None:
    assert judged(line(5, f"GC(1) Pause Remark 80M->50M(128M) {millis}ms"))[OLD_PAUSES] is healthy


@pytest.mark.parametrize(("apart", "healthy"), [(599.0, False), (600.0, True)])
def test_old_collections_belong_ten_minutes_apart(apart: float, healthy: bool) -> None:
    lines = [line(5 + apart * n, f"GC({n}) Concurrent Mark Cycle 27.774ms") for n in range(3)]
    assert judged(*lines)[OLD_APART] is healthy


@pytest.mark.parametrize(
    ("lines", "verdict"), [([line(30.0, "Heap")], None), ([line(700.0, "Heap")], True), ([young(0, 700.0, 1.0)], True)]
)
def test_a_log_too_short_for_a_rule_says_so(lines: list[str], verdict: bool | None) -> None:
    assert judged(*lines)[OLD_APART] is verdict


@pytest.mark.parametrize(
    "text",
    [
        "GC(1) To-space exhausted",
        "GC(1) Pause Young (Normal) (G1 Evacuation Pause) (Evacuation Failure: Allocation) 25M->3M(256M) 2.0ms",
    ],
)
def test_a_collection_without_room_for_survivors_came_too_late(text: str) -> None:
    assert judged(line(5.0, text))[LATE] is False


@pytest.mark.parametrize(("used", "healthy"), [("3->4(16)", True), ("3->16(16)", False)])
def test_survivors_must_not_be_filled(used: str, healthy: bool) -> None:
    assert judged(young(0, 5.0, 1.0), line(5.0, f"GC(0) Survivor regions: {used}"))[SURVIVORS] is healthy


@pytest.mark.parametrize(
    "stamp", ["[5.000s]", "[5000ms]", "[2026-11-22T20:35:08.693+0000]", "[2026-11-22T20:35:08.693+0000][5.000s]"]
)
def test_times_are_read_in_every_form(stamp: str) -> None:
    log = read([f"{stamp}[info][gc] Using G1", f"{stamp}[info][gc] GC(0) Pause Remark 8M->5M(128M) 2.0ms"], "gc.log")
    assert len(log.pauses) == 1


@pytest.mark.parametrize("text", [[], ["no log"], ["[info] Using G1"], ["[0.1s][info] something else"]])
def test_a_file_that_is_no_gc_log_is_refused_with_what_writes_one(text: list[str]) -> None:
    with pytest.raises(InvalidField, match="-Xlog:gc"):
        read(text, "app.log")


@pytest.mark.parametrize(
    ("stamp", "message"),
    [
        pytest.param("[2026-13-45T99:99:99.123+0000]", "GC(1) Pause Full (x) 8M->5M(128M) 2.0ms", id="time"),
        pytest.param("[2026-01-01T00:00:00.1234567890+0000]", "GC(1) Pause Full (x) 8M->5M(128M) 2.0ms", id="fraction"),
        pytest.param(f"[{9 * 10**400}.0s]", "GC(1) Pause Full (x) 8M->5M(128M) 2.0ms", id="uptime"),
        pytest.param("[1.0s]", f"GC(1) Pause Full (x) {10**400}M->5M(128M) 2.0ms", id="size"),
        pytest.param("[1.0s]", f"GC(1) Pause Full (x) 8M->5M(128M) {10**400}ms", id="pause"),
        pytest.param("[1.0s]", f"Heap Max Capacity: {10**300}G", id="heap"),
        pytest.param("[1.0s]", f"GC(1) Survivor regions: 1->{10**400}(1)", id="regions"),
        pytest.param("[1.0s]", f"Version: {10**20}", id="version"),
        pytest.param("[1.0s]", "GC(1) Pause " * 200_000, id="length"),
    ],
)
def test_a_line_that_can_not_be_true_is_passed_over(stamp: str, message: str) -> None:
    """A line of a megabyte took patterns the better part of an hour."""
    true = ["[0.5s][gc] Using G1", "[0.6s][gc] GC(0) Pause Young (Normal) 8M->5M(128M) 2.0ms"]
    assert read([*true, f"{stamp}[gc] {message}"], "gc.log").pauses == read(true, "gc.log").pauses
