"""The program `ballast` as a version that knows few fields of status: older_version.py ARGUMENT..."""

from __future__ import annotations

from typing import Any

from ballast.kube import objects
from ballast.kube.client import Client
from ballast.kube.kinds import Kind

JSON = dict[str, Any]
KEPT = ("observedGeneration", "conditions", "phase", "reason", "timings", "subject", "replacement", "targetNodeName")
"""What the status of an older version has."""


def forget_new_fields() -> None:
    """Before anything else is loaded that writes a status."""
    write = objects.write_status

    def write_old(client: Client, kind: Kind, raw: JSON, status: JSON) -> JSON | None:
        return write(client, kind, raw, {name: value for name, value in status.items() if name in KEPT})

    objects.write_status = write_old  # type: ignore[assignment]


if __name__ == "__main__":
    forget_new_fields()
    from ballast.cli.main import main

    main()
