"""Every command that asks the API server takes kubectl's options for the connection."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from ballast.cli import snapshot
from ballast.cli.access import Access
from ballast.cli.situation import Situation, dump, load
from ballast.cli.source import Seen
from tests.apiserver import Answer, kubeconfig, scripted
from tests.unit.cli.pools import a_situation
from tests.unit.cli.program import run

FORBIDDEN = Answer(403, {"message": "no"})
NONE = Answer(body={"items": [], "metadata": {}})
READING = (
    ["status"],
    ["plan"],
    ["explain", "pod/p"],
    ["snapshot"],
    ["approve", "--all"],
    ["report"],
    ["discover"],
    ["doctor"],
    ["release", "--stale"],
    ["uninstall", "--check"],
)


@pytest.mark.parametrize("arguments", READING, ids=lambda arguments: arguments[0])
def test_with_as_every_request_is_of_that_user(arguments: list[str], tmp_path: Path) -> None:
    with scripted(FORBIDDEN) as script:
        run(*arguments, "--as", "ann", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert script.asked
    assert {asked.headers.get("Impersonate-User") for asked in script.asked} == {"ann"}


def test_without_as_nobody_is_impersonated(tmp_path: Path) -> None:
    with scripted(NONE) as script:
        run("status", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert all("Impersonate-User" not in asked.headers for asked in script.asked)


def test_with_a_request_timeout_a_failed_request_is_not_repeated(tmp_path: Path) -> None:
    with scripted(Answer(hang_up=True)) as script:
        ended = run("status", "--request-timeout", "5s", "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert ended.code == 1
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    ("seconds", "connect_seconds", "read_seconds"), [(2.0, 2.0, 2.0), (90.0, 5.0, 90.0), (0.0, 5.0, None)]
)
def test_the_request_timeout_bounds_one_request(
    seconds: float, connect_seconds: float, read_seconds: float | None
) -> None:
    limits = Access(request_seconds=seconds).limits
    assert (limits.connect_seconds, limits.read_seconds) == (connect_seconds, read_seconds)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Situation:
    """What `snapshot` sees."""
    situation = a_situation()
    monkeypatch.setattr(snapshot, "look_once", lambda where, policy: Seen((situation,)))
    return situation


@pytest.mark.parametrize(("options", "begins"), [([], "kind: BallastSnapshot\n"), (["-o", "json"], "{\n")])
def test_a_snapshot_goes_to_standard_output(pool: Situation, options: list[str], begins: str, tmp_path: Path) -> None:
    written = run("snapshot", *options)
    assert (written.code, written.err) == (0, "")
    assert written.out.startswith(begins)
    file = tmp_path / "pool"
    file.write_text(written.out, encoding="utf-8")
    assert load(file) == pool


@pytest.mark.parametrize(("name", "begins"), [("pool.yaml", "kind:"), ("pool.json", "{")])
def test_a_snapshot_goes_to_a_file_in_the_form_of_its_name(
    pool: Situation, name: str, begins: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    written = run("snapshot", "--output-file", str(file))
    assert (written.code, written.out) == (0, "")
    assert written.err.startswith(f"wrote {file}\npolicy streaming: ")
    assert file.read_text(encoding="utf-8").startswith(begins)
    assert load(file) == pool


@pytest.mark.parametrize("arguments", [["status"], ["plan"], ["explain", "pod/exec-1"], ["report"]])
def test_a_snapshot_is_read_from_standard_input(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(dump(a_situation()), encoding="utf-8")
    named = run(*arguments, "-f", str(file), "-o", "json")
    monkeypatch.setattr(sys, "stdin", io.StringIO(dump(a_situation())))
    piped = run(*arguments, "-f", "-", "-o", "json")
    assert (piped.code, piped.err) == (0, "")
    assert piped.out == named.out


def test_pods_are_read_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("no pods"))
    ended = run("discover", "-f", "-")
    assert ended.code == 2
    assert "write it with `kubectl get pods -A -o json`" in ended.err
