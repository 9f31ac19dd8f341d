# Nothing else runs in these tests' event loop: they may block it.
# ruff: noqa: ASYNC220, ASYNC240

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testbed.kubelet import cgroups
from tests.testbed.kubelet.cgroups import Cgroups, CgroupsV1, CgroupsV2

V1_MOUNTS = """\
cgroup /c/cpu cgroup rw,cpu,cpuacct 0 0
cgroup /c/memory cgroup rw,memory 0 0
cgroup2 /c/unified cgroup2 rw 0 0
"""


def test_hierarchies_of_their_own_are_preferred_where_they_have_the_controllers() -> None:
    found = cgroups.detect(V1_MOUNTS)
    assert found == CgroupsV1(Path("/c/cpu"), Path("/c/cpu"), Path("/c/memory"), Path("/c/unified"))


def test_otherwise_the_unified_hierarchy_is_used() -> None:
    assert cgroups.detect("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n") == CgroupsV2(Path("/sys/fs/cgroup"))


def test_a_machine_without_cgroups_is_told_what_to_mount() -> None:
    with pytest.raises(RuntimeError, match="mount cgroup2"):
        cgroups.detect("tmpfs / tmpfs rw 0 0\n")


@pytest.fixture
def unified(tmp_path: Path) -> CgroupsV2:
    made = CgroupsV2(tmp_path)
    made.create("t/node")
    return made


def test_v2_enables_controllers_on_the_way_down(unified: CgroupsV2, tmp_path: Path) -> None:
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert (tmp_path / "t" / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert not (tmp_path / "t" / "node" / "cgroup.subtree_control").exists()


def test_v2_limits_are_written_as_the_kernel_wants_them(unified: CgroupsV2, tmp_path: Path) -> None:
    unified.set_quota("t/node", 0.25)
    unified.set_memory_limit("t/node", 1 << 20)
    folder = tmp_path / "t" / "node"
    assert (folder / "cpu.max").read_text() == "25000 100000"
    assert (folder / "memory.max").read_text() == "1048576"


@pytest.mark.parametrize(("cores", "weight"), [(0.0, 1), (1.0, 39), (256.0, 10000)])
def test_v2_weights_follow_from_requests(unified: CgroupsV2, tmp_path: Path, cores: float, weight: int) -> None:
    unified.set_shares("t/node", cores)
    assert (tmp_path / "t" / "node" / "cpu.weight").read_text() == str(weight)


def test_v2_figures_are_read_in_seconds_and_bytes(unified: CgroupsV2, tmp_path: Path) -> None:
    folder = tmp_path / "t" / "node"
    (folder / "cpu.stat").write_text(
        "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n"
        "nr_periods 9\nnr_throttled 2\nthrottled_usec 500000\n"
    )
    (folder / "memory.current").write_text("900\n")
    (folder / "memory.max").write_text("max\n")
    (folder / "memory.stat").write_text("anon 500\nfile 300\ninactive_file 100\n")
    (folder / "memory.events").write_text("oom 1\noom_kill 1\n")
    (folder / "cpu.pressure").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n")
    assert unified.cpu("t/node") == cgroups.CpuUse(3.0, 2.0, 1.0, 9, 2, 0.5)
    assert unified.memory("t/node") == cgroups.MemoryUse(900, 800, 500, 300, 0)
    assert unified.oom_kills("t/node") == 1
    assert unified.pressure_seconds("t/node", "cpu", "some") == 0.25
    assert unified.pressure_seconds("t/node", "cpu", "full") is None


def test_a_group_that_has_gone_reads_as_nothing(unified: CgroupsV2) -> None:
    assert unified.cpu("t/gone") == cgroups.CpuUse()
    assert unified.members("t/gone") == set()


@pytest.fixture
def real() -> Iterator[Cgroups]:
    """This machine's cgroups."""
    made = cgroups.detect(Path("/proc/self/mounts").read_text())
    made.create("ballast-test/node/pod")
    yield made
    cgroups.kill(made, "ballast-test")
    made.remove("ballast-test")


SPIN = "import sys, time\nfor f in sys.argv[1:]: open(f, 'w').write('0')\nwhile time.process_time() < 0.4: pass\n"


def test_use_is_counted_for_the_group_and_all_above_it(real: Cgroups) -> None:
    subprocess.run([sys.executable, "-c", SPIN, *real.entry_files("ballast-test/node/pod")], check=True)
    pod, node = real.cpu("ballast-test/node/pod"), real.cpu("ballast-test/node")
    assert 0.2 < pod.used_seconds < 1.0
    assert node.used_seconds == pytest.approx(pod.used_seconds, abs=0.05)


@pytest.mark.soak
def test_a_quota_slows_what_is_in_the_group(real: Cgroups) -> None:
    real.set_quota("ballast-test/node", 0.2)
    subprocess.run([sys.executable, "-c", SPIN, *real.entry_files("ballast-test/node/pod")], check=True)
    assert real.cpu("ballast-test/node").throttled_periods > 0


async def test_emptying_a_group_leaves_no_process_and_no_folder(real: Cgroups) -> None:
    script = "import sys, time\nfor f in sys.argv[1:]: open(f, 'w').write('0')\nprint(flush=True)\ntime.sleep(60)\n"
    command = [sys.executable, "-c", script, *real.entry_files("ballast-test/node/pod")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        assert real.members("ballast-test") == {sleeper.pid}
        await cgroups.empty(real, "ballast-test")
        assert sleeper.wait() == -9
    assert not Path(real.entry_files("ballast-test/node")[0]).exists()
