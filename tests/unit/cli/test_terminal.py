"""What other people wrote does not control the terminal of whoever reads it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from ballast.cli.terminal import guarded, harmless
from tests.apiserver import Answer, kubeconfig, scripted
from tests.unit.cli.program import run

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31m\rapproved\x7f\u202e"


def obeyed(text: str) -> bool:
    return any(not (c.isprintable() or c in "\n\t") for c in text)


def test_text_lines_and_tabs_stay_and_what_a_terminal_obeys_does_not() -> None:
    assert harmless("Zürich\tnode-1 → node-2\n") == "Zürich\tnode-1 → node-2\n"
    assert not obeyed(harmless(HOSTILE))
    assert harmless(HOSTILE).endswith("approved\ufffd\ufffd")


def test_both_streams_are_guarded_while_a_command_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with guarded():
        typer.echo(HOSTILE)
        typer.echo(HOSTILE, err=True)
        sys.stdout.writelines([HOSTILE, "\n"])
        print(HOSTILE, file=sys.stderr)
    printed = capsys.readouterr()
    assert printed.out.count("approved") == printed.err.count("approved") == 2
    assert not obeyed(printed.out + printed.err)


@pytest.mark.parametrize("as_json", [True, False])
def test_an_operators_log_does_not_control_the_terminal_either(as_json: bool) -> None:
    """Its root handler would outlive this test in this process."""
    program = f"""
import logging
from ballast.cli.terminal import guarded
from ballast.controller.logs import configure
with guarded():
    configure(as_json={as_json}, level=logging.INFO)
    logging.getLogger("ballast").warning("left alone: %s", {HOSTILE!r}, extra={{"detail": {HOSTILE!r}}})
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stderr.count("owned") == 2
    assert not obeyed(done.stdout + done.stderr)


@pytest.mark.parametrize("command", ["status", "approve --all -A", "release --stale"])
def test_an_api_servers_words_do_not_control_the_terminal(command: str, tmp_path: Path) -> None:
    """An admission webhook chooses them."""
    with scripted(Answer(403, {"message": HOSTILE})) as script:
        ended = run(*command.split(), "--kubeconfig", str(kubeconfig(tmp_path, script.url)))
    assert ended.code == 1
    assert "owned" in ended.err
    assert not obeyed(ended.out + ended.err)
