"""Decoders of msgspec's structs are built while one thread runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "operator" / "ballast"
STRUCT = re.compile(r"^class (\w+)\(msgspec\.Struct", re.MULTILINE)
SOURCES = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
STRUCTS = sorted({name for text in SOURCES.values() for name in STRUCT.findall(text)})


def test_there_are_structs() -> None:
    assert {"Page", "_Event", "_Envelope"} <= set(STRUCTS)


@pytest.mark.parametrize("name", STRUCTS)
def test_no_struct_is_decoded_by_a_decoder_that_is_built_when_it_is_needed(name: str) -> None:
    """Several threads that do so at once end the process by SIGSEGV: msgspec 0.22 fills the type in while they read."""
    found = [str(path) for path, text in SOURCES.items() if re.search(rf"decode\([^)]*type={name}\b", text)]
    assert found == []
