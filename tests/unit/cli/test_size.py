"""`ballast size`: what it prints and writes, and how it refuses."""

from __future__ import annotations

import gzip
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from ballast.cli import log_files
from tests.unit.cli.picture.outline import Outline
from tests.unit.cli.program import Ended, exit_code, run
from tests.unit.cli.prometheus import answering
from tests.unit.sizing.test_readers import END, ENVIRONMENT, START, added, batch, completed, ended
from tests.unit.sizing.test_variables import NOTES
from tests.unit.sizing.values import sharp

GC_LOG = """[0.004s][info][gc] Using G1
[5.000s][info][gc] GC(0) Pause Full (G1 Compaction Pause) 120M->90M(128M) 900.0ms
"""


def topology(sizing: dict[str, Any] | None = None, name: str = "clicks") -> dict[str, Any]:
    components = [{"name": stage["component"]} for stage in NOTES["stages"]]
    spec: dict[str, Any] = {"components": components}
    if sizing is not None:
        spec["sizing"] = sizing
    return {"apiVersion": "ballast.dev/v1alpha1", "kind": "SparkTopology", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def declared(tmp_path: Path) -> str:
    path = tmp_path / "topology.yaml"
    path.write_text(yaml.safe_dump_all([{"kind": "Namespace"}, topology(NOTES)]), encoding="utf-8")
    return str(path)


@pytest.fixture
def progress(tmp_path: Path) -> str:
    path = tmp_path / "progress.jsonl"
    batches = [(1.0, 1.0), *sharp()]
    lines = [
        batch(n, int(rows), millis=seconds * 1000.0, sources=[{"inputRowsPerSecond": 900.0}])
        for n, (rows, seconds) in enumerate(batches)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def events(folder: Path, name: str = "app-1") -> Path:
    path = folder / name
    found = [START, ENVIRONMENT, added("1"), completed(), ended(), ended(), END]
    path.write_text("\n".join(json.dumps(each) for each in found), encoding="utf-8")
    return path


def test_one_sentence_on_top_says_what_to_do_and_what_it_brings(declared: str) -> None:
    told = run("size", "-f", declared)
    assert told.code == 0
    assert told.out.splitlines()[0] == "Run 4 executors of 4 cores: batches of 1600 records pass 2000 records/s."


def test_every_value_is_shown_with_its_origin_and_formula(declared: str) -> None:
    rows = [line.split() for line in run("size", "-f", declared).out.splitlines()]
    assert ["batchRecords", "1600", "records", "Declared"] in [row[:4] for row in rows]
    assert ["java", "17", "Assumed"] in [row[:3] for row in rows]
    assert ["maxOffsetsPerTrigger", "1600"] in rows


def test_programs_get_the_same_as_json_and_yaml(declared: str) -> None:
    found = json.loads(run("size", "-f", declared, "-o", "json").out)
    assert found == yaml.safe_load(run("size", "-f", declared, "-o", "yaml").out)
    (parallelism,) = [each for each in found["variables"] if each["name"] == "parallelism"]
    assert parallelism["value"] == 16
    assert parallelism["origin"] == "Declared"
    assert parallelism["inputs"] == ["executors", "executorCores"]
    assert found["regimes"] is None


EVENT_LOGS = Path(__file__).parents[2] / "field" / "event-log"


@pytest.mark.parametrize(
    ("name", "read", "headline"),
    [
        (
            "uneven-tasks.jsonl",
            "executors: 1, at most 1 at once with 2 cores",
            "Don't add executors: with 4 cores instead of 2",
        ),
        ("registered-late.jsonl", "executors: 1, at most 1 at once with 2 cores", ""),
        (
            "second-part.jsonl",
            "executors: 0, at most 0",
            "the event log shows no executor at work; give the whole",
        ),
    ],
)
def test_event_logs_that_are_uneven_edited_or_cut_are_sized(name: str, read: str, headline: str) -> None:
    ended = run("size", "--event-log", str(EVENT_LOGS / name))
    assert ended.code == 0, ended.err
    assert read in ended.out
    assert headline in ended.out.splitlines()[0]


def test_an_archived_event_log_is_unpacked_or_told_to_be_an_archive(tmp_path: Path) -> None:
    whole = (EVENT_LOGS / "uneven-tasks.jsonl").read_bytes()
    (tmp_path / "log.gz").write_bytes(gzip.compress(whole))
    plain = run("size", "--event-log", str(EVENT_LOGS / "uneven-tasks.jsonl"))
    assert run("size", "--event-log", str(tmp_path / "log.gz")).out == plain.out
    (tmp_path / "cut.gz").write_bytes(gzip.compress(whole)[:-20])
    assert run("size", "--event-log", str(tmp_path / "cut.gz")).code == 0
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.writestr("uneven-tasks", whole)
    assert "unpack it, and name the log in it" in run("size", "--event-log", str(tmp_path / "logs.zip")).err


def test_a_topology_is_also_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(yaml.safe_dump(topology(NOTES))))
    assert run("size", "-f", "-").code == 0


def test_what_if_and_goal_change_the_answer(declared: str) -> None:
    found = json.loads(run("size", "-f", declared, "--set", "machines=2x", "--goal", "latency", "-o", "json").out)
    assert found["goal"] == "Latency"
    assert found["sparkConf"]["spark.executor.instances"] == "8"


def test_measured_batches_give_regimes_and_a_page_that_needs_nothing_else(progress: str, tmp_path: Path) -> None:
    page = tmp_path / "sizing.html"
    told = run("size", "--progress", progress, "--report", str(page))
    assert (told.code, told.err) == (0, f"wrote {page}\n")
    assert "Sharp growth from" in told.out
    text = page.read_text(encoding="utf-8")
    outline = Outline(text)
    assert (outline.open, outline.outside) == ([], [])
    assert "UTC by ballast 0." in text
    assert "chosen: " in text
    assert text.count("a measured batch</text>") == 2  # wide and narrow
    assert "prefers-color-scheme: dark" in text


def test_batches_of_one_size_make_a_page_that_says_so(tmp_path: Path) -> None:
    path, page = tmp_path / "p.jsonl", tmp_path / "sizing.html"
    path.write_text("\n".join(batch(n) for n in range(20)), encoding="utf-8")
    told = run("size", "--progress", str(path), "--report", str(page), "-o", "json")
    assert "same size" in json.loads(told.out)["regimes"]["reason"]
    assert "They don't tell a batch size" in page.read_text(encoding="utf-8").replace("&#x27;", "'")


def test_a_page_of_everything_is_well_formed(declared: str, progress: str, tmp_path: Path) -> None:
    gc, page = tmp_path / "gc.log", tmp_path / "sizing.html"
    gc.write_text(GC_LOG, encoding="utf-8")
    log = str(events(tmp_path))
    told = run(
        "size", "-f", declared, "--progress", progress, "--event-log", log, "--gc-log", str(gc), "--report", str(page)
    )
    assert told.code == 0
    assert "Garbage collection" in told.out
    assert "Warnings" in told.out
    assert Outline(page.read_text(encoding="utf-8")).open == []


def test_the_configuration_is_written_for_spark_submit(declared: str, tmp_path: Path) -> None:
    path = tmp_path / "sized.conf"
    assert run("size", "-f", declared, "--write-conf", str(path)).code == 0
    lines = path.read_text(encoding="utf-8").splitlines()
    assert "spark.executor.instances 4" in lines
    assert "#   maxOffsetsPerTrigger 1600" in lines
    assert all(line.startswith(("#", "spark.")) for line in lines)


def test_a_batch_job_is_predicted_from_its_event_log(tmp_path: Path) -> None:
    told = run("size", "--event-log", str(events(tmp_path)))
    assert told.code == 0
    assert "Run time of the job" in told.out


def test_reading_stages_without_run_time_tell_no_seconds_for_a_record(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    without: dict[str, Any] = {"Executor Run Time": 0}
    brief = [ended(number, **without) for number in range(4)]
    found = [START, ENVIRONMENT, added("1"), *(completed(number) for number in range(4)), *brief, END]
    path.write_text("\n".join(json.dumps(each) for each in found), encoding="utf-8")
    told = run("size", "--event-log", str(path), "-o", "json")
    assert told.code == 0
    names = {each["name"] for each in json.loads(told.out)["variables"]}
    assert ("recordBytes" in names, "recordSeconds" in names) == (True, False)


def test_warnings_fail_only_on_request(tmp_path: Path) -> None:
    gc = tmp_path / "gc.log"
    gc.write_text(GC_LOG, encoding="utf-8")
    assert run("size", "--gc-log", str(gc)).code == 0
    assert run("size", "--gc-log", str(gc), "--fail-on-warnings").code == 1


def test_without_warnings_the_flag_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(yaml.safe_dump(topology({"machine": {"count": 4, "cores": 4}})), encoding="utf-8")
    assert run("size", "-f", str(path), "--fail-on-warnings").code == 0


def in_lz4_blocks(text: bytes) -> bytes:
    """As lz4-java's LZ4BlockOutputStream writes it, which Spark uses; checksums are not looked at."""
    blocks = []
    for at in range(0, len(text), 100):
        plain = text[at : at + 100]
        packed = pa.Codec("lz4_raw").compress(plain, asbytes=True)
        method, data = (0x20, packed) if len(packed) < len(plain) else (0x10, plain)
        lengths = b"".join(length.to_bytes(4, "little") for length in (len(data), len(plain), 0))
        blocks.append(b"LZ4Block" + bytes([method | 5]) + lengths + data)
    return b"".join([*blocks, b"LZ4Block" + bytes([0x15]) + bytes(12)])


def in_snappy_blocks(text: bytes) -> bytes:
    """As snappy-java's SnappyOutputStream writes it."""
    header = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") * 2
    blocks = [pa.Codec("snappy").compress(text[at : at + 100], asbytes=True) for at in range(0, len(text), 100)]
    return header + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".zstd": lambda text: bytes(pa.Codec("zstd").compress(text, asbytes=True)),
    ".lz4": in_lz4_blocks,
    ".snappy": in_snappy_blocks,
}


def rolled(folder: Path, *, suffix: str = "") -> Path:
    log = folder / "eventlog_v2_app-1"
    log.mkdir(parents=True)
    (log / "appstatus_app-1").write_text("", encoding="utf-8")
    for number, found in ((1, [START, added("1")]), (2, [completed(), ended()]), (10, [ended(), END])):
        text = "".join(json.dumps(each) + "\n" for each in found).encode()
        packed = COMPRESSED.get(suffix, bytes)(text)
        (log / f"events_{number}_app-1{suffix}").write_bytes(packed)
    return log


@pytest.mark.parametrize("suffix", ["", *COMPRESSED])
@pytest.mark.parametrize("parent", [True, False])
def test_a_rolling_log_is_read_in_order_also_compressed(tmp_path: Path, suffix: str, parent: bool) -> None:
    log = rolled(tmp_path / "logs", suffix=suffix)
    told = run("size", "--event-log", str(log.parent if parent else log), "-o", "json")
    assert told.code == 0, told.err
    assert json.loads(told.out)["runTimes"][1]["seconds"] == pytest.approx(60.0)


@pytest.mark.parametrize("suffix", COMPRESSED)
def test_a_compressed_log_that_still_grows_is_read_as_far_as_it_is_whole(tmp_path: Path, suffix: str) -> None:
    whole = "".join(json.dumps(each) + "\n" for each in [START, added("1"), completed(), ended(), *[ended()] * 2000])
    path = tmp_path / f"app-1{suffix}.inprogress"
    packed = COMPRESSED[suffix](whole.encode())
    path.write_bytes(packed[: len(packed) * 9 // 10])
    told = run("size", "--event-log", str(path))
    assert told.code == 0, told.err


def test_what_a_compacted_part_holds_is_not_read_twice(tmp_path: Path) -> None:
    log = rolled(tmp_path)
    parts = (log / "events_1_app-1", log / "events_2_app-1")
    (log / "events_2_app-1.compact").write_text("".join(part.read_text() for part in parts), encoding="utf-8")
    told = json.loads(run("size", "--event-log", str(log), "-o", "json").out)
    assert told["runTimes"][1]["seconds"] == pytest.approx(60.0)
    assert any("2 tasks" in line for line in told["read"])


def test_a_file_whose_number_is_none_ends_no_reading_of_its_log(tmp_path: Path) -> None:
    log = rolled(tmp_path)
    (log / "events_²_app-1").touch()
    assert run("size", "--event-log", str(log)).code == 0


def test_a_folder_with_one_log_is_that_log(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    events(tmp_path / "logs")
    assert run("size", "--event-log", str(tmp_path / "logs")).code == 0


def refused(*arguments: str) -> str:
    told: Ended = run("size", *arguments)
    assert told.code == exit_code(told.err)
    assert told.out == ""
    assert told.err.startswith("Error: ")
    return told.err


def test_a_folder_with_several_logs_or_none_is_asked_about(tmp_path: Path) -> None:
    assert "no event log in this folder" in refused("--event-log", str(tmp_path))
    events(tmp_path, "app-1")
    events(tmp_path, "app-2")
    assert "name one of app-1, app-2" in refused("--event-log", str(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no input"),
        (("--goal", "latency"), "no input"),
        (("-f", "absent.yaml"), "--filename: 'absent.yaml': No such file or directory"),
        (("--progress", "absent"), "--progress: 'absent': No such file or directory"),
        (("--event-log", "absent"), "--event-log: 'absent': No such file or directory"),
        (("--gc-log", "absent"), "--gc-log: 'absent': No such file or directory"),
        (("--gc-log", "absent", "--set", "rate"), "write NAME=VALUE"),
        (("--write-conf", "no/such/file"), "--write-conf: 'no/such/file': there is no folder no/such"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_option_and_a_remedy(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(*arguments)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("kind: [", "not readable as YAML"),
        ("kind: Pod", "0 SparkTopologies in it"),
        (yaml.safe_dump_all([topology(), topology()]), "2 SparkTopologies in it"),
        (yaml.safe_dump(topology()), "spec.sizing: '(absent)': set it (`ballast docs sizing` shows how)"),
        (yaml.safe_dump(topology({"goal": "Fun"})), "spec.sizing.goal: 'Fun'"),
    ],
)
def test_a_file_without_sizing_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(content, encoding="utf-8")
    assert words in refused("-f", str(path))


def test_several_problems_of_a_file_are_told_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(yaml.safe_dump(topology({"goal": "Fun", "recordBytes": -1})), encoding="utf-8")
    first, *problems = refused("-f", str(path)).splitlines()
    assert first == f"Error: {path}: SparkTopology clicks is not valid:"
    assert [problem.split(":")[0] for problem in problems] == ["  spec.sizing.goal", "  spec.sizing.recordBytes"]


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "progress"
    path.write_bytes(b"\xff\xfe\x00\x80")
    assert "not text" in refused("--progress", str(path))


def test_lzf_is_refused_with_a_compression_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "app-1.lzf"
    path.write_bytes(b"ZV\x00\x00\x01x")
    assert "spark.eventLog.compression.codec=zstd" in refused("--event-log", str(path))


def test_a_file_that_is_not_compressed_as_its_name_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "app-1.lz4"
    path.write_bytes(b"\x04\x22\x4d\x18 a frame of the lz4 program")
    assert "not compressed as its name says" in refused("--event-log", str(path))


def test_a_compressed_log_that_says_far_more_than_logs_do_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million tasks take 77 kB if they are alike, and hundreds of megabytes of memory."""
    path = tmp_path / "app-1.zstd"
    monkeypatch.setattr(log_files, "_LEAST_CHARACTERS", 1 << 20)
    line = json.dumps({"Event": "Other", "Details": " " * 2**10}) + "\n"
    path.write_bytes(pa.Codec("zstd").compress(line.encode() * 2000, asbytes=True))
    assert "it says more than 200 times of its length" in refused("--event-log", str(path))


def test_a_compressed_log_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "app-1.zstd"
    path.write_bytes(pa.Codec("zstd").compress(b"{}", asbytes=True))
    assert "install ballast-operator[spark]" in refused("--event-log", str(path))


def test_a_prometheus_that_does_not_answer_is_named() -> None:
    assert "http://127.0.0.1:1" in refused("--prometheus", "http://127.0.0.1:1")


def test_wrong_usage_exits_with_2() -> None:
    assert run("size", "--goal", "fun").code == 2
    assert run("size", "-o", "xml").code == 2


ANSWERS = {
    "timestamp": "600",
    "metrics_executor_totalCores": "8",
    "totalDuration": "9600",
    "inputRate": "1000",
    "totalInputBytes": "150000000",
}


def _of_one_application(query: str) -> Mapping[str, str]:
    value = "2" if "count by" in query else next((v for name, v in ANSWERS.items() if name in query), None)
    return {"spark-1": value} if value else {}


@pytest.fixture
def prometheus() -> Iterator[str]:
    with answering(_of_one_application) as url:
        yield url


def test_prometheus_gives_rate_task_time_and_executors(prometheus: str) -> None:
    found = json.loads(run("size", "--prometheus", prometheus, "-o", "json").out)
    values = {each["name"]: (each["value"], each["origin"]) for each in found["variables"]}
    assert values["rate"] == (1000, "Measured")
    assert values["recordSeconds"] == (0.016, "Measured")
    assert values["recordBytes"] == (250, "Measured")
    assert values["executors"] == (5, "Measured")
    assert found["headline"].startswith("Change the executors from 2 to 5 first")


def test_an_application_that_prometheus_does_not_know_is_refused(prometheus: str) -> None:
    told = refused("--prometheus", prometheus, "--application", "spark-2")
    assert "--application: 'spark-2'" in told
    assert "it has spark-1" in told


@pytest.mark.parametrize("option", ["--event-log", "--progress", "--gc-log"])
def test_a_line_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setattr(log_files, "_LONGEST_LINE_CHARACTERS", 1 << 20)
    path = tmp_path / "log"
    path.write_text("x" * (2 << 20), encoding="utf-8")
    found = run("size", option, str(path))
    assert found.code == 2
    assert "a line has more than 1 Mi characters" in found.err
