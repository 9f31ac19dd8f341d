"""GC logs as people have them: `tests/field/gc` has parts of real ones, made under memory pressure, and of reports."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ballast.errors import InvalidField
from ballast.sizing.event_log import EventLog
from ballast.sizing.facts import Facts
from ballast.sizing.gc_health import gc_checks
from ballast.sizing.gc_log import GcLog
from ballast.sizing.gc_log_reader import read
from ballast.sizing.memory import GIB, MIB
from ballast.sizing.recommendation import recommend
from tests.unit.sizing.values import log, stage, task

FIELD = Path(__file__).parents[2] / "field" / "gc"
FULL, LATE = 0, 1


def of(name: str) -> GcLog:
    return read((FIELD / name).read_text(encoding="utf-8").splitlines(), name)


def lines_with(pattern: str, name: str) -> int:
    """Counted by grep, not by the reader's own rules."""
    found = subprocess.run(["grep", "-cE", pattern, name], cwd=FIELD, check=False, capture_output=True, text=True)
    return int(found.stdout)


@pytest.mark.parametrize("name", sorted(path.name for path in FIELD.glob("java*.log")))
def test_every_line_of_a_real_log_is_understood_and_every_pause_and_stall_counted(name: str) -> None:
    found = of(name)
    assert (found.passed_over, found.first_passed_over) == (0, "")
    assert found.lines == lines_with(r"\[gc[], ]", name)
    assert len(found.pauses) == lines_with(r"Pause [A-Z].*ms$", name)
    assert len(found.stalls_seconds) == lines_with(r"Allocation Stall \(.*ms$", name)
    assert sum(pause.degenerated for pause in found.pauses) == lines_with(r"Pause Degenerated.*ms$", name)
    assert f"Java {found.java}".replace(" ", "").lower() == name.partition("-")[0]


def test_degenerated_collections_of_shenandoah_come_too_late_and_the_heap_holds_what_lives() -> None:
    found = of("shenandoah.log")
    checks = gc_checks(found)
    assert checks[LATE].healthy is False
    assert "degenerated after a failed allocation" in checks[LATE].evidence
    assert checks[FULL].healthy is False  # "upgrading to Full GC"
    assert found.allocation_bytes_per_second == pytest.approx(1311 * MIB / 9.0, rel=0.05)
    made = recommend(Facts(gc=found))
    assert int(made.spark_conf["spark.executor.memory"].removesuffix("m")) > 4610
    assert any("changes the collector from Shenandoah to G1" in warning for warning in made.warnings)


def test_stalls_of_threads_whose_names_hold_brackets_count() -> None:
    found = of("zgc-stall.log")
    assert len(found.stalls_seconds) == lines_with("Allocation Stall", "zgc-stall.log") > 15
    assert gc_checks(found)[LATE].healthy is False


def test_no_heap_is_proposed_for_a_log_without_the_old_generation_and_the_tag_is_named() -> None:
    found = of("xlog-gc-only.log")
    assert found.occupied_bytes == 13_700 * MIB
    made = recommend(Facts(gc=found))
    assert "spark.executor.memory" not in made.spark_conf
    assert any("13700 MiB" in warning and "gc+heap" in warning for warning in made.warnings)
    assert "no heap size without" not in made.headline


@pytest.mark.parametrize("name", ["jdk8.log", "../gc-other/java8-shenandoah.log"])
def test_a_log_of_java_8_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(InvalidField, match="Java 8 or older"):
        of(name)


@pytest.mark.parametrize(
    "line",
    [
        "2017-06-19T15:53:44.345+0100: 46292.505: [GC[YG occupancy: 299022 K (2035520 K)]46292.506: [Rescan ]",
        "2016-10-31T14:09:15.030-0700: 49689.217: [Full GC2016-10-31T14:09:15.030-0700: 49689.217: [Class Histogram:",
        "2021-03-23T20:57:42.349+0000: 120835.633: [Pause Full, start]",
        "Application time: 12.4842260 seconds",
        "2018-01-02T03:04:05.678+0000: 9.1: Total time for which application threads were stopped: 0.0047000 seconds",
    ],
)
def test_other_lines_of_java_8_are_known_for_such(line: str) -> None:
    with pytest.raises(InvalidField, match="Java 8 or older"):
        read([line], "gc.log")


def test_concurrent_mark_sweep_is_named_and_its_health_is_not_claimed() -> None:
    found = of("../gc-other/java11-cms.log")
    assert (found.collector, found.passed_over, len(found.pauses)) == ("CMS", 0, 3)
    assert not any(each.healthy for each in gc_checks(found))


