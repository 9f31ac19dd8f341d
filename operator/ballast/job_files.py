"""Which of Ballast's modules jobs import: routing, audit and the data source, and what these need.

They need neither kopf nor kubernetes, typer or pydantic. The wheel ballast-jobs and `ballast pyfiles` hold these alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

NEEDED = ("msgspec", "numpy", "pyarrow", "urllib3")
"""In addition to PySpark. Of the data source and PrometheusLoad also FOR_PROMETHEUS."""
FOR_PROMETHEUS = ("prometheus-api-client",)

_WHOLE = ("grouping", "spark/audit", "spark/routing", "spark/source")
_KUBE = (
    "__init__", "answer", "client", "clock", "connection", "document", "errors", "kinds", "kubeconfig", "names",
    "objects", "stream",
)  # fmt: skip
_PROMETHEUS = ("__init__", "client", "endpoint", "envelope", "preset", "series", "server", "session")
_OTHERS = (
    "__init__", "api/__init__", "api/version", "deadline", "enums", "errors", "files", "http_date",
    "spark/__init__", "spark/errors", "spark/file_system",
)  # fmt: skip


def job_files(package: Path) -> Iterator[Path]:
    """Relative to the package's folder, in order."""
    whole = {each.relative_to(package) for folder in _WHOLE for each in (package / folder).glob("*.py")}
    named = (*_OTHERS, *(f"kube/{name}" for name in _KUBE), *(f"prometheus/{name}" for name in _PROMETHEUS))
    yield from sorted({*whole, *(Path(f"{name}.py") for name in named)})
