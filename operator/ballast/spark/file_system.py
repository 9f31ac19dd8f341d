"""A folder on any file system that Hadoop knows, and files that take their place there in one moment."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ballast.errors import InvalidField

_OBJECT_STORES = frozenset({"s3a", "s3", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs"})
_ABANDONED_SECONDS = 3600.0
"""A file takes its place seconds after it was begun."""
_STAGING = "_staging-"
"""Readers of Parquet pass over names that begin with an underscore."""
_WILD = re.compile(r"[\\*?\[\]{}]")


class FileSystem:
    """`root`: a local path, or a URI. Paths are Hadoop's own. `now`: seconds since 1970."""

    def __init__(self, spark: SparkSession, root: str, *, now: Callable[[], float] = time.time) -> None:
        self._spark, self._given, self._now = spark, root, now
        self._classes: dict[str, Any] = {}
        self.jvm: Any = spark._jvm  # noqa: SLF001 -- PySpark shows Hadoop's file systems in no other way
        conf = spark._jsc.hadoopConfiguration()  # noqa: SLF001 -- as above
        path = self.hadoop("fs.Path")(root)
        self.system = path.getFileSystem(conf)
        self.root = self.system.makeQualified(path)
        self._local = local(self.root) if self.root.toUri().getScheme() == "file" else None

    def below(self, name: str) -> Any:
        return self.hadoop("fs.Path")(self.root, name)

    def staging(self) -> Any:
        """A free path, to write something next to its place."""
        return self.below(_staging_name())

    def found(self, pattern: str) -> list[Any]:
        """Paths below the root that match; the root's own name is no pattern."""
        return [status.getPath() for status in self._matching(pattern)]

    def sizes(self, pattern: str) -> list[tuple[Any, int | None]]:
        """The same, each with its bytes; None for a folder."""
        matching = self._matching(pattern)
        return [(each.getPath(), None if each.isDirectory() else each.getLen()) for each in matching]

    def literal(self, path: Any) -> Any:
        """The pattern that this path alone matches, for what takes patterns: so do Spark's readers."""
        uri = path.toUri()
        name = _WILD.sub(r"\\\g<0>", uri.getPath())
        return self.hadoop("fs.Path")(uri.getScheme(), uri.getAuthority(), name)

    def discard(self, path: Any) -> None:
        self.system.delete(path, True)

    @contextmanager
    def alone(self, *, field: str, remedy: str) -> Iterator[None]:
        """Excludes other processes meanwhile; removes what a program that was killed has left next to its place.

        Raises InvalidField, of the option that names the folder, while another program is in here, with `remedy`, and
        where there can be no such folder. That can be told on a local file system; elsewhere all go on, and what one
        has just written stays. The lock ends with the program, however that ends.
        """
        lock = self._lock(field, remedy)
        try:
            self._clean(older_than_seconds=_ABANDONED_SECONDS if lock is None else 0.0)
            yield
        finally:
            if lock is not None:
                os.close(lock)

    def _lock(self, field: str, remedy: str) -> int | None:
        if self._local is None:
            return None
        try:
            self._local.mkdir(parents=True, exist_ok=True)
            folder = os.open(self._local, os.O_RDONLY)
        except OSError as error:
            raise InvalidField(field, self._given, f"{error.strerror}: name a folder that can be written") from error
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(folder)
            raise InvalidField(field, self._given, remedy) from error
        return folder

    def _clean(self, *, older_than_seconds: float) -> None:
        """Of what was written so long ago, at least; by the clocks of this machine and of the storage."""
        for status in self._matching(f"{_STAGING}*"):
            if self._now() - status.getModificationTime() / 1000 >= older_than_seconds:
                self.discard(status.getPath())

    def _matching(self, pattern: str) -> Iterable[Any]:
        return self.system.globStatus(self.hadoop("fs.Path")(self.literal(self.root), pattern)) or ()

    def replace(self, file: Any, place: Any) -> None:
        """The file takes the place of what is there, in one moment, by the means of each kind of file system."""
        self.system.mkdirs(place.getParent())
        scheme = place.toUri().getScheme()
        if scheme == "file":
            # Hadoop would delete what is there first.
            local(file).replace(local(place))
        elif scheme in _OBJECT_STORES:
            # A rename deletes first there too; but an object is there when it is whole, in place of the old one.
            conf = self.system.getConf()
            self.hadoop("fs.FileUtil").copy(self.system, file, self.system, place, False, True, conf)
        else:
            conf = self.system.getConf()
            self.hadoop("fs.FileContext").getFileContext(self.root.toUri(), conf).rename(
                file, place, self._overwriting()
            )

    def put(self, file: Path, place: Any) -> None:
        """A copy of this machine's file takes that place, in one moment."""
        if self._local is not None:
            self._put_here(file, local(place), self._local)
            return
        staged = self.staging()
        try:
            self.system.copyFromLocalFile(False, True, self.hadoop("fs.Path")(file.as_uri()), staged)
            self.replace(staged, place)
        finally:
            self.discard(staged)

    def _put_here(self, file: Path, place: Path, root: Path) -> None:
        """Without a call of the JVM."""
        place.parent.mkdir(parents=True, exist_ok=True)
        staged = root / _staging_name()
        try:
            shutil.copyfile(file, staged)
            staged.replace(place)
        finally:
            staged.unlink(missing_ok=True)

    def fetched(self, path: Any, folder: Path) -> Path:
        """The file on this machine: itself, or a copy in `folder`."""
        if path.toUri().getScheme() == "file":
            return local(path)
        copy = folder / str(path.getName())
        # Without Hadoop's file of checksums next to it.
        self.system.copyToLocalFile(False, path, self.hadoop("fs.Path")(copy.as_uri()), True)
        return copy

    def hadoop(self, name: str) -> Any:
        if name not in self._classes:
            # Each step asks the JVM, which takes longer than what the class is asked for.
            found = self.jvm.org.apache.hadoop
            for step in name.split("."):
                found = getattr(found, step)
            self._classes[name] = found
        return self._classes[name]

    def _overwriting(self) -> Any:
        kind = self.hadoop("fs.Options$Rename")
        options = self._spark.sparkContext._gateway.new_array(kind, 1)  # type: ignore[union-attr]  # noqa: SLF001 -- as above
        options[0] = kind.OVERWRITE
        return options


def _staging_name() -> str:
    return f"{_STAGING}{uuid.uuid4().hex}"


def local(path: Any) -> Path:
    """Hadoop's path of a file of this machine."""
    return Path(str(path.toUri().getPath()))
