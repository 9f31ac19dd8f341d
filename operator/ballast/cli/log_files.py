"""Logs as Spark writes them: whole, rolled, cut off, or compressed with zstd, lz4 or snappy; gzip is what people add.

The compression is known by a file's first bytes, not by its name, to which Spark adds `.inprogress` and `.compact`.
Spark's lz4 is lz4-java's block stream, not the frame format of the lz4 program; its snappy is snappy-java's stream.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader, RawIOBase, TextIOWrapper
from math import inf
from pathlib import Path
from typing import IO, Any

from ballast.errors import InvalidField

_LONGEST_LINE_CHARACTERS = 256 << 20
"""Of a log: plans of SQL that Spark writes into one event have tens of megabytes."""
_MOST_TIMES, _LEAST_CHARACTERS = 200, 256 << 20
"""By how much a compressed file may grow, and what any may say. Event logs grow twenty times."""
_MOST_BLOCK_BYTES = 64 << 20
"""Spark's blocks have 32 KiB, and lz4-java's at most 32 MiB."""
_ZSTD, _LZ4, _SNAPPY, _LZF = b"\x28\xb5\x2f\xfd", b"LZ4Block", b"\x82SNAPPY\0", b"ZV"
_GZIP, _ZIP = b"\x1f\x8b", b"PK\x03\x04"
_SUFFIXES = (".zstd", ".zst", ".lz4", ".snappy", ".lzf", ".gz")
_OTHER_STATES = (".inprogress", ".compact")


def read(path: Path, option: str, reader: Any) -> Any:
    """What the reader makes of the file's lines. Raises InvalidField, naming the option."""
    with _opened(path, option) as file:
        try:
            return reader(_lines_of(file, path, option), str(path))
        except UnicodeDecodeError as error:
            raise InvalidField(option, str(path), "not text: name the right file") from error


def lines(parts: Sequence[Path], option: str) -> Iterator[str]:
    """Of all parts of a rolled log, one after the other."""
    for part in parts:
        with _opened(part, option) as file:
            yield from _lines_of(file, part, option)


def parts_of(folder: Path, option: str) -> list[Path]:
    """The files of one application's log, in order. Raises InvalidField for several applications."""
    rolling = [each for each in folder.iterdir() if each.is_dir() and each.name.startswith("eventlog_v2_")]
    single = [each for each in folder.iterdir() if each.is_file() and not each.name.startswith((".", "appstatus_"))]
    if folder.name.startswith("eventlog_v2_"):
        return _rolled([each for each in single if each.name.startswith("events_")])
    if len(rolling) + len(single) > 1:
        names = ", ".join(sorted(each.name for each in (*rolling, *single))[:5])
        raise InvalidField(option, str(folder), f"several logs in this folder: name one of {names}")
    return parts_of(rolling[0], option) if rolling else single


def _rolled(parts: Sequence[Path]) -> list[Path]:
    """From the last compacted one on, which holds what was before it."""
    ordered = sorted(parts, key=lambda part: (_place(part), not part.name.endswith(".compact")))
    compacted = max((_place(part) for part in parts if part.name.endswith(".compact")), default=None)
    if compacted is None:
        return ordered
    return [
        each
        for each in ordered
        if _place(each) > compacted or (each.name.endswith(".compact") and _place(each) == compacted)
    ]


def _place(part: Path) -> int:
    """events_2_… comes before events_10_…."""
    number = part.name.split("_")[1]
    return int(number) if number.isascii() and number.isdecimal() else 0


@contextmanager
def _opened(path: Path, option: str) -> Iterator[IO[str]]:
    try:
        with path.open("rb") as raw:
            start = raw.read(16)
            raw.seek(0)
            yield TextIOWrapper(_decompressed(start, raw, path, option), encoding="utf-8")
    except OSError as error:
        raise InvalidField(option, str(path), f"{error.strerror or error}; name a file that can be read") from error


