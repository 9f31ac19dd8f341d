"""`python -m benchmarks NAME…`: run benchmarks, each in its own process, and write build/bench/<name>.json.

Ends with 1 if a benchmark failed or missed an aim.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import result_file

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
    complaints = [complaint for name in (names() if "all" in chosen else chosen) for complaint in _run(name)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


def _run(name: str) -> list[str]:
    """What is wrong with the benchmark's run: it failed, or it missed aims."""
    print(f"== {name}", flush=True)
    result_file(name).unlink(missing_ok=True)
    module = f"benchmarks.{name.replace('-', '_')}"
    code = subprocess.run([sys.executable, "-m", module], check=False).returncode
    # Some end with 1 where an aim is missed, too: what they missed says more than that they ended so.
    missed = _missed(name)
    return missed or ([f"failed: {name}"] if code or not result_file(name).exists() else [])


def _missed(name: str) -> list[str]:
    """The aims that the results of this run miss; none where it wrote no results."""
    if not result_file(name).exists():
        return []
    return [
        f"missed: {name}: {each['case']}: {each['metric']}, aim {each['aim']}"
        for each in json.loads(result_file(name).read_text(encoding="utf-8"))["cases"]
        if each["met"] is False
    ]


if __name__ == "__main__":
    sys.exit(main())
