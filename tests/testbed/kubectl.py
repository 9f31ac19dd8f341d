"""Calling the testbed's own kubectl."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import TestbedError


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one kubeconfig; its cache stays in `cache`, not in the user's home."""

    binary: Path
    kubeconfig: Path
    cache: Path

    def run(
        self, *arguments: str, input_text: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """The finished call; with `check`, TestbedError with kubectl's own words when it failed."""
        done = subprocess.run(
            [str(self.binary), *arguments],
            input=input_text,
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise TestbedError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done

    def environment(self) -> Mapping[str, str]:
        """What a process needs to reach the same cluster as the same user."""
        return {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.cache)}

    def apply(self, manifest: str, *, field_manager: str = "testbed") -> None:
        """Server-side apply of YAML or JSON documents."""
        self.run(
            "apply",
            "--server-side",
            "--force-conflicts",
            f"--field-manager={field_manager}",
            "-f",
            "-",
            input_text=manifest,
        )
