#!/bin/sh
# Spark 4.3.0's event log in zstd, read by python-zstandard 0.25.0.
#
# Guess: the file is one zstd stream, so decompress() returns the whole log or raises.
# Seen:  it is a series of frames, since Spark closes a frame at each flush. decompress() and read(SIZE) return
#        the first frame alone, which is one line (SparkListenerLogStart), without an error; read() without a size
#        returns all. A reader that counts executors in one call sees none, and no sign that something is missing.
# Output on 2026-11-29: frames 31; decompress() 1, read(1 MiB) 1, read() 47, zstd -dc 47.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pyspark==4.3.0 zstandard==0.25.0
"$folder/env/bin/python" - "$folder/log" <<'PYTHON'
import sys
from pathlib import Path

import zstandard
from pyspark import SparkContext
from pyspark.sql import SparkSession

folder = Path(sys.argv[1])
folder.mkdir()
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", folder.as_uri())
    .config("spark.eventLog.compress", "true")
    .config("spark.eventLog.compression.codec", "zstd")
    .getOrCreate()
)
for _ in range(5):
    spark.range(10).collect()
spark.stop()
SparkContext._gateway.proc.stdin.close()
SparkContext._gateway.proc.wait()

(log,) = folder.glob("*/events_1_*.zstd")
data = log.read_bytes()
reader = zstandard.ZstdDecompressor()
with log.open("rb") as file:
    in_one_read = reader.stream_reader(file).read(1 << 20)
with log.open("rb") as file:
    to_the_end = reader.stream_reader(file).read()
lines = {
    "decompress()": len(reader.decompress(data, max_output_size=1 << 26).splitlines()),
    "read(1 MiB)": len(in_one_read.splitlines()),
    "read()": len(to_the_end.splitlines()),
}
frames = data.count((0xFD2FB528).to_bytes(4, "little"))
print("frames", frames, lines)
assert b"SparkListenerApplicationEnd" in to_the_end
assert frames > 10, "the log has few frames now"
assert lines["decompress()"] == lines["read(1 MiB)"] == 1 < lines["read()"], "all of it is returned now"
PYTHON
echo "as stated"
