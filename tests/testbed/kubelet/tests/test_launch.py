"""The launcher as its own program, on this machine: needs root, as the testbed does."""

# Nothing else runs in these tests' event loop: they may block it.
# ruff: noqa: ASYNC221, ASYNC240

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.kubelet.attempts import Attempt, existing
from tests.testbed.kubelet.launch import CAPABILITIES


def spec(folder: Path, *argv: str, **fields: Any) -> dict[str, Any]:
    """The description of a container that runs `argv`, with nothing special unless given."""
    return {
        "argv": list(argv),
        "env": {"PATH": "/usr/bin:/bin"},
        "cwd": "/",
        "cgroups": [],
        "shimCgroups": [],
        "hostname": "web-0",
        "netns": None,
        "rootReadOnly": False,
        "traversable": [],
        "layers": [],
        "folders": [],
        "files": [],
        "mounts": [],
        "uid": 0,
        "gid": 0,
        "groups": [],
        "capabilities": {},
        "noNewPrivileges": False,
        "log": str(folder / "log"),
    } | fields


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    return Attempt(tmp_path / "0")


async def shell(attempt: Attempt, script: str, **fields: Any) -> tuple[int, str]:
    """Run a script in a container; its exit code and output."""
    folder = attempt.folder.parent
    await attempt.start(spec(folder, "sh", "-c", script, **fields))
    result = await attempt.wait()
    assert result.setup_error == ""
    return result.exit_code, (folder / "log").read_text()


async def said(log: Path, word: str) -> None:
    """Wait until a container has said a word."""
    async with asyncio.timeout(60):
        while word not in log.read_text():  # noqa: ASYNC110 -- a file has no event
            await asyncio.sleep(0.01)


async def test_the_exit_code_is_kept(attempt: Attempt) -> None:
    assert await shell(attempt, "echo out; echo err >&2; exit 7") == (7, "out\nerr\n")


async def test_a_signal_is_told_apart_from_an_exit_code(attempt: Attempt) -> None:
    await attempt.start(spec(attempt.folder.parent, "sleep", "60"))
    attempt.signal(signal.SIGKILL)
    result = await attempt.wait()
    assert (result.exit_code, result.signal) == (137, 9)


async def test_what_cannot_be_started_says_why(attempt: Attempt) -> None:
    await attempt.start(spec(attempt.folder.parent, "/no/such/program"))
    result = await attempt.wait()
    assert result.exit_code == 128
    assert "No such file" in result.setup_error


async def test_what_a_container_writes_outside_its_volumes_is_its_own(attempt: Attempt) -> None:
    code, output = await shell(attempt, "echo x > /etc/mine && cat /etc/mine && hostname")
    assert (code, output) == (0, "x\nweb-0\n")
    assert not Path("/etc/mine").exists()


