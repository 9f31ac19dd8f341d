"""How an image's name becomes something that runs on this machine."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.kubelet.config import (
    CommandImage,
    HostImage,
    Image,
    KubeletConfig,
    NoiseImage,
    SparkImage,
)

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
"""Holds the environment and the sources that the console scripts in it import."""
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SPARK_HOME = "/opt/spark"
BUILT_IN: Mapping[str, Image] = {
    "host": HostImage(kind="host"),
    "noise": NoiseImage(kind="noise"),
    "pause": CommandImage(kind="command", command=["sleep", "infinity"]),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """The programs of this machine that containers run, and how they reach them."""

    python: str
    python_path: tuple[str, ...]
    java_home: str | None
    spark_home: str | None
    traversable: tuple[str, ...]
    """Folders on the way to them that other users may not pass; opened inside containers alone."""
    elsewhere: tuple[str, ...]
    """Those on another file system than the root, which an overlay of the root doesn't show."""
    places: tuple[str, ...] = ()
    """All of them. A volume mounted above one (at /tmp, say) would hide it."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A folder of the machine that appears, writable and for this container alone, at `path`."""

    path: str
    lower: str


@dataclass(frozen=True, slots=True)
class Folder:
    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class File:
    path: str
    content: str
    mode: int = 0o644
    append: bool = False


@dataclass(frozen=True, slots=True)
class Content:
    """An image on this machine: its entrypoint, environment and what it adds to the root file system."""

    entrypoint: tuple[str, ...]
    environment: Mapping[str, str]
    user: int = 0
    working_directory: str = "/"
    names_user: bool = False
    """Whether a user without a name gets one, as the entrypoint of the real image does."""
    layers: tuple[Layer, ...] = ()
    folders: tuple[Folder, ...] = ()
    files: tuple[File, ...] = ()


def _java_home() -> str | None:
    if found := shutil.which("java"):
        return str(Path(found).resolve().parent.parent)
    return None


def _closed_parents(path: Path) -> list[str]:
    return [str(parent) for parent in [path, *path.parents] if parent.is_dir() and not parent.stat().st_mode & 0o001]


def survey(config: KubeletConfig) -> Machine:
    """Find the interpreter, Java and Spark of this machine."""
    spec = importlib.util.find_spec("pyspark")
    spark_home = str(Path(spec.origin).parent) if spec and spec.origin else None
    java_home = _java_home()
    places = {Path(sys.prefix), Path(sys.base_prefix), Path(config.python).resolve().parent, REPOSITORY}
    places |= {Path(path) for path in (*config.python_path, spark_home, java_home) if path}
    root = Path("/").stat().st_dev
    return Machine(
        python=config.python,
        python_path=tuple(config.python_path),
        java_home=java_home,
        spark_home=spark_home,
        traversable=tuple(sorted({parent for place in places for parent in _closed_parents(place)})),
        elsewhere=tuple(sorted(str(p) for p in places if p.exists() and p.stat().st_dev != root)),
        places=tuple(sorted(str(p) for p in places if p.exists())),
    )


def find(name: str, images: Mapping[str, Image]) -> Image | None:
    """The entry for an image: its own name first, then the longest `prefix*`, then the built-in ones."""
    if name in images:
        return images[name]
    prefixes = [key for key in images if key.endswith("*") and name.startswith(key[:-1])]
    if prefixes:
        return images[max(prefixes, key=len)]
    return BUILT_IN.get(name.rpartition("/")[2].partition(":")[0])


def base_environment(machine: Machine) -> dict[str, str]:
    environment = {"PATH": f"{Path(machine.python).parent}:{SEARCH_PATH}"}
    if machine.python_path:
        environment["PYTHONPATH"] = ":".join(machine.python_path)
    return environment


def content(image: Image, machine: Machine) -> Content:
    """What an image is on this machine."""
    environment = base_environment(machine) | image.env
    match image:
        case SparkImage():
            return _spark(image, machine, environment)
        case NoiseImage():
            program = (machine.python, "-I", "-S", str(HERE / "noise.py"))
            return Content(program, environment, image.user)
        case CommandImage():
            return Content(tuple(image.command), environment, image.user)
        case HostImage():
            return Content((), environment, image.user)


def _program(path: str, source: str, machine: Machine) -> File:
    return File(path, f"#!{machine.python} -IS\n" + (HERE / source).read_text(), 0o755)


def _spark(image: SparkImage, machine: Machine, environment: Mapping[str, str]) -> Content:
    if machine.spark_home is None or machine.java_home is None:
        raise FileNotFoundError("the image kind `spark` needs Java on PATH and the Python package pyspark")
    archives = Path(machine.spark_home, "python", "lib").glob("*.zip")
    python_path = [f"{SPARK_HOME}/python/lib/{archive.name}" for archive in archives]
    return Content(
        entrypoint=("/opt/entrypoint.sh",),
        environment={
            **environment,
            "SPARK_HOME": SPARK_HOME,
            "JAVA_HOME": machine.java_home,
            "PYSPARK_PYTHON": machine.python,
            "PYSPARK_DRIVER_PYTHON": machine.python,
            "PYTHONPATH": ":".join([*python_path, *machine.python_path]),
            **image.env,
        },
        user=image.user,
        working_directory=f"{SPARK_HOME}/work-dir",
        names_user=True,
        layers=(Layer(SPARK_HOME, machine.spark_home),),
        files=(
            _program("/opt/entrypoint.sh", "spark_entrypoint.py", machine),
            _program("/opt/decom.sh", "spark_decommission.py", machine),
        ),
        # As in the real image, whose user 185 is of the root group.
        folders=(Folder(f"{SPARK_HOME}/work-dir", 0o775),),
    )
