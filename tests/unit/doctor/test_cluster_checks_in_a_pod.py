"""What the kernel allows a pod, read from the real output of the command and checked."""

from __future__ import annotations

import subprocess

import pytest

from ballast.doctor import cluster_checks
from ballast.doctor.cluster_checks import PodLimits
from ballast.errors import InvalidField

PRINTED = """==> /proc/1/limits <==
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max open files            1024                 {files:<20} files
Max locked memory         8388608              8388608              bytes

==> /proc/sys/net/core/rmem_max <==
{receive}

==> /proc/sys/net/core/wmem_max <==
{send}
"""
MIB = 1024 * 1024


def ids(**changes: object) -> list[str]:
    values = {"files": "1048576", "receive": 4 * MIB, "send": 4 * MIB, **changes}
    return [
        each.id
        for each in cluster_checks.check_limits(cluster_checks.read_limits(PRINTED.format(**values), source="-"))
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, []),
        ({"files": "unlimited"}, []),
        ({"files": "65000"}, []),
        ({"files": "64999"}, ["OpenFilesLow"]),
        ({"receive": 212992}, ["SocketBuffersSmall"]),
        ({"send": MIB - 1}, ["SocketBuffersSmall"]),
        ({"files": "1024", "receive": 212992, "send": 212992}, ["OpenFilesLow"] + ["SocketBuffersSmall"] * 2),
    ],
)
def test_what_is_too_small_is_found(changes: dict[str, object], expected: list[str]) -> None:
    assert ids(**changes) == expected


def test_the_hard_limit_counts_to_which_a_jvm_raises_its_own() -> None:
    found = cluster_checks.read_limits(PRINTED.format(files="4096", receive=1, send=2), source="-")
    assert found == PodLimits(source="-", open_files=4096, buffer_bytes={"rmem_max": 1, "wmem_max": 2})


def test_the_command_that_is_documented_can_be_read_here() -> None:
    printed = subprocess.run(cluster_checks.COMMAND.split(), capture_output=True, text=True, check=True).stdout
    found = cluster_checks.read_limits(printed, source="-")
    assert found.open_files > 0
    assert found.buffer_bytes.keys() <= {"rmem_max", "wmem_max"}


def test_a_kernel_that_hides_its_buffers_has_its_open_files_checked() -> None:
    found = cluster_checks.read_limits(
        "Max open files            1024                 4096                 files", source="-"
    )
    assert [each.id for each in cluster_checks.check_limits(found)] == ["OpenFilesLow"]


@pytest.mark.parametrize("text", ["", "Max processes             1024                 4096                 processes"])
def test_anything_else_is_refused_with_the_command(text: str) -> None:
    with pytest.raises(InvalidField, match="kubectl exec POD -- head -n 99"):
        cluster_checks.read_limits(text, source="limits.txt")
