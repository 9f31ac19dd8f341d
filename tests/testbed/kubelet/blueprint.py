"""From a container in a pod's spec to the description that the launcher executes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.testbed.kubelet.environment import ConfigError, expand
from tests.testbed.kubelet.images import Content, File, Machine
from tests.testbed.kubelet.volumes import READ_ONLY

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a container runs: its node's network, its pod's folders, its cgroups."""

    hosts_file: Path
    volumes: Mapping[str, Path]
    shared_paths: Sequence[Path]
    cgroups: Sequence[str]
    shim_cgroups: Sequence[str]
    log: Path
    netns: str | None


@dataclass(frozen=True, slots=True)
class Identity:
    uid: int
    gid: int
    groups: tuple[int, ...]


def security(container: Json, pod: Json) -> Json:
    """The container's security context over the pod's."""
    return {**pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}


def identity(container: Json, pod: Json, *, image_user: int) -> Identity:
    """Who the container runs as. Raises ConfigError for root where the pod forbids it."""
    context = security(container, pod)
    uid = int(context.get("runAsUser", image_user))
    if context.get("runAsNonRoot") and uid == 0:
        raise ConfigError("container has runAsNonRoot and image will run as root: set runAsUser")
    groups = set(context.get("supplementalGroups", []))
    if "fsGroup" in context:
        groups.add(int(context["fsGroup"]))
    return Identity(uid, int(context.get("runAsGroup", 0)), tuple(sorted(groups)))


def command(container: Json, content: Content, environment: Mapping[str, str]) -> list[str]:
    """What to run: the pod's command replaces the image's entrypoint, its args follow either."""
    start = [expand(part, environment) for part in container.get("command", [])] or list(content.entrypoint)
    argv = [*start, *(expand(part, environment) for part in container.get("args", []))]
    if not argv:
        raise ConfigError("no command specified, neither by the pod nor by the image")
    return argv


def volume_mounts(container: Json, pod: Json, place: Place, environment: Mapping[str, str]) -> list[Json]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    mounts = []
    for entry in container.get("volumeMounts", []):
        source = place.volumes[entry["name"]]
        below = expand(entry.get("subPathExpr", ""), environment) or entry.get("subPath", "")
        if below:
            source = source / below
            if not source.exists():
                source.mkdir(parents=True)
        fixed = any(kind in volumes[entry["name"]] for kind in READ_ONLY)
        mounts.append(mount(source, entry["mountPath"], read_only=fixed or entry.get("readOnly", False)))
    return mounts


def mount(source: Path, target: str, *, read_only: bool) -> Json:
    return {"source": str(source), "target": target, "readOnly": read_only}


def own_mounts(container: Json, place: Place, machine: Machine) -> list[Json]:
    """Mounts that the pod doesn't ask for: hosts file, shared folders, programs on other file systems."""
    return [
        mount(place.hosts_file, "/etc/hosts", read_only=False),
        *(mount(path, str(path), read_only=False) for path in place.shared_paths),
        *(
            mount(Path(path), path, read_only=True)
            for path in sorted({*machine.elsewhere, *_hidden(container, machine)})
        ),
    ]


def _hidden(container: Json, machine: Machine) -> list[str]:
    """Programs below a volume's mount path, which have to be mounted on top of it."""
    targets = [Path(entry["mountPath"]) for entry in container.get("volumeMounts", [])]
    return [path for path in machine.places if any(target in Path(path).parents for target in targets)]


def user_entry(who: Identity) -> File:
    """A name for the user: Hadoop's libraries refuse to work for a nameless one."""
    line = f"pod{who.uid}:x:{who.uid}:{who.gid}::/:/bin/false\n"
    return File("/etc/passwd", line, append=True)


def hostname(pod: Json) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63]


def blueprint(
    container: Json,
    pod: Json,
    *,
    content: Content,
    environment: Mapping[str, str],
    place: Place,
    machine: Machine,
) -> Json:
    """The launcher's description of one run."""
    context = security(container, pod)
    who = identity(container, pod, image_user=content.user)
    files = [*content.files, user_entry(who)] if content.names_user and who.uid else list(content.files)
    return {
        "argv": command(container, content, environment),
        "env": {"HOME": "/root" if who.uid == 0 else "/", "HOSTNAME": hostname(pod), **environment},
        "cwd": container.get("workingDir") or content.working_directory,
        "cgroups": list(place.cgroups),
        "shimCgroups": list(place.shim_cgroups),
        "hostname": hostname(pod),
        "netns": place.netns,
        "rootReadOnly": bool(context.get("readOnlyRootFilesystem")),
        "traversable": list(machine.traversable),
        "layers": [asdict(layer) for layer in content.layers],
        "folders": [asdict(folder) for folder in content.folders],
        "files": [asdict(file) for file in files],
        "mounts": [
            *own_mounts(container, place, machine),
            *volume_mounts(container, pod, place, environment),
        ],
        "uid": who.uid,
        "gid": who.gid,
        "groups": list(who.groups),
        "capabilities": context.get("capabilities") or {},
        "noNewPrivileges": context.get("allowPrivilegeEscalation") is False,
        "log": str(place.log),
    }
