from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.kubelet.blueprint import Identity, Place, blueprint, command, identity, own_mounts, volume_mounts
from tests.testbed.kubelet.environment import ConfigError
from tests.testbed.kubelet.images import Content, Machine
from tests.testbed.kubelet.tests.builders import container, pod

Json = dict[str, Any]
MACHINE = Machine("/venv/bin/python", (), None, None, traversable=("/closed",), elsewhere=("/other",))


def place(volumes: dict[str, Path] | None = None) -> Place:
    return Place(
        hosts_file=Path("/state/hosts"),
        volumes=volumes or {},
        shared_paths=[Path("/shared")],
        cgroups=["/c/main"],
        shim_cgroups=["/c/shims"],
        log=Path("/state/0.log"),
        netns=None,
    )


@pytest.mark.parametrize(
    ("fields", "argv"),
    [
        ({}, ["enter"]),
        ({"args": ["a", "$(X)"]}, ["enter", "a", "1"]),
        ({"command": ["own"]}, ["own"]),
        ({"command": ["own"], "args": ["a"]}, ["own", "a"]),
    ],
)
def test_the_pods_command_replaces_the_entrypoint_and_args_follow(fields: Json, argv: list[str]) -> None:
    assert command(container(**fields), Content(("enter",), {}), {"X": "1"}) == argv


def test_without_any_command_the_container_cannot_be_made() -> None:
    with pytest.raises(ConfigError, match="no command"):
        command(container(), Content((), {}), {})


@pytest.mark.parametrize(
    ("of_pod", "of_container", "expected"),
    [
        ({}, {}, Identity(7, 0, ())),
        ({"runAsUser": 1, "runAsGroup": 2}, {}, Identity(1, 2, ())),
        ({"runAsUser": 1}, {"runAsUser": 3}, Identity(3, 0, ())),
        ({"fsGroup": 9, "supplementalGroups": [8]}, {}, Identity(7, 0, (8, 9))),
    ],
)
def test_the_containers_security_context_goes_before_the_pods(
    of_pod: Json, of_container: Json, expected: Identity
) -> None:
    main = container(securityContext=of_container)
    assert identity(main, pod(main, securityContext=of_pod), image_user=7) == expected


def test_root_is_refused_where_the_pod_forbids_it() -> None:
    main = container()
    with pytest.raises(ConfigError, match="runAsNonRoot"):
        identity(main, pod(main, securityContext={"runAsNonRoot": True}), image_user=0)


@pytest.mark.parametrize(
    ("volume", "read_only", "expected"),
    [({"emptyDir": {}}, False, False), ({"emptyDir": {}}, True, True), ({"configMap": {"name": "x"}}, False, True)],
)
def test_volumes_from_the_api_are_always_read_only(volume: Json, read_only: bool, expected: bool) -> None:
    main = container(volumeMounts=[{"name": "v", "mountPath": "/data", "readOnly": read_only}])
    owner = pod(main, volumes=[{"name": "v", **volume}])
    (mount,) = volume_mounts(main, owner, place({"v": Path("/state/v")}), {})
    assert mount == {"source": "/state/v", "target": "/data", "readOnly": expected}


def test_a_sub_path_is_made_and_may_name_variables(tmp_path: Path) -> None:
    main = container(volumeMounts=[{"name": "v", "mountPath": "/data", "subPathExpr": "$(WHO)/logs"}])
    owner = pod(main, volumes=[{"name": "v", "emptyDir": {}}])
    (mount,) = volume_mounts(main, owner, place({"v": tmp_path}), {"WHO": "ann"})
    assert mount["source"] == str(tmp_path / "ann" / "logs")
    assert (tmp_path / "ann" / "logs").is_dir()


def test_a_blueprint_has_all_that_the_spec_restricts() -> None:
    restrictions = {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    main = container(command=["run"], securityContext=restrictions, workingDir="/work")
    made = blueprint(main, pod(main), content=Content((), {}), environment={"A": "1"}, place=place(), machine=MACHINE)
    assert (made["rootReadOnly"], made["noNewPrivileges"], made["capabilities"]) == (True, True, {"drop": ["ALL"]})
    assert made["env"] == {"HOME": "/root", "HOSTNAME": "web-0", "A": "1"}
    assert (made["cwd"], made["traversable"]) == ("/work", ["/closed"])
    assert {(m["target"], m["readOnly"]) for m in made["mounts"]} == {
        ("/etc/hosts", False),
        ("/shared", False),
        ("/other", True),
    }


def test_a_nameless_user_gets_a_name_where_the_image_does_so() -> None:
    main = container(securityContext={"runAsUser": 185})
    content = Content(("run",), {}, names_user=True)
    made = blueprint(main, pod(main), content=content, environment={}, place=place(), machine=MACHINE)
    assert [(f["path"], f["append"]) for f in made["files"]] == [("/etc/passwd", True)]
    assert made["files"][0]["content"].startswith("pod185:x:185:0:")


def test_a_volume_does_not_hide_the_programs_below_its_mount_path() -> None:
    machine = replace(MACHINE, places=("/tmp/checkout", "/usr/lib/jvm"))
    main = container(volumeMounts=[{"name": "scratch", "mountPath": "/tmp"}])
    mounts = own_mounts(main, place(), machine)
    assert [m["target"] for m in mounts if m["source"] in machine.places] == ["/tmp/checkout"]
