"""The shim of one container: its own program, run with `python -I -S`, standard library only.

`launch.py run SPEC`            starts the container that SPEC (a JSON file) describes, waits for it, writes
                                its result and ends. It outlives the kubelet, so that a restarted kubelet
                                finds what became of the container.
`launch.py exec SPEC PID ARG…`  runs one more command inside the container whose main process is PID.

The container gets namespaces of its own for mounts and host name. Its root is an overlay: below, read only,
the machine's root file system; above, a tmpfs that vanishes with the container.
"""

# A shim lives as long as its container: to stay small it does without pathlib.
# ruff: noqa: PTH101, PTH102, PTH103, PTH105, PTH112, PTH114, PTH115, PTH116, PTH123
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import termios
import time
from typing import Any, NoReturn

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWNET = 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = (
    0x1, 0x2, 0x4, 0x20, 0x1000, 0x2000, 0x4000, 0x40000,
)  # fmt: skip
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SCRATCH = "/mnt"
CAPABILITIES = [
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK",
    "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN",
    "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE",
    "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND",
    "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
]  # fmt: skip

_libc = ctypes.CDLL(None, use_errno=True)

Spec = dict[str, Any]


def call(name: str, *arguments: Any) -> None:
    """One C library call. OSError names the call and its arguments."""
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        shown = ", ".join(a.decode() if isinstance(a, bytes) else str(a) for a in arguments)
        raise OSError(number, f"{name}({shown}): {os.strerror(number)}")


def mount(source: str, target: str, *, kind: str = "", flags: int = 0, data: str = "") -> None:
    call("mount", source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), data.encode())


def read_only(target: str) -> None:
    mount("none", target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY)


def overlay(*, lower: str, target: str, scratch: str) -> None:
    upper, work = f"{scratch}/upper", f"{scratch}/work"
    os.makedirs(upper)
    os.makedirs(work)
    state = os.stat(lower)
    os.chmod(upper, state.st_mode & 0o7777)
    mount("overlay", target, kind="overlay", data=f"lowerdir={lower},upperdir={upper},workdir={work}")


def mount_point(root: str, target: str, *, is_file: bool) -> str:
    """Make sure that TARGET exists below ROOT, as a file or as a folder; never follows a link out of ROOT."""
    path = root
    parts = [part for part in target.split("/") if part]
    for index, part in enumerate(parts):
        path = f"{path}/{part}"
        if os.path.islink(path):
            link = os.readlink(path)
            return mount_point(
                root,
                "/".join([link if link.startswith("/") else "/".join([*parts[:index], link]), *parts[index + 1 :]]),
                is_file=is_file,
            )
        last = index == len(parts) - 1
        if not os.path.lexists(path):
            if last and is_file:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
            else:
                os.mkdir(path, 0o755)
    return path


def build_root(spec: Spec) -> None:
    """Turn the fresh mount namespace into the container's: root, kernel file systems, layers, volumes."""
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", SCRATCH, kind="tmpfs", data="mode=755")
    root = f"{SCRATCH}/root"
    os.mkdir(root)
    overlay(lower="/", target=root, scratch=f"{SCRATCH}/base")
    for kernel in ("/proc", "/sys", "/dev"):
        mount(kernel, root + kernel, flags=MS_BIND | MS_REC)
    os.chmod(mount_point(root, "/tmp", is_file=False), 0o1777)
    for directory in spec["traversable"]:
        with contextlib.suppress(FileNotFoundError):
            os.chmod(root + directory, os.stat(root + directory).st_mode | 0o111)
    for index, layer in enumerate(spec["layers"]):
        overlay(
            lower=layer["lower"],
            target=mount_point(root, layer["path"], is_file=False),
            scratch=f"{SCRATCH}/layer{index}",
        )
    for folder in spec.get("folders", ()):
        os.chmod(mount_point(root, folder["path"], is_file=False), folder["mode"])
    for file in spec["files"]:
        write_file(root, file)
    # Shorter paths first: a mount must not hide one inside it.
    for volume in sorted(spec["mounts"], key=lambda item: item["target"].count("/")):
        bind(root, volume)
    if spec["rootReadOnly"]:
        read_only(root)
    os.chdir(root)
    mount(".", "/", flags=MS_MOVE)
    os.chroot(".")
    os.chdir("/")


def write_file(root: str, file: dict[str, Any]) -> None:
    path = mount_point(root, file["path"], is_file=True)
    with open(path, "a" if file.get("append") else "w", encoding="utf-8") as stream:
        stream.write(file["content"])
    os.chmod(path, file.get("mode", 0o644))


def bind(root: str, volume: dict[str, Any]) -> None:
    source = volume["source"]
    target = mount_point(root, volume["target"], is_file=not os.path.isdir(source))
    mount(source, target, flags=MS_BIND | MS_REC)
    if volume["readOnly"]:
        read_only(target)


