import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.testbed import instance as instances
from tests.testbed.instance import Instance, free_port, release, reserve


def test_parallel_callers_get_different_testbeds(tmp_path: Path) -> None:
    root = tmp_path / "testbeds"
    with ThreadPoolExecutor(8) as pool:
        reserved = list(pool.map(lambda _: reserve(root), range(8)))

    assert len({each.number for each in reserved}) == 8
    assert len({each.control_address for each in reserved}) == 8


def test_a_released_number_is_free_again_and_the_last_one_takes_the_root_along(tmp_path: Path) -> None:
    root = tmp_path / "testbeds"
    first, second = reserve(root), reserve(root)

    release(first)
    again = reserve(root)
    assert again.number == first.number

    release(again)
    release(second)
    assert not root.exists()


def test_a_number_whose_address_serves_another_testbed_is_passed_over(tmp_path: Path) -> None:
    free = reserve(tmp_path)
    release(free)
    with socket.create_server((free.control_address, 6443)):
        assert reserve(tmp_path).number != free.number


def test_two_testbeds_share_no_address_and_no_name(tmp_path: Path) -> None:
    one, other = Instance(1, tmp_path / "1"), Instance(11, tmp_path / "11")

    def names(each: Instance) -> set[str]:
        nodes = {each.node_address(index) for index in range(3)} | {each.pod_network(index) for index in range(3)}
        return nodes | {each.control_address, each.cgroup_prefix, each.link_prefix}

    assert names(one).isdisjoint(names(other))
    assert not other.link_prefix.startswith(one.link_prefix)


def test_a_taken_port_gives_way_to_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        assert free_port("127.0.0.1", preferred=taken) != taken


def test_a_free_port_is_given_once_and_to_no_outgoing_connection() -> None:
    """An operator ended at its start, since a connection had got the port that was chosen for its metrics."""
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = [free_port("127.0.0.1") for _ in range(50)]
    assert len(set(found)) == 50
    assert max(found) < first_outgoing


@pytest.mark.parametrize("owner_alive", [True, False])
def test_a_testbed_is_abandoned_once_its_starter_is_gone(tmp_path: Path, *, owner_alive: bool) -> None:
    instance = reserve(tmp_path)
    manifest = instance.manifest.path
    if not owner_alive:
        manifest.write_text('{"kind": "owner", "pid": 1, "startTicks": 123456789}\n')

    assert instance.manifest.is_abandoned() is not owner_alive


def test_a_detached_testbed_is_not_abandoned(tmp_path: Path) -> None:
    instance = reserve(tmp_path)
    instance.manifest.path.write_text('{"kind": "owner", "pid": 1, "startTicks": 123456789}\n')
    instance.manifest.record_detached()

    assert not instance.manifest.is_abandoned()


def test_a_line_that_a_crash_cut_short_is_ignored(tmp_path: Path) -> None:
    instance = reserve(tmp_path)
    instance.manifest.record_details({"url": "https://one"})
    with instance.manifest.path.open("a") as handle:
        handle.write('{"kind": "details", "deta')

    assert instance.manifest.details() == {"url": "https://one"}


def test_there_is_nothing_where_no_testbed_was_started(tmp_path: Path) -> None:
    assert instances.existing(tmp_path / "none") == []
