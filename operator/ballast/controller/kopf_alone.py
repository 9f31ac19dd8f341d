"""kopf, loaded without the Kubernetes client library.

kopf loads that library wherever it is installed, to recognize its classes and its logins. Ballast uses neither, and the
library's model classes take a tenth of the CPU seconds of a start. Here, importing it fails while kopf is loaded, as
if it were not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["kopf"]


@contextmanager
def _absent(library: str) -> Iterator[None]:
    modules: dict[str, Any] = sys.modules
    if library in modules:
        yield
        return
    modules[library] = None  # what the import system takes for "there is no such module"
    try:
        yield
    finally:
        del modules[library]


with _absent("kubernetes"):
    import kopf