@pytest.mark.parametrize(
    ("name", "collector", "pauses", "cycles"),
    [("untagged-shenandoah.log", "Shenandoah", 2, 1), ("untagged-full.log", "G1", 1, 0)],
)
def test_details_are_known_without_their_tags(name: str, collector: str, pauses: int, cycles: int) -> None:
    found = of(f"../gc-other/{name}")
    assert (found.collector, found.passed_over) == (collector, 0)
    assert (len(found.pauses), len(found.cycles)) == (pauses, cycles)


def test_lines_that_tell_of_no_collection_are_not_said_to_be_missing() -> None:
    with pytest.raises(InvalidField, match="1 lines of a GC log tell of no collection"):
        of("../gc-other/safepoints-alone.log")


G1 = "GC(0) Pause Young (Normal) (G1 Evacuation Pause) 25M->3M(256M) 8.5ms"


@pytest.mark.parametrize(
    "line",
    [
        f"[1.000s][info][gc] {G1}",
        f"[1,000s][info][gc] {G1.replace('8.5', '8,5')}",
        f"[1000000000ns][info][gc] {G1}",
        f"[1000ms][7][info][gc          ] {G1}",
        f"2026-11-20T10:00:00.123456789Z [1.000s][info][gc] {G1}",
        f"2026-11-20T10:00:00.123456789Z [info][gc] {G1}",
        f"[pod/clicks-exec-1/executor] 2026-11-20T10:00:00Z [1.000s][info][gc] {G1}",
        f"[pod/clicks-exec-1/executor] [1.000s][info][gc] {G1}",
        f"[2026-11-20T10:00:00.123+0000][node-1][42][info][gc] {G1}",
        f"[1.000s] {G1}",
    ],
)
def test_decorations_are_read_as_people_have_them(line: str) -> None:
    found = read([line], "gc.log")
    assert [pause.seconds for pause in found.pauses] == [0.0085]
    assert (found.collector, found.passed_over) == ("G1", 0)


def test_lines_of_the_application_in_the_same_file_count_nowhere() -> None:
    found = read([f"[1.0s][gc] {G1}", "26/11/20 INFO Executor: Running task 0.0 [gc]", "[main] INFO start"], "gc.log")
    assert (found.lines, found.passed_over) == (1, 0)


def test_a_log_without_times_is_refused_with_what_it_lacks() -> None:
    with pytest.raises(InvalidField, match="have no time"):
        read([f"[info][gc] {G1}"], "gc.log")


def test_health_is_unknown_from_one_percent_of_unknown_lines_on() -> None:
    known = [f"[{n}.0s][info][gc] {G1.replace('GC(0)', f'GC({n})')}" for n in range(99)]
    strange = "[99.0s][info][gc] GC(99) Something that no version has written so far 5ms"
    healthy = gc_checks(read([*known, *known[-1:], strange], "gc.log"))
    assert healthy[FULL].healthy is True
    unknown = gc_checks(read([*known[:50], strange], "gc.log"))
    assert unknown[FULL].healthy is None
    assert "1 of 51 lines are not understood" in unknown[FULL].evidence
    made = recommend(Facts(gc=read([*known[:50], strange], "gc.log")))
    assert any("Something that no version" in warning for warning in made.warnings)
    assert made.read == ("GC log: 51 lines of G1, 1 not understood",)


def test_a_pause_of_an_unknown_kind_counts_as_a_pause() -> None:
    found = read([f"[1.0s][info][gc] {G1}", "[2.0s][info][gc] GC(1) Pause Whatever 5M=>3M 7.0ms"], "gc.log")
    assert [pause.seconds for pause in found.pauses] == [0.0085, 0.007]


@pytest.mark.parametrize(("cause", "late"), [("Pinned", None), ("Allocation", False), ("Allocation / Pinned", False)])
def test_a_pinned_region_is_no_lack_of_room(cause: str, late: bool | None) -> None:
    failed = G1.replace("(G1 Evacuation Pause)", f"(G1 Evacuation Pause) (Evacuation Failure: {cause})")
    check = gc_checks(read([f"[1.0s][info][gc] {failed}"], "gc.log"))[LATE]
    assert check.healthy is (True if late is None else late)


def with_settings(**settings: str) -> EventLog:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return log(stage(0, task()), settings=named)


@pytest.mark.parametrize(
    ("settings", "overhead"),
    [
        ({"spark__executor__memory": "4g", "spark__executor__memoryOverhead": "2g"}, "2048m"),
        ({"spark__executor__memory": "4g", "spark__executor__memoryOverheadFactor": "0.5"}, "2048m"),
        ({"spark__executor__memory": "4g", "spark__executor__memoryOverhead": "100m"}, "410m"),
        ({"spark__executor__memory": "4g"}, "410m"),
    ],
)
def test_no_less_overhead_is_proposed_than_users_gave(settings: dict[str, str], overhead: str) -> None:
    made = recommend(Facts(log=with_settings(**settings)))
    assert made.spark_conf["spark.executor.memoryOverhead"] == overhead
    assert made.before["spark.executor.memory"] == "4g"


