"""`python -m benchmarks NAME…`: run benchmarks, each in a process of its own, and write build/bench/<name>.json."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

_NOT_BENCHMARKS = {"__init__", "__main__", "report"}


def names() -> list[str]:
    """The modules of this package that are benchmarks."""
    found = {path.stem for path in Path(__file__).parent.glob("*.py")} - _NOT_BENCHMARKS
    return sorted(name.replace("_", "-") for name in found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", default=["all"], help=f"all, or some of: {', '.join(names())}")
    chosen = parser.parse_args().names
    unknown = sorted(set(chosen) - set(names()) - {"all"})
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are: {', '.join(names())}")
    failed = []
    for name in names() if "all" in chosen else chosen:
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name.replace('-', '_')}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
