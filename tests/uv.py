"""uv, as scripts/setup.sh finds it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def uv() -> Path:
    done = subprocess.run(
        ["sh", "scripts/setup.sh", "--print-uv"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())
