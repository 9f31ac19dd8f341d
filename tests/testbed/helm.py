"""Calling the testbed's own helm."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.testbed.errors import TestbedError


@dataclass(frozen=True, slots=True)
class Helm:
    """helm with one kubeconfig; what it keeps goes to `home`, not to the user's."""

    binary: Path
    kubeconfig: Path
    home: Path

    def run(self, *arguments: str) -> str:
        """Its output; TestbedError with helm's own words when it fails."""
        kept = {f"HELM_{kind}_HOME": str(self.home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [str(self.binary), *arguments],
            env={**os.environ, **kept, "KUBECONFIG": str(self.kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise TestbedError(f"helm {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout
