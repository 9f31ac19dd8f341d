from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.testbed import binaries
from tests.testbed.binaries import find_binaries, parse_version
from tests.testbed.errors import TestbedError
from tests.testbed.golang import proxies_only


def write_program(folder: Path, name: str, *, says: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Kubernetes v1.37.1", (1, 37, 1)),
        ("etcd Version: 3.7.3\nGit SHA: 0\nGo Version: go1.26.8", (3, 7, 3)),
        ("Client Version: v1.32.4-dispatcher", (1, 32, 4)),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)", (0, 8, 0)),
        ("", None),
    ],
)
def test_versions_are_read_from_what_programs_print(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


def test_the_named_assets_come_first_when_they_are_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    etcd = write_program(tmp_path / "assets", "etcd", says="etcd Version: 3.6.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))

    assert find_binaries(["etcd"], cache=tmp_path / "cache") == {"etcd": etcd}


def test_what_is_too_old_is_passed_over_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "assets", "etcd", says="etcd Version: 3.4.23")
    on_path = write_program(tmp_path / "bin", "etcd", says="etcd Version: 3.5.13")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    said: list[str] = []

    assert find_binaries(["etcd"], progress=said.append, cache=tmp_path / "cache") == {"etcd": on_path}
    assert said == [f"passing over {tmp_path / 'assets' / 'etcd'}: older than 3.5.13"]


def test_the_control_plane_is_never_mixed_from_two_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "assets", "kube-apiserver", says="Kubernetes v1.37.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    built = fake_builds(monkeypatch)

    found = find_binaries(["kube-apiserver"], cache=tmp_path / "cache")

    assert found["kube-apiserver"].is_relative_to(tmp_path / "cache")
    assert built == ["kubernetes"]


def test_parallel_callers_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    built = fake_builds(monkeypatch)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: find_binaries(["helm"], cache=tmp_path), range(4)))

    assert built == ["helm"]
    assert all(each == found[0] for each in found)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TestbedError, match="no such binary: kubeadm; known: etcd, kube-apiserver"):
        find_binaries(["kubeadm"])


@pytest.mark.parametrize(
    ("configured", "used"),
    [
        ("https://proxy.example,direct", "https://proxy.example"),
        ("https://one.example|https://two.example|direct", "https://one.example|https://two.example"),
        ("direct", "direct"),
        ("off", "off"),
    ],
)
def test_modules_come_from_the_configured_proxies_alone(configured: str, used: str) -> None:
    assert proxies_only(configured) == used


def fake_builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let builds only make empty programs; the returned list names the modules built."""
    built: list[str] = []

    def build(suite: binaries.Suite, *, folder: Path, **_: object) -> None:
        built.append(suite.module)
        folder.mkdir(parents=True)
        for name in suite.packages:
            write_program(folder, name, says=suite.version)

    monkeypatch.setattr(binaries, "_build", build)
    return built
