"""The end of `ballast run`."""

from __future__ import annotations

import subprocess
import sys

import pytest

HANGING = """
import threading
from ballast.cli.run import leave
threading.Thread(target=threading.Event().wait, daemon={daemon}).start()
leave()
print("goes on")
"""


@pytest.mark.parametrize(("daemon", "said"), [(False, ""), (True, "goes on\n")])
def test_a_request_that_hangs_keeps_no_process_alive(*, daemon: bool, said: str) -> None:
    script = HANGING.format(daemon=daemon)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == said
