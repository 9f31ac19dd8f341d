"""Files where Spark keeps them, as Python's own workers open them. The JVM is not asked, so Spark Connect will do."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ballast.errors import InvalidField

_URI = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):(?://(?P<authority>[^/]*))?(?P<path>/.*|\Z)", re.DOTALL)
_WILD = re.compile(r"[\\*?\[\]{}]")
_S3 = frozenset({"s3a", "s3", "s3n"})
_S3A = "spark.hadoop.fs.s3a."
_OF_S3A = ("access.key", "secret.key", "session.token", "endpoint", "endpoint.region", "connection.ssl.enabled")


def qualified(path: str) -> str:
    """The path as Hadoop writes it, without an end that says folder. One without a scheme is of this machine."""
    found = _URI.fullmatch(path)
    if found is None:
        return f"file:{Path(path).absolute()}"
    place = found["path"].rstrip("/")
    scheme, authority = found["scheme"].lower(), found["authority"] or ""
    return f"{scheme}://{authority}{place}" if authority else f"{scheme}:{place}"


def literal(uri: str) -> str:
    """The pattern that this path alone matches: Spark's readers take patterns."""
    return _WILD.sub(r"\\\g<0>", uri)


def local(uri: str) -> Path | None:
    """The file of this machine; None for one of another file system."""
    return Path(uri.removeprefix("file:")) if uri.startswith("file:") else None


@dataclass(frozen=True, slots=True)
class Storage:
    """How to reach files from where Python runs. It travels with tasks."""

    s3a: Mapping[str, str]
    """Spark's settings of S3A that Arrow has, too; what is not set is found as AWS' own programs find it."""

    @classmethod
    def of(cls, spark: SparkSession) -> Storage:
        settings = {name: spark.conf.get(_S3A + name, None) for name in _OF_S3A}
        return cls({name: value for name, value in settings.items() if value is not None})

    def opened(self, uri: str) -> tuple[fs.FileSystem, str]:
        """The file system of a qualified path, and what the path is called there."""
        found = _URI.fullmatch(uri)
        if found is None or found["scheme"] == "file":
            return fs.LocalFileSystem(), uri.removeprefix("file:")
        if found["scheme"] in _S3:
            return self._of_s3(), f"{found['authority']}{found['path']}"
        system, root = fs.FileSystem.from_uri(f"{found['scheme']}://{found['authority'] or ''}/")
        return system, f"{root.rstrip('/')}{found['path']}"

    def _of_s3(self) -> fs.S3FileSystem:
        given = self.s3a
        scheme, separator, host = given.get("endpoint", "").rpartition("://")
        plain = scheme == "http" or (not separator and given.get("connection.ssl.enabled") == "false")
        return fs.S3FileSystem(
            access_key=given.get("access.key"),
            secret_key=given.get("secret.key"),
            session_token=given.get("session.token"),
            endpoint_override=host or None,
            region=given.get("endpoint.region"),
            scheme="http" if plain else "https",
        )


@contextmanager
def alone(path: str, *, field: str, remedy: str) -> Iterator[None]:
    """Excludes other programs from a folder of this machine meanwhile; of other file systems this can't be told.

    Raises InvalidField, of the option that names the folder, while another program is in here, with `remedy`, and
    where there can be no such folder. The lock ends with the program, however that ends.
    """
    here = local(qualified(path))
    if here is None:
        yield
        return
    try:
        here.mkdir(parents=True, exist_ok=True)
        folder = os.open(here, os.O_RDONLY)
    except OSError as error:
        raise InvalidField(field, path, f"{error.strerror}: name a folder that can be written") from error
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(folder)
        raise InvalidField(field, path, remedy) from error
    try:
        yield
    finally:
        os.close(folder)


def parquet(spark: SparkSession, uri: str, schema: StructType) -> DataFrame:
    """What Parquet below a qualified path holds, by this schema; nothing where there is no such path."""
    try:
        found = spark.read.schema(schema).parquet(literal(uri))
        # Spark Connect looks for the path when something is asked of the frame.
        _ = found.schema
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return spark.createDataFrame([], schema)
    return found