def _decompressed(start: bytes, raw: BufferedReader, path: Path, option: str) -> Any:
    named = path.name
    for state in _OTHER_STATES:
        named = named.removesuffix(state)
    if start.startswith(_LZF) and named.endswith(".lzf"):
        remedy = "lzf is not read: write logs with spark.eventLog.compression.codec=zstd"
        raise InvalidField(option, str(path), remedy)
    if start.startswith(_ZIP):
        remedy = "it is a zip archive, as the history server gives it: unpack it, and name the log in it"
        raise InvalidField(option, str(path), remedy)
    if start.startswith(_GZIP):
        return BufferedReader(_Blocks(_gzip(raw)))
    blocks = {_ZSTD: _zstd, _LZ4: _lz4, _SNAPPY: _snappy}
    found = next((blocks[magic] for magic in blocks if start.startswith(magic)), None)
    if found is None:
        if start and named.endswith(_SUFFIXES):
            raise InvalidField(option, str(path), "it is not compressed as its name says: name the right file")
        return raw
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra, needed for compressed logs only
    except ImportError:
        remedy = "install ballast-operator[spark] to read compressed logs, or decompress it"
        raise InvalidField(option, str(path), remedy) from None
    return BufferedReader(_Blocks(found(pa, raw)))


class _Blocks(RawIOBase):
    """A file of the bytes that come in blocks. It ends where the first block is cut off, as in a log that grows."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._left = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._left = block
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count


def _gzip(raw: BufferedReader) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=raw) as stream:
        while True:
            try:
                block = stream.read1(1 << 16)
            except (EOFError, OSError, zlib.error):  # cut off, as below
                return
            if not block:
                return
            yield block


def _zstd(pa: Any, raw: BufferedReader) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(raw, "zstd")
    while True:
        try:
            block = stream.read(1 << 16)
        except OSError:  # cut off: what is whole has been read
            return
        if not block:
            return
        yield block


def _lz4(pa: Any, raw: BufferedReader) -> Iterator[bytes]:
    """Blocks of lz4-java: magic, a token with the method, both lengths, a checksum, and the data."""
    codec = pa.Codec("lz4_raw")
    while len(header := raw.read(21)) == 21 and header.startswith(_LZ4):
        stored, plain = (int.from_bytes(header[at : at + 4], "little") for at in (9, 13))
        data = raw.read(stored) if stored <= _MOST_BLOCK_BYTES else b""
        if len(data) < stored or plain > _MOST_BLOCK_BYTES:
            return
        if plain:
            yield data if header[8] & 0xF0 == 0x10 else codec.decompress(data, plain, asbytes=True)


def _snappy(pa: Any, raw: BufferedReader) -> Iterator[bytes]:
    """Blocks of snappy-java: the length of the data, and the data, which tells its own length when whole."""
    codec = pa.Codec("snappy")
    raw.read(16)
    while len(header := raw.read(4)) == 4:
        if header == _SNAPPY[:4]:  # another stream follows
            raw.read(12)
            continue
        stored = int.from_bytes(header, "big")
        data = raw.read(stored) if stored <= _MOST_BLOCK_BYTES else b""
        plain = _varint(data)
        if len(data) < stored or plain > _MOST_BLOCK_BYTES:
            return
        yield codec.decompress(data, plain, asbytes=True)


def _varint(data: bytes) -> int:
    value = 0
    for position, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * position)
        if byte < 0x80:
            break
    return value


def _lines_of(file: IO[str], path: Path, option: str) -> Iterator[str]:
    """Raises InvalidField for one that is longer than any of Spark's: what is compressed may be as long as it likes.

    Likewise for a file that says far more than what is compressed of logs.
    """
    compressed = isinstance(getattr(file.buffer, "raw", None), _Blocks)  # type: ignore[attr-defined]
    left = max(_LEAST_CHARACTERS, _MOST_TIMES * path.stat().st_size) if compressed else inf
    while line := file.readline(_LONGEST_LINE_CHARACTERS + 1):
        if len(line) > _LONGEST_LINE_CHARACTERS:
            told = f"a line has more than {_LONGEST_LINE_CHARACTERS >> 20} Mi characters: name the right file"
            raise InvalidField(option, str(path), told)
        left -= len(line)
        if left < 0:
            told = f"it says more than {_MOST_TIMES} times of its length: name the right file, or decompress it"
            raise InvalidField(option, str(path), told)
        yield line
