"""The kernel's part is tried for real: needs root and a cgroup2 mount, as the testbed does."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.kubelet import cgroups
from tests.testbed.kubelet.binding import confine

ADDRESS = "127.77.7.7"
BIND = """
import socket, sys
open(sys.argv[1], "w").write("0")
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
made = socket.socket(family)
if family == socket.AF_INET6:
    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
made.bind((sys.argv[2], int(sys.argv[3])))
print(made.getsockname()[0])
"""


@pytest.fixture
def group() -> Iterator[Path]:
    machine = cgroups.detect(Path("/proc/self/mounts").read_text())
    folder = machine.unified("ballast-test-binding")
    assert folder is not None
    folder.mkdir()
    yield folder
    folder.rmdir()


@pytest.mark.parametrize(
    ("asked", "port", "bound"),
    [
        ("0.0.0.0", 18123, ADDRESS),
        ("::", 18123, f"::ffff:{ADDRESS}"),
        ("127.0.0.1", 18123, "127.0.0.1"),
        ("::1", 18123, "::1"),
        ("0.0.0.0", 0, "0.0.0.0"),
        ("::", 0, "::"),
    ],
)
def test_listening_everywhere_means_at_the_pods_address(group: Path, asked: str, port: int, bound: str) -> None:
    assert confine(group, ADDRESS)
    arguments = [str(group / "cgroup.procs"), asked, str(port)]
    done = subprocess.run([sys.executable, "-c", BIND, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == bound
