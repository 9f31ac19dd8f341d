"""What is left of a testbed on the machine; nothing, it should be."""

import subprocess
from pathlib import Path

from tests.testbed.instance import Instance, root_locked
from tests.testbed.procfs import belonging_to, cgroup_roots, mounts_below, this_process


def traces_of(instance: Instance) -> list[str]:
    """One line for each process, cgroup, mount, network namespace, link and file of the testbed.

    None once its number is another's, who was given it after the folder had gone.
    """
    with root_locked(instance.folder.parent):
        return [] if _is_anothers(instance) else _found(instance)


def _is_anothers(instance: Instance) -> bool:
    return any(owner.is_alive() and owner != this_process() for owner in instance.manifest.owners())


def _found(instance: Instance) -> list[str]:
    processes = [f"process {process.pid}" for process in belonging_to(instance.folder)]
    cgroups = [root / instance.cgroup_prefix for root in cgroup_roots()]
    netns = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    return [
        *processes,
        *(f"cgroup {folder}" for folder in cgroups if folder.exists()),
        *(f"mount {point}" for point in mounts_below(instance.folder)),
        *(f"netns {line}" for line in netns.splitlines() if line.startswith(instance.link_prefix)),
        *(f"link {link.name}" for link in Path("/sys/class/net").glob(f"{instance.link_prefix}*")),
        *([f"folder {instance.folder}"] if Path(instance.folder).exists() else []),
    ]
