"""The kernel's part is tried for real: needs root and a cgroup2 mount, as the testbed does."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.kubelet import cgroups
from tests.testbed.kubelet.binding import confine, redirect
from tests.testbed.kubelet.traffic import Counters

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
    confine(group, ADDRESS)
    arguments = [str(group / "cgroup.procs"), asked, str(port)]
    done = subprocess.run([sys.executable, "-c", BIND, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == bound


CONNECT = """
import socket, sys
open(sys.argv[1], "w").write("0")
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
made = socket.socket(family)
made.settimeout(5)
made.connect((sys.argv[2], 443))
print(made.recv(5).decode())
"""


@pytest.mark.parametrize("asked", ["10.96.0.1", "::ffff:10.96.0.1"])
def test_the_api_servers_cluster_address_leads_to_where_it_is(group: Path, asked: str) -> None:
    with socket.create_server((ADDRESS, 0)) as server:
        redirect(group, service=("10.96.0.1", 443), server=server.getsockname())
        command = [sys.executable, "-c", CONNECT, str(group / "cgroup.procs"), asked]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            server.settimeout(10)
            connection, _ = server.accept()
            connection.sendall(b"hello")
            connection.close()
            assert client.communicate()[0] == "hello\n"


TALK = """
import socket, sys
open(sys.argv[1], "w").write("0")
with socket.create_server((sys.argv[2], 0)) as server:
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    client.sendall(bytes(100_000))
    left = 100_000
    while left:
        left -= len(accepted.recv(left))
"""


@pytest.mark.parametrize(("address", "counted"), [(ADDRESS, True), ("127.0.0.1", False)])
def test_traffic_is_counted_unless_it_stays_within_the_pod(group: Path, address: str, counted: bool) -> None:
    counters = Counters(group)
    subprocess.run([sys.executable, "-c", TALK, str(group / "cgroup.procs"), address], check=True)
    found = counters.read()
    counters.close()
    assert (found.received_bytes > 100_000) is counted
    assert (found.sent_bytes > 100_000) is counted
    assert (found.received_packets > 0) is counted
