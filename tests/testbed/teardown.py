"""Ending a testbed wholly, whatever state it is in; doing so twice is harmless."""

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.testbed import instance as instances
from tests.testbed.errors import TestbedError
from tests.testbed.instance import Instance
from tests.testbed.procfs import ProcessId, belonging_to, cgroup_roots, identify, mounts_below
from tests.testbed.waiting import wait_until

KUBELET = "kubelet"
KUBELET_GRACE_SECONDS = 5.0
KILL_TIMEOUT_SECONDS = 20.0


def tear_down(instance: Instance) -> None:
    """Leave no process, cgroup, mount, network namespace or file of the testbed."""
    with _locked(instance.folder) as still_there:
        if still_there:
            _end(instance)


def tear_down_abandoned(root: Path) -> list[Instance]:
    """End every testbed whose starter was killed; those that this call ended."""
    seen = [instance for instance in instances.existing(root) if instance.manifest.is_abandoned()]
    return [instance for instance in seen if _ended_if_abandoned(instance)]


def _ended_if_abandoned(instance: Instance) -> bool:
    """Asks again while nobody else can end it or take its number: it may be a new one that another start just took."""
    with _locked(instance.folder) as still_there:
        if not still_there or not _is_abandoned_for_good(instance):
            return False
        _end(instance)
        return True


def _is_abandoned_for_good(instance: Instance) -> bool:
    """With the root locked: before, its folder may be there and its owner not yet written."""
    with instances.root_locked(instance.folder.parent):
        return instance.manifest.is_abandoned()


def _end(instance: Instance) -> None:
    _let_kubelet_finish(instance)
    wait_until(
        lambda: not _killed(instance),
        what=f"ending the processes of testbed {instance.id}",
        timeout_seconds=KILL_TIMEOUT_SECONDS,
        explain=lambda: f"still there: {sorted(process.pid for process in _members(instance))}",
    )
    _remove_network(instance)
    _unmount(instance)
    _remove_cgroups(instance)
    instances.release(instance)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the folder; False when it is gone, also when another removed (or replaced) it meanwhile."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield folder.exists() and folder.stat().st_ino == os.fstat(handle).st_ino
    finally:
        os.close(handle)


def _let_kubelet_finish(instance: Instance) -> None:
    """It knows best how to end its pods; what it leaves is killed afterwards."""
    for part in instance.manifest.parts():
        if part.name == KUBELET and part.process.is_alive():
            part.process.send(signal.SIGTERM)
            with contextlib.suppress(TestbedError):
                wait_until(
                    lambda process=part.process: not process.is_alive(),  # type: ignore[misc]
                    what="the kubelet's end",
                    timeout_seconds=KUBELET_GRACE_SECONDS,
                )


def _killed(instance: Instance) -> set[ProcessId]:
    """The processes that were still there and have now been sent SIGKILL."""
    members = _members(instance)
    for process in members:
        process.send(signal.SIGKILL)
    return members


def _members(instance: Instance) -> set[ProcessId]:
    listed = {part.process for part in instance.manifest.parts()}
    grouped = {identify(pid) for folder in _cgroups(instance) for pid in _pids(folder)}
    found = listed | grouped | set(belonging_to(instance.folder))
    return {process for process in found if process.is_alive() and process.pid != os.getpid()}


def _cgroups(instance: Instance) -> list[Path]:
    """The testbed's own cgroups in all hierarchies, the innermost first."""
    tops = [root / instance.cgroup_prefix for root in cgroup_roots()]
    folders = [Path(folder) for top in tops for folder, _, _ in os.walk(top)]
    return sorted(folders, key=lambda folder: len(folder.parts), reverse=True)


def _pids(cgroup: Path) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(line) for line in (cgroup / "cgroup.procs").read_text().split()]
    return []


def _remove_cgroups(instance: Instance) -> None:
    wait_until(
        lambda: not [folder for folder in _cgroups(instance) if not _removed(folder)],
        what=f"removing the cgroups of testbed {instance.id}",
        timeout_seconds=KILL_TIMEOUT_SECONDS,
        explain=lambda: "\n".join(map(str, _cgroups(instance))),
    )
    for root in cgroup_roots():
        _removed((root / instance.cgroup_prefix).parent)


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_network(instance: Instance) -> None:
    prefix = instance.link_prefix
    netns = Path("/run/netns")
    for namespace in sorted(netns.glob(f"{prefix}*")):
        subprocess.run(["ip", "netns", "del", namespace.name], check=True)
    for link in sorted(Path("/sys/class/net").iterdir()):
        if link.name.startswith(prefix):
            _remove_link(link)


def _remove_link(link: Path) -> None:
    """One end of a pair takes the other along, and a namespace its ends, a moment after it has gone."""
    done = subprocess.run(["ip", "link", "del", link.name], check=False, capture_output=True, text=True)
    if done.returncode and link.exists():
        raise TestbedError(f"{link.name} can't be removed: {done.stderr.strip()}")


def _unmount(instance: Instance) -> None:
    for point in mounts_below(instance.folder):
        subprocess.run(["umount", "--lazy", str(point)], check=True)
