"""Checks the project's prose against `tests/prose/rules`: docs, comments, docstrings, messages and test names.

Spelling is codespell's part: its settings are in pyproject.toml.

    python -m tests.prose [PATH ...]

Prints one line per finding with its remedy, and ends with 1 if there are any.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.prose.rule import all_rules
from tests.prose.text import pieces

ROOT = Path(__file__).parents[2]
SUFFIXES = {".md", ".py", ".yaml", ".sh", ".tpl", ".toml"}
# Other projects' words: recorded data, and license texts. CRDs are generated from `operator/ballast/api`.
SKIPPED = ("tests/vectors/data", "tests/prose/rules", "crds/", "charts/ballast/crds/", "uv.lock")


def main(arguments: Sequence[str]) -> int:
    rules, names = all_rules(), tracked(arguments)
    found = 0
    for name in names:
        concerned = [rule for rule in rules if rule.concerns(name)]
        for piece in pieces(ROOT / name):
            for rule in concerned:
                for line, remedy in rule.findings(piece):
                    print(f"{name}:{line}: {rule.name}: {remedy}")
                    found += 1
    if found:
        print(f"{found} findings; the rules and their examples are in tests/prose/rules", file=sys.stderr)
    spelled = subprocess.run([Path(sys.executable).parent / "codespell", *names], cwd=ROOT, check=False)
    return 1 if found or spelled.returncode else 0


def tracked(paths: Sequence[str]) -> list[str]:
    """Files with prose that git knows, or is about to."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *paths]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    return [
        name
        for name in names
        if Path(name).suffix in SUFFIXES and not name.startswith(SKIPPED) and (ROOT / name).exists()
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
