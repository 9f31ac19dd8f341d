from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from tests import vectors
from tests.vectors.case import files


def compared() -> Iterator[tuple[str, str]]:
    """System and class of every comparison in this folder."""
    for module in pkgutil.iter_modules(vectors.__path__):
        if module.name.startswith("test_"):
            functions = vars(importlib.import_module(f"tests.vectors.{module.name}")).values()
            marks = (mark for function in functions for mark in getattr(function, "pytestmark", ()))
            yield from (mark.args for mark in marks if mark.name == "vectors")


def test_the_set_holds_cases(root: Path) -> None:
    assert files(root)


def test_every_file_of_the_set_is_compared(root: Path) -> None:
    assert files(root).keys() - set(compared()) == set()