async def test_a_volume_is_where_the_spec_says_and_what_is_written_stays(attempt: Attempt, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    mount = {"source": str(volume), "target": "/deep/new/place", "readOnly": False}
    assert await shell(attempt, "echo x > /deep/new/place/f", mounts=[mount]) == (0, "")
    assert (volume / "f").read_text() == "x\n"
    assert not Path("/deep").exists()


async def test_a_read_only_volume_cannot_be_written(attempt: Attempt, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    mount = {"source": str(volume), "target": "/data", "readOnly": True}
    code, output = await shell(attempt, "echo x > /data/f", mounts=[mount])
    assert code != 0
    assert "Read-only file system" in output


async def test_with_a_read_only_root_only_volumes_can_be_written(attempt: Attempt, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    mount = {"source": str(volume), "target": "/data", "readOnly": False}
    code, output = await shell(attempt, "echo x > /data/f && echo x > /f", mounts=[mount], rootReadOnly=True)
    assert code != 0
    assert (volume / "f").exists()
    assert "cannot create /f: Read-only file system" in output


async def test_a_mount_inside_another_is_not_hidden_by_it(attempt: Attempt, tmp_path: Path) -> None:
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    mounts = [
        {"source": str(tmp_path / "inner"), "target": "/data/inner", "readOnly": False},
        {"source": str(tmp_path / "outer"), "target": "/data", "readOnly": False},
    ]
    assert (await shell(attempt, "ls /data /data/inner", mounts=mounts))[1].split() == [
        "/data:",
        "inner",
        "outer",
        "/data/inner:",
        "inner",
    ]


async def test_a_layer_shows_a_folder_that_stays_as_it_is(attempt: Attempt, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "there").touch()
    layer = {"path": "/opt/product", "lower": str(home)}
    script = "touch /opt/product/added && ls /opt/product"
    assert (await shell(attempt, script, layers=[layer]))[1].split() == ["added", "there"]
    assert [entry.name for entry in home.iterdir()] == ["there"]


async def test_the_container_runs_as_the_user_and_groups_of_the_spec(attempt: Attempt) -> None:
    _, output = await shell(attempt, "id -u; id -g; id -G", uid=1234, gid=55, groups=[77])
    assert output.split() == ["1234", "55", "55", "77"]


async def test_another_user_may_pass_the_folders_that_were_opened(attempt: Attempt, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    closed = [str(path) for path in (tmp_path, *tmp_path.parents) if not path.stat().st_mode & 0o001]
    (tmp_path / "program").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "program").chmod(0o755)
    assert await shell(attempt, str(tmp_path / "program"), uid=1234, traversable=closed) == (0, "ran\n")
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_capabilities_have_the_kernels_numbers() -> None:
    assert [CAPABILITIES.index(name) for name in ("CHOWN", "KILL", "SYS_ADMIN", "SYSLOG", "BPF")] == [0, 5, 21, 34, 39]


async def test_dropped_capabilities_are_gone(attempt: Attempt) -> None:
    capabilities = {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
    _, output = await shell(
        attempt, "grep -E 'CapEff|NoNewPrivs' /proc/self/status", capabilities=capabilities, noNewPrivileges=True
    )
    assert int(output.split()[1], 16) == 1 << CAPABILITIES.index("NET_BIND_SERVICE")
    assert output.split()[3] == "1"


async def test_a_command_inside_sees_the_container(attempt: Attempt) -> None:
    folder = attempt.folder.parent
    await attempt.start(spec(folder, "sh", "-c", "echo x > /mine; echo ready; exec sleep 60", uid=0))
    await said(folder / "log", "ready")
    inside = subprocess.run(
        attempt.inside(["sh", "-c", "cat /mine; hostname; exit 4"]), capture_output=True, text=True, check=False
    )
    missing = subprocess.run(attempt.inside(["nonesuch"]), capture_output=True, text=True, check=False)
    attempt.signal(signal.SIGKILL)
    await attempt.wait()
    assert (inside.returncode, inside.stdout) == (4, "x\nweb-0\n")
    assert (missing.returncode, missing.stderr) == (127, "nonesuch: No such file or directory\n")


async def test_nothing_runs_inside_a_container_that_has_ended(attempt: Attempt) -> None:
    await shell(attempt, "true")
    with pytest.raises(ProcessLookupError):
        attempt.inside(["true"])


START_AND_DIE = """
import asyncio, json, os, pathlib, sys
from tests.testbed.kubelet.attempts import Attempt
asyncio.run(Attempt(pathlib.Path(sys.argv[1])).start(json.loads(sys.argv[2])))
os.kill(os.getpid(), 9)
"""


async def test_a_container_outlives_who_started_it_and_its_exit_code_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "0"
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    described = json.dumps(spec(tmp_path, "sh", "-c", script))
    killed = subprocess.run([sys.executable, "-c", START_AND_DIE, str(folder), described], check=False)
    assert killed.returncode == -signal.SIGKILL
    (found,) = existing(tmp_path / "runs")
    assert found.main is not None
    await said(tmp_path / "log", "ready")
    os.kill(found.main.pid, signal.SIGTERM)
    assert (await found.wait()).exit_code == 9
