"""YuniKorn's scheduler, the real one, as a process of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.testbed.binaries import find_binaries
from tests.testbed.testbed import Testbed

NAME = "yunikorn"
"""Of the scheduler, its binary and its namespace."""
_QUEUES = """
partitions:
- name: default
  placementrules: [{name: tag, value: namespace, create: true}]
  queues: [{name: root, submitacl: "*"}]
"""


@contextmanager
def yunikorn(testbed: Testbed, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """YuniKorn at work, with a queue for each namespace. It binds pods that name it, and no others."""
    binary = find_binaries([NAME], progress=print)[NAME]
    testbed.create_namespace(NAME)
    metadata = {"name": "yunikorn-configs", "namespace": NAME}
    testbed.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"queues.yaml": _QUEUES}})
    with (folder / "yunikorn.log").open("wb") as output:
        process = subprocess.Popen(
            [str(binary)],
            cwd=folder,
            stdout=output,
            stderr=output,
            env={"PATH": os.environ["PATH"], "KUBECONFIG": str(testbed.kubeconfig), "NAMESPACE": NAME},
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(timeout=60)