def test_the_heap_is_no_smaller_than_what_is_occupied_after_collections() -> None:
    lines = ["[0.1s][info][gc,init] Heap Region Size: 1M", "[0.1s][info][gc] Using G1"]
    for n in range(6):
        at = f"[{10 * n + 1}.0s][info][gc"
        lines += [
            f"{at}] GC({n}) Pause Young (Normal) (G1 Evacuation Pause) 9000M->8000M(10000M) 8.0ms",
            f"{at},heap] GC({n}) Old regions: 100->100",
            f"{at},heap] GC({n}) Humongous regions: 0->0",
        ]
    made = recommend(Facts(gc=read(lines, "gc.log")))
    assert float(made.spark_conf["spark.executor.memory"].removesuffix("m")) * MIB >= 8000 * MIB
    assert made.table.amount("heapBytes") is not None
    assert GIB < 8000 * MIB


USING = "[0.1s][info][gc] Using G1"


@pytest.mark.parametrize(
    "lines",
    [
        [f"[pod/{pod}/executor] [1.0s][info][gc] {G1}" for pod in ("a-exec-1", "a-exec-2")],
        [USING, f"[9.0s][info][gc] {G1}", f"[1.0s][info][gc] {G1}"],
        [USING, f"[1.0s][info][gc] {G1}", USING, f"[1.5s][info][gc] {G1}"],
    ],
)
def test_logs_of_several_jvms_in_one_are_refused(lines: list[str]) -> None:
    with pytest.raises(InvalidField, match="it holds logs of several JVMs"):
        read(lines, "gc.log")


def test_threads_of_one_jvm_may_write_out_of_order() -> None:
    assert len(read([USING, f"[9.0s][info][gc] {G1}", f"[8.9s][info][gc] {G1}"], "gc.log").pauses) == 2


@pytest.mark.parametrize(
    ("beginning", "lines", "old_mib"),
    [
        ("Heap region size: 2M", ["Old regions: 3->5", "Humongous regions: 0->1"], 12.0),
        ("Using Parallel", ["ParOldGen: 0K->2048K(173568K)"], 2.0),
        ("Using Serial", ["Tenured: 0K(1024K)->1024K(173568K)"], 1.0),
    ],
)
def test_occupancy_is_read_as_java_11_writes_it_too(beginning: str, lines: list[str], old_mib: float) -> None:
    shown = [f"[1.0s][info][gc,heap] GC(0) {each}" for each in lines]
    found = read([f"[0.1s][info][gc,heap] {beginning}", *shown, f"[1.0s][info][gc] {G1}"], "gc.log")
    assert (found.old_bytes, found.passed_over) == ((old_mib * MIB,), 0)


def test_a_rotated_log_without_its_beginning_is_told_to_lack_the_size_of_a_region() -> None:
    shown = ["[1.0s][info][gc,heap] GC(0) Old regions: 3->5", "[1.0s][info][gc,heap] GC(0) Humongous regions: 0->1"]
    found = read([*shown, f"[1.0s][info][gc] {G1}"], "gc.log")
    (warning,) = (each for each in recommend(Facts(gc=found)).warnings if each.startswith("No heap"))
    assert "lacks its beginning, which has the size of a region" in warning
    assert "tag" not in warning


def test_the_name_of_a_host_is_no_tag() -> None:
    found = read([f"[1.0s][myhost] {G1}", "[1.1s][safepoint] Safepoint", "[0.1s][myhost] Using G1"], "gc.log")
    assert (found.collector, len(found.pauses), found.lines) == ("G1", 1, 2)


def test_a_failed_evacuation_counts_once_a_collection() -> None:
    failed = G1.replace("(G1 Evacuation Pause)", "(G1 Evacuation Pause) (Evacuation Failure: Allocation)")
    lines = ["[1.0s][info][gc] GC(0) To-space exhausted", f"[1.0s][info][gc] {failed}"]
    assert read(lines, "gc.log").failed_evacuations == 1


@pytest.mark.parametrize(
    ("causes", "remedy"),
    [
        (["Metadata GC Threshold"], "-XX:MetaspaceSize"),
        (["Metadata GC Threshold", "System.gc()"], "-XX:MetaspaceSize"),
        (["Metadata GC Threshold", "G1 Compaction Pause"], "spark.executor.memory"),
    ],
)
def test_full_collections_for_metaspace_ask_for_no_heap(causes: list[str], remedy: str) -> None:
    lines = [f"[{n}.5s][gc] GC({n}) Pause Full ({each}) 8M->5M(128M) 2.0ms" for n, each in enumerate(causes)]
    found = read([USING, *lines], "gc.log")
    assert remedy in gc_checks(found)[FULL].remedy
    assert recommend(Facts(gc=found)).headline.startswith("Change memory") is (remedy == "spark.executor.memory")
