import base64
from pathlib import Path

import pytest

from tests.testbed.kubelet import payload
from tests.testbed.kubelet.environment import ConfigError
from tests.testbed.kubelet.payload import Content
from tests.testbed.kubelet.tests.builders import container, facts, pod

SETTINGS = {
    "kind": "ConfigMap",
    "data": {"mode": "fast", "size": "3"},
    "binaryData": {"icon": base64.b64encode(b"\0").decode()},
}


def test_a_config_map_gives_a_file_for_each_key() -> None:
    files = payload.object_files(SETTINGS, {"name": "settings"}, 0o644)
    assert {name: content.data for name, content in files.items()} == {"mode": b"fast", "size": b"3", "icon": b"\0"}


def test_items_choose_keys_paths_and_modes() -> None:
    source = {"name": "settings", "items": [{"key": "mode", "path": "deep/mode.txt", "mode": 0o600}]}
    assert payload.object_files(SETTINGS, source, 0o644) == {"deep/mode.txt": Content(b"fast", 0o600)}


def test_a_missing_object_is_named_unless_it_is_optional() -> None:
    with pytest.raises(ConfigError, match="settings"):
        payload.object_files(None, {"name": "settings"}, 0o644)
    assert payload.object_files(None, {"name": "settings", "optional": True}, 0o644) == {}


def test_the_downward_api_gives_fields_and_resources() -> None:
    main = container(resources={"limits": {"memory": "64Mi"}})
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "limit", "resourceFieldRef": {"containerName": "main", "resource": "limits.memory", "divisor": "1Mi"}},
    ]
    files = payload.downward_files({"items": items}, facts(pod(main)), 0o644)
    assert {name: content.data for name, content in files.items()} == {"labels": b'app="web"', "limit": b"64"}


def test_files_are_replaced_as_a_whole_and_old_ones_go(tmp_path: Path) -> None:
    payload.write(tmp_path, {"a": Content(b"1"), "deep/b": Content(b"2")}, gid=None)
    old = (tmp_path / "..data").resolve()
    payload.write(tmp_path, {"a": Content(b"3")}, gid=None)
    assert (tmp_path / "a").read_bytes() == b"3"
    assert sorted(entry.name for entry in tmp_path.iterdir() if not entry.name.startswith("..")) == ["a"]
    assert not old.exists()


def test_the_pods_group_may_read_what_only_the_owner_may(tmp_path: Path) -> None:
    payload.write(tmp_path, {"token": Content(b"x", 0o600)}, gid=2000)
    state = (tmp_path / "token").stat()
    assert (state.st_mode & 0o777, state.st_gid) == (0o640, 2000)