def join_cgroups(spec: Spec) -> None:
    for path in spec["cgroups"]:
        with open(path, "w", encoding="ascii") as stream:
            stream.write("0")


def enter_network(spec: Spec) -> None:
    if spec["netns"]:
        descriptor = os.open(spec["netns"], os.O_RDONLY | os.O_CLOEXEC)
        call("setns", descriptor, CLONE_NEWNET)
        os.close(descriptor)


def drop_privileges(spec: Spec) -> None:
    added = set(spec["capabilities"].get("add") or ())
    dropped = set(spec["capabilities"].get("drop") or ())
    for number, name in enumerate(CAPABILITIES):
        if name in dropped or ("ALL" in dropped and name not in added):
            call("prctl", PR_CAPBSET_DROP, number, 0, 0, 0)
    os.setgroups(spec["groups"])
    os.setgid(spec["gid"])
    os.setuid(spec["uid"])
    if spec["noNewPrivileges"]:
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def execute(spec: Spec, argv: list[str]) -> NoReturn:
    os.umask(0o022)
    try:
        os.chdir(spec["cwd"])
    except FileNotFoundError:
        os.makedirs(spec["cwd"])
        os.chdir(spec["cwd"])
    drop_privileges(spec)
    for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.execvpe(argv[0], argv, spec["env"])


def contained(spec: Spec, log: int, failure: int) -> NoReturn:
    """The child of the shim: becomes the container's main process, or tells the shim why it can't."""
    try:
        os.setsid()
        join_cgroups(spec)
        enter_network(spec)
        call("unshare", CLONE_NEWNS | CLONE_NEWUTS)
        hostname = spec["hostname"].encode()
        call("sethostname", hostname, len(hostname))
        build_root(spec)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        execute(spec, spec["argv"])
    except OSError as error:
        os.write(failure, str(error).encode()[:4000])
        os._exit(128)


def start_ticks(pid: int) -> int:
    """When a process started, in the kernel's ticks since boot: with the id, names a process for good."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:
        return int(stream.read().rpartition(")")[2].split()[19])


def write_json(path: str, value: dict[str, Any]) -> None:
    with open(f"{path}.new", "w", encoding="utf-8") as stream:
        json.dump(value, stream)
    os.replace(f"{path}.new", path)


def kill_rest(spec: Spec) -> None:
    """A container ends with its main process: whatever is left in its cgroup goes with it."""
    for _ in range(1000):
        members = set()
        for path in spec["cgroups"]:
            with contextlib.suppress(OSError), open(path, encoding="ascii") as stream:
                members |= {int(line) for line in stream}
        if not members:
            return
        for pid in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def become_shim(spec: Spec) -> None:
    """Outlive the kubelet, be found by a later one, and inherit what the container leaves behind."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for path in spec["shimCgroups"]:
        with open(path, "w", encoding="ascii") as stream:
            stream.write("0")
    write_json(spec["shim"], {"pid": os.getpid(), "ticks": start_ticks(os.getpid())})
    call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def announce() -> None:
    """Close the standard output: whoever started the shim waits for that."""
    null = os.open("/dev/null", os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)


def wait_for(pid: int) -> int:
    """The wait status of the container's main process; adopted orphans that end before are reaped."""
    while True:
        ended, status = os.wait()
        if ended == pid:
            return status


def run(spec: Spec) -> None:
    become_shim(spec)
    log = os.open(spec["log"], os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    failed, failure = os.pipe()
    started = time.time()
    pid = os.fork()
    if pid == 0:
        contained(spec, log, failure)
    os.close(failure)
    os.close(log)
    with os.fdopen(failed, encoding="utf-8", errors="replace") as stream:
        message = stream.read()
    if not message:
        # The reader of this pipe sees its end when the main program has been executed.
        write_json(spec["running"], {"pid": pid, "ticks": start_ticks(pid), "started": started})
    announce()
    status = wait_for(pid)
    kill_rest(spec)
    code = os.waitstatus_to_exitcode(status)
    write_json(
        spec["result"],
        {
            "exitCode": 128 - code if code < 0 else code,
            "signal": max(0, -code),
            "started": started,
            "finished": time.time(),
            "setupError": message,
        },
    )


def execute_inside(spec: Spec, pid: int, argv: list[str]) -> NoReturn:
    join_cgroups(spec)
    for name, flag in (("net", CLONE_NEWNET), ("uts", CLONE_NEWUTS), ("mnt", CLONE_NEWNS)):
        descriptor = os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        call("setns", descriptor, flag)
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    try:
        execute(spec, argv)
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        os._exit(126 if isinstance(error, PermissionError) else 127)


def main() -> None:
    with open(sys.argv[2], encoding="utf-8") as stream:
        spec = json.load(stream)
    if sys.argv[1] == "run":
        run(spec)
    else:
        execute_inside(spec, int(sys.argv[3]), sys.argv[4:])


if __name__ == "__main__":
    main()
