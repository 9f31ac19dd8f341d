"""`ballast uninstall --check`: whether Ballast can be removed now, and what would be left behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import AS_TEXT, TextOption, show, write
from ballast.kube.client import Client
from ballast.kube.errors import NotFound
from ballast.kube.template_gates import MOST_NAMED, GatedPod, TemplateGates, gated_pods, template_gates
from ballast.listing import named

if TYPE_CHECKING:
    from ballast.moves import MoveState

EXAMPLES = (
    "kubectl ballast uninstall --check",
    "kubectl ballast uninstall --check -o jsonpath='{.safe}'",
)


@dataclass(frozen=True, slots=True)
class Remains:
    """What an uninstallation finds."""

    gates: TemplateGates
    moves: tuple[MoveState, ...] = ()
    """Open ones."""
    moves_not_read: tuple[str, ...] = ()
    """What is wrong with those of which it is not known whether they are open."""
    gated: tuple[GatedPod, ...] = ()

    @property
    def safe(self) -> bool:
        """The uninstallation itself releases what is gated."""
        return not (self.gates.found or self.gates.not_read or self.moves or self.moves_not_read)


@reads_cluster
def uninstall(
    check: Annotated[bool, typer.Option("--check", help="Check whether it is safe; change nothing.")] = False,
    output: TextOption = AS_TEXT,
    access: Access = ANYHOW,
) -> None:
    """Check whether Ballast can be uninstalled now: what would be left gated, and which moves are open.

    It finds running applications whose executors get the gate ballast.dev/placement from their pod template: without
    an operator nothing would release their new executors. Of very many it names some; -o json has all. Exit code 0:
    safe. 1: not safe, or not known.
    """
    if not check:
        raise typer.BadParameter(
            "say --check; to uninstall, run `helm uninstall RELEASE --namespace NAMESPACE`", param_hint="--check"
        )
    client = access.client(access.connect())
    try:
        found = remains(client)
    finally:
        client.close()
    if output.for_programs:
        write(_document(found), output)
    else:
        show(*_report(found), form=output.form)
    if not found.safe:
        raise typer.Exit(1)


def remains(client: Client) -> Remains:
    """Raises KubeError."""
    gated = gated_pods(client)
    moves, not_read = _moves(client)
    return Remains(template_gates(client, gated), moves, not_read, tuple(gated))


def _moves(client: Client) -> tuple[tuple[MoveState, ...], tuple[str, ...]]:
    """Open ones, and what is wrong with others."""
    from ballast.controller.cluster_objects import read_moves  # noqa: PLC0415 -- `release` needs none of it
    from ballast.kube.kinds import EXECUTOR_MOVE  # noqa: PLC0415 -- as above
    from ballast.kube.objects import Query, read_list  # noqa: PLC0415 -- as above

    try:
        raw = read_list(client, Query(EXECUTOR_MOVE), dict).items
    except NotFound:  # no definitions, no moves
        return (), ()
    moves, broken = read_moves(tuple(raw))
    return tuple(each.state for each in moves if not each.state.phase.ended), tuple(map(str, broken))


def _report(found: Remains) -> list[RenderableType]:
    parts = [Text.assemble(("Warning ", "yellow"), told, overflow="fold") for told in found.gates.warnings()]
    if found.moves:
        keys = named((f"{move.orders.key} ({move.phase.value})" for move in found.moves), most=MOST_NAMED)
        words = f"These moves are open, and would never end. Let them end, or delete them: {keys}"
        parts.append(Text.assemble(("Warning ", "yellow"), words, overflow="fold"))
    for each in found.moves_not_read[:MOST_NAMED]:
        words = f"A move can't be read, and may be open. Delete it, or use the command of its version: {each}"
        parts.append(Text.assemble(("Warning ", "yellow"), words, overflow="fold"))
    if len(found.moves_not_read) > MOST_NAMED:
        words = f"{len(found.moves_not_read) - MOST_NAMED} more moves can't be read."
        parts.append(Text.assemble(("Warning ", "yellow"), words))
    if found.gated:
        words = f"{len(found.gated)} pods are gated now: the uninstallation releases them, without a place."
        parts.append(Text(words))
    verdict = ("Safe to uninstall.", "green") if found.safe else ("Not safe to uninstall.", "red")
    return [*parts, Text.assemble(verdict)]


def _document(found: Remains) -> dict[str, Any]:
    return {
        "safe": found.safe,
        "gatedByTemplate": list(found.gates.found),
        "templatesNotRead": list(found.gates.not_read),
        "openMoves": [
            {"namespace": move.orders.namespace, "name": move.orders.name, "phase": move.phase.value}
            for move in found.moves
        ],
        "movesNotRead": list(found.moves_not_read),
        "gatedPods": [
            {"namespace": pod.namespace, "name": pod.name, "byTemplate": pod.by_template} for pod in found.gated
        ],
    }
