"""The program's outside: help, version, exit codes, names."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from ballast.api import BalancingPolicy
from ballast.cli import main
from ballast.cli.source import FIRST_POLICY
from ballast.errors import BallastError
from ballast.kube.errors import Forbidden
from tests.apiserver import Answer, kubeconfig, scripted
from tests.unit.cli.program import run

ROOT = Path(__file__).parents[3]

COMMANDS = [
    "status",
    "dashboard",
    "plan",
    "explain",
    "snapshot",
    "approve",
    "stop",
    "start",
    "simulate",
    "discover",
    "report",
    "size",
    "doctor",
    "run",
    "history",
    "backtest",
    "audit",
    "pyfiles",
    "release",
    "uninstall",
    "crds",
    "docs",
    "version",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(command: str) -> None:
    told = run(command, "--help")
    assert told.code == 0
    assert "Examples:" in told.out
    assert f"ballast {command}" in told.out
    assert max(map(len, told.out.splitlines())) <= 100
    assert not re.search(r"<str>|<path>|<list", told.out)


def test_help_lists_every_command() -> None:
    told = run("-h").out
    assert list(main.COMMANDS) == COMMANDS
    assert all(f"\n  {command} " in told for command in COMMANDS)


def test_help_tells_the_exit_codes() -> None:
    told = " ".join(run("--help").out.split())
    assert "Exit codes: 0 all went well 1 it could not be done" in told
    assert "2 wrong usage" in told


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["--help"], {"pydantic", "numpy", "kubernetes", "kopf", "aiohttp"}),
        (["plan", "--help"], {"kubernetes", "kopf", "aiohttp"}),
        (["explain", "--help"], {"kubernetes", "kopf", "aiohttp"}),
        (["snapshot", "--help"], {"kubernetes", "kopf", "aiohttp"}),
    ],
)
def test_what_needs_no_cluster_loads_nothing_that_reaches_one(arguments: list[str], spared: set[str]) -> None:
    loaded = "import sys, atexit; from ballast.cli.main import call; atexit.register(lambda: print(*sys.modules)); "
    ended = subprocess.run(
        [sys.executable, "-c", f"{loaded}call('ballast', {arguments!r})"], capture_output=True, text=True, check=True
    )
    assert not spared & set(ended.stdout.splitlines()[-1].split())


def test_the_version_is_the_distribution_s() -> None:
    assert run("--version").out == f"ballast {version('ballast-operator')}\n"


def test_under_kubectl_it_calls_itself_as_people_call_it() -> None:
    assert run("status", "-h", name="kubectl ballast").out.startswith("Usage: kubectl ballast status")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stats"], "No such command 'stats'. Did you mean 'status'?"),
        (["nothing"], "No such command 'nothing'"),
        (["status", "-n", "a", "-A"], "say -n or -A"),
        (["status", "--request-timeout", "soon"], "write a duration such as 30s"),
        (["snapshot", "-o", "pool.toml"], "Invalid value for '--output' / '-o': 'pool.toml' is not one of"),
        (["status", "--color"], "No such option: --color"),
        (["status", "-o", "xml"], "'xml' is not one of"),
        (["status", "-o", "jsno"], "did you mean json?"),
        (["simulate", str(ROOT / "examples/scenarios/flash-crowd.yaml"), "-p", "AvgSheder"], "mean AvgShedder?"),
        (["explain"], "Missing argument"),
        (["explain", "deployment/x"], "only pods, topologies and policies can be explained"),
        (["plan", "--prometheus", "localhost:9090"], "write an address with its scheme"),
        (["approve"], "name one or more moves, or say --all"),
        (["uninstall"], "say --check; to uninstall, run `helm uninstall RELEASE --namespace NAMESPACE`"),
        (["approve", "m1", "--all"], "name one or more moves, or say --all"),
        (["status", "--every", "0.1"], "'--every': write a number greater than or equal to 0.5"),
        (["simulate", "x.yaml", "--seed", "x"], "'--seed': write a whole number"),
        (["report", "--price-per-gib", "x"], "'--price-per-gib': write a number"),
        (["explain", "pod", "a", "b"], "'pod a b': write TYPE/NAME or TYPE NAME"),
        (["discover", "-n", "a", "-A"], "say -n or -A"),
        (["report", "-n", "a", "-A"], "say -n or -A"),
        (["size"], "give -f topology.yaml with spec.sizing"),
        (["approve", "pod/m1"], "write NAME or executormove/NAME"),
        (["approve", "m1", "-A"], "it goes with --all only"),
        (["plan", "-n=a", "-A"], "say -n or -A"),
        (["explain", "e1", "-n", "a", "-A"], "say -n or -A"),
        (["status", "--watch", "-f", "pool.yaml"], "a snapshot file does not change: leave out --watch or -f"),
        (["status", "-o", "jsonpath={.items"], "close every { with }"),
        (["status", "-o", "jsonpath"], "write a path such as .items[*].name"),
        (["size", "-o", "wide"], "'wide' is not one of text, json, yaml, jsonpath=TEMPLATE"),
        (["simulate", "x.yaml", "-o", "name"], "'name' is not one of table, wide, json"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(arguments: list[str], words: str) -> None:
    ended = run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err


@pytest.mark.parametrize("form", ["table", "yaml"])
def test_a_full_disk_is_told_without_a_traceback(form: str) -> None:
    snapshot = str(ROOT / "examples" / "report" / "snapshot.yaml")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "ballast", "status", "-f", snapshot, "-o", form],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.startswith("Error: standard output can't be written: No space left on device: make room")
    assert ended.stderr.count("\n") == 1


LISTING = ["status", "plan", "explain", "approve", "discover", "report"]


@pytest.mark.parametrize("command", LISTING)
def test_what_shows_objects_takes_kubectl_s_options(command: str) -> None:
    told = run(command, "-h").out
    options = ["-n, --namespace", "-A, --all-namespaces", "--context", "--kubeconfig", "--as", "--request-timeout"]
    assert [option for option in options if option not in told] == []


def test_without_a_cluster_it_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    ended = run("status")
    assert ended.code == 1
    assert "set KUBECONFIG or --kubeconfig" in ended.err
    assert ended.err.count("\n") == 1


def test_where_there_is_no_policy_yet_the_first_one_is_shown(tmp_path: Path) -> None:
    with scripted(Answer(body={"items": [], "metadata": {}})) as server:
        ended = run("status", "--kubeconfig", str(kubeconfig(tmp_path, server.url)))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("Error: there is no BalancingPolicy yet\n\nCreate one")
    assert "kubectl apply -f - <<'EOF'\n" in ended.err


def test_the_first_policy_is_one_and_the_same_wherever_it_is_shown() -> None:
    shown = first_policy(FIRST_POLICY)
    assert BalancingPolicy.parse(yaml.safe_load(shown)).spec.moves.mode == "Recommend"
    for file in ("docs/use.md", "charts/ballast/templates/NOTES.txt"):
        assert shown in (ROOT / file).read_text(encoding="utf-8")


def first_policy(text: str) -> str:
    """The lines between those that hand it to kubectl."""
    return text.split("<<'EOF'\n")[1].split("EOF\n", maxsplit=1)[0]


def test_a_missing_right_is_the_caller_s_not_the_operator_s(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise Forbidden("list pods", 'User "ann" cannot list resource "pods"')

    monkeypatch.setattr(main, "app", refuse)
    assert run("status").err == 'Error: you may not list pods: User "ann" cannot list resource "pods"\n'


@pytest.mark.parametrize(
    ("problems", "told"),
    [("\n  a: wrong", " a: wrong\n"), ("\n  a: wrong\n  b: wrong", "\n  a: wrong\n  b: wrong\n")],
)
def test_one_problem_takes_one_line_and_several_take_one_each(
    problems: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise BallastError(f"this is not valid:{problems}")

    monkeypatch.setattr(main, "app", fail)
    assert run("status").err == f"Error: this is not valid:{told}"
