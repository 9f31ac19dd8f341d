"""Which commands of a script start a program: by themselves, or through sudo, bash -c, kubectl exec and the like.

A mention of a program's name, as in `which spark-submit` or `pip install pyspark`, starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ballast.doctor import shell
from ballast.doctor.shell import Command, Script, Word

_SHELLS = {"bash", "sh", "dash", "ksh", "zsh", "ash"}
_PREFIXES = {
    *("exec", "command", "builtin", "eval", "nohup", "sudo", "doas", "env", "time", "nice", "ionice", "timeout"),
    *("stdbuf", "setsid", "setpriv", "unbuffer", "xargs", "parallel", "retry", "caffeinate", "catchsegv"),
    *("tini", "dumb-init", "catatonit", "entrypoint.sh", "nq", "chpst", "softlimit", "!", "$", "%"),
}
"""They run the command behind their options."""
_TAKE_ONE = {"gosu", "su-exec", "flock", "chroot", "taskset", "chrt", "runuser", "su", "krb5-run"}
"""So do these, behind one other argument."""
_ELSEWHERE = {"ssh", "srun", "mpirun", "nsenter", "watch", "tmux", "screen", "script"}
"""They run their last arguments, behind options and names that are not told apart."""
_CONTAINERS = ("docker", "podman", "nerdctl", "crictl", "docker-compose", "podman-compose")
_BY_SUBCOMMAND = {
    **dict.fromkeys(("kubectl", "k", "oc", "k3s", "microk8s", "minikube"), ("exec", "run", "debug")),
    **dict.fromkeys(_CONTAINERS, ("exec", "run")),
    **dict.fromkeys(("poetry", "uv", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba"), ("run",)),
}
"""They run commands by these of their subcommands alone."""
_ENTRYPOINT = "--entrypoint"
_FLAGS = re.compile(
    r"-[dPqitT]+|--(?:detach|disable-content-trust|init|interactive|no-(?:deps|healthcheck)|oom-kill-disable|privileged"
    r"|publish-all|quiet|read-only|rm|service-ports|sig-proxy|tty|use-aliases|[\w-]+=.*)",
    re.DOTALL,
)
"""Options of `docker run` and the like that have no value in the next word."""
_VALUE = re.compile(r"[\d.]+[smhd]?|\w+=.*", re.DOTALL)
"""A number, a duration or an assignment of an environment variable."""


@dataclass(frozen=True, slots=True)
class Start:
    command: Command
    program: str
    words: tuple[Word, ...]
    """Behind the program's name."""


def starts(script: Script, programs: set[str]) -> Iterator[Start]:
    """Each start of such a program, also within a text that another command reads as a script."""
    for command in script.commands:
        words = _entered(command.words)
        at, wrapper = _started(words, lambda word: _name(word) in programs, script.runners)
        if at is not None:
            yield Start(command, _name(words[at]), words[at + 1 :])
        elif wrapper:
            for word in command.words:
                if _is_text([word]):
                    for each in starts(shell.read(word.text, word.unknown), programs):
                        yield Start(command, each.program, each.words)


def _entered(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """`docker run --entrypoint PROGRAM IMAGE ARGUMENTS` in the order in which it is run: PROGRAM behind IMAGE."""
    container = next((i for i, word in enumerate(words) if _name(word) in _CONTAINERS), len(words))
    run = next((i for i in range(container, len(words)) if words[i].text == "run"), len(words))
    program, at = None, run + 1
    kept = [*words[:at]]
    while at < len(words) and words[at].text.startswith("-"):
        text, pair = words[at].text, not _FLAGS.fullmatch(words[at].text)
        if text.partition("=")[0] == _ENTRYPOINT:
            program = words[at + 1] if pair and at + 1 < len(words) else Word(text.partition("=")[2])
        else:
            kept += words[at : at + 1 + pair]
        at += 1 + pair
    return words if program is None or at >= len(words) else (*kept, words[at], program, *words[at + 1 :])


def _name(word: Word) -> str:
    return PurePosixPath(word.text).name


def _started(
    words: Sequence[Word], is_program: Callable[[Word], bool], runners: Collection[str] = ()
) -> tuple[int | None, bool]:
    """Where the program stands, and if it doesn't whether a command is there that may read a text as a script."""
    at, runs_texts = 0, False
    while at < len(words):
        name = _name(words[at])
        if is_program(words[at]):
            return at, False
        if name in _ELSEWHERE:
            return next((i for i in range(at + 1, len(words)) if is_program(words[i])), None), True
        if name in _BY_SUBCOMMAND:
            return _by_subcommand(words, at, is_program)
        if not (name in _PREFIXES or name in _TAKE_ONE or name in _SHELLS or words[at].many or name in runners):
            return None, runs_texts
        runs_texts = name in ("su", "runuser") or (name == "eval" and _is_text(words[at + 1 : at + 2]))
        at = _behind_options(words, at + 1, own=1 if name in _TAKE_ONE else 0, is_program=is_program)
        if name in _SHELLS and any(_runs_text(word.text) for word in words[:at]):
            return None, True
    return None, runs_texts


def _is_text(words: Sequence[Word]) -> bool:
    return any(character.isspace() for word in words for character in word.text)


def _runs_text(option: str) -> bool:
    """-c, or -lc and the like."""
    return re.fullmatch(r"-[a-z]*c", option) is not None


def _behind_options(words: Sequence[Word], at: int, *, own: int, is_program: Callable[[Word], bool]) -> int:
    """The next word that is neither an option, nor its value, nor an assignment, nor one of `own` arguments."""
    may_have_value = False
    while at < len(words) and not is_program(words[at]):
        text = words[at].text
        if text.startswith("-"):
            may_have_value = "=" not in text and text not in ("-", "--")
        elif _VALUE.fullmatch(text) or (may_have_value and not _runs(words[at])):
            may_have_value = False
        elif own:
            own -= 1
        else:
            break
        at += 1
    return at


def _runs(word: Word) -> bool:
    name = _name(word)
    return name in _PREFIXES or name in _SHELLS or name in _TAKE_ONE or name in _ELSEWHERE or name in _BY_SUBCOMMAND


def _by_subcommand(words: Sequence[Word], at: int, is_program: Callable[[Word], bool]) -> tuple[int | None, bool]:
    named = _BY_SUBCOMMAND[_name(words[at])]
    subcommand = next((i for i in range(at + 1, len(words)) if words[i].text in named), None)
    if subcommand is None:
        return None, False
    divided = next((i for i in range(subcommand, len(words)) if words[i].text == "--"), None)
    if divided is not None:
        found, runs_texts = _started(words[divided + 1 :], is_program)
        return (None if found is None else divided + 1 + found), runs_texts
    for i in range(subcommand + 1, len(words)):
        before = words[i - 1].text
        # A name behind an option, or right behind the subcommand, may be that of a container or of its image.
        if is_program(words[i]) and not before.startswith("-") and (i - 1 != subcommand or named == ("run",)):
            return i, False
    return None, True
