"""`python -m tests.testbed.kubelet --config FILE` (see README.md for the file)."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from pathlib import Path

from tests.testbed.kubelet.config import KubeletConfig
from tests.testbed.kubelet.kubelet import serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.testbed.kubelet", description="The process kubelet.")
    parser.add_argument("--config", type=Path, required=True, help="the configuration, a JSON file")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    level = logging.DEBUG if arguments.verbose else logging.INFO
    logging.basicConfig(level=level, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    return asyncio.run(serve(KubeletConfig.load(arguments.config)))


if __name__ == "__main__":
    sys.exit(main())
