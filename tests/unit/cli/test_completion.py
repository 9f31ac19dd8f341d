"""What kubectl offers when a user presses Tab after `kubectl ballast …`."""

from __future__ import annotations

import pytest

from ballast.cli.completion import Completions, Directive, completions, kubectl_complete
from ballast.cli.main import COMMANDS

FILES, NO_FILES = Directive.FILES, Directive.NO_FILES


def completed(line: str) -> Completions:
    """`line`: what follows `kubectl ballast `; its last word is the one that is completed."""
    *before, word = line.split(" ")
    return completions(before, word)


def words(line: str) -> list[str]:
    return [word for word, _ in completed(line).words]


def test_every_command_is_offered_with_its_explanation() -> None:
    assert dict(completed("").words) == COMMANDS


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("p", ["plan", "pyfiles"]),
        ("s", ["status", "snapshot", "stop", "start", "simulate", "size"]),
        ("--v", ["--version"]),
        ("plan --na", ["--namespace"]),
        ("plan -n analytics --na", []),
        ("backtest --scenario a.yaml --sc", ["--scenario"]),
        ("backtest --no", ["--no-baseline"]),
        ("status --all", ["--all-namespaces"]),
        ("plan -o j", ["json", "jsonpath="]),
        ("plan -o ", ["table", "wide", "name", "json", "yaml", "jsonpath="]),
        ("plan --output=y", ["yaml"]),
        ("status -w -o w", ["wide"]),
        ("report --cloud A", ["aws", "azure"]),
        ("plan --namespace ", []),
        ("plan --namespace=analytics ", []),
        ("nonsense ", []),
        ("nonsense --", []),
    ],
)
def test_what_may_stand_there_is_offered(line: str, offered: list[str]) -> None:
    assert words(line) == offered


@pytest.mark.parametrize(
    ("line", "directive"),
    [
        ("plan -f ", FILES),
        ("plan -f=sna", FILES),
        ("plan -n ", NO_FILES),
        ("plan ", NO_FILES),
        ("simulate ", FILES),
        ("backtest --policies a.yaml b.y", FILES),
        ("backtest --policies=a.yaml b.y", FILES),
        ("backtest --seeds 5 b.y", NO_FILES),
        ("doctor --conf ", FILES),
        ("", NO_FILES),
    ],
)
def test_files_are_offered_where_a_file_may_stand(line: str, directive: Directive) -> None:
    assert completed(line).directive is directive


def test_kubectl_reads_a_word_a_line_and_then_the_directive(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["kubectl_complete-ballast", "pl"])
    kubectl_complete()
    assert capsys.readouterr().out == f"plan\t{COMMANDS['plan']}\n:4\n"
