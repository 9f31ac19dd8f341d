"""`ballast approve`: approve proposed moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.output import AS_TABLE, Format, Output, OutputOption, show, table, write
from ballast.cli.report.pool import MOVE
from ballast.cli.source import AllNamespacesOption, NamespaceOption, one_namespace
from ballast.controller.cluster_objects import NotInstalledError, OpenMove, read_moves
from ballast.errors import BallastError
from ballast.kube import kinds
from ballast.kube.client import Client
from ballast.kube.errors import Conflict, NotFound
from ballast.kube.objects import Query, approve_move, read_list
from ballast.model import MovePhase
from ballast.moves import MoveState

EXAMPLES = (
    "kubectl ballast approve clickstream-exec-3-x7k2p -n analytics",
    "kubectl ballast approve --all -n analytics",
    "kubectl ballast approve --all -A -o name",
)
_MOVES = ("executormove", "executormoves", "emove")


class NoSuchMoveError(BallastError):
    """Nothing of that name in that namespace."""


class NotProposedError(BallastError):
    """A move that has begun or ended can't be approved any more."""


@dataclass(frozen=True, slots=True)
class Approval:
    namespace: str
    name: str
    executor: str
    source: str
    target: str
    already: bool
    """It was approved before."""


@reads_cluster
def approve(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="ExecutorMoves, as `kubectl ballast status` lists them.")
    ] = None,
    namespace: NamespaceOption = None,
    everywhere: AllNamespacesOption = False,
    everything: Annotated[bool, typer.Option("--all", help="All proposed moves of the namespace.")] = False,
    output: OutputOption = AS_TABLE,
    access: Access = ANYHOW,
) -> None:
    """Approve proposed moves, where the policy has moves.mode: Approve.

    The operator revalidates each move right before it evicts the executor.
    """
    chosen = [_name(text) for text in names or ()]
    if bool(chosen) == everything:
        raise typer.BadParameter("name one or more moves, or say --all", param_hint="NAME")
    if everywhere and chosen:
        raise typer.BadParameter("it goes with --all only: name moves with -n", param_hint="--all-namespaces")
    only = one_namespace(namespace, everywhere=everywhere)
    connection = access.connect()
    client = access.client(connection)
    try:
        place = None if everywhere else only or connection.namespace
        moves = _proposed(client, place) if place is None or everything else [_read(client, place, x) for x in chosen]
        _tell([_approved(client, move) for move in moves], place, output)
    finally:
        client.close()


def _name(text: str) -> str:
    """Of `NAME` or `executormove/NAME`. Raises BadParameter for another kind."""
    kind, _, name = text.rpartition("/")
    if (kind and kind.lower().removesuffix(".ballast.dev") not in _MOVES) or not name:
        raise typer.BadParameter(f"{text!r}: write NAME or executormove/NAME, its namespace with -n", param_hint="NAME")
    return name


def _proposed(client: Client, namespace: str | None) -> list[OpenMove]:
    """Those of the namespace, or of all, that wait for an approval."""
    try:
        raw = read_list(client, Query(kinds.EXECUTOR_MOVE, namespace=namespace), dict).items
    except NotFound:
        raise NotInstalledError(kinds.EXECUTOR_MOVE.plural) from None
    moves, _ = read_moves(tuple(raw))
    return [each for each in moves if _waits(each.state)]


def _read(client: Client, namespace: str, name: str) -> OpenMove:
    try:
        raw = client.get(kinds.EXECUTOR_MOVE, name, namespace=namespace)
    except NotFound as error:
        if error.of_kind:
            raise NotInstalledError(kinds.EXECUTOR_MOVE.plural) from None
        raise NoSuchMoveError(
            f"{namespace}/{name}: there is no such move: `kubectl get emove -A` lists them; say its namespace with -n"
        ) from error
    moves, broken = read_moves((raw,))
    if broken:
        raise broken[0]
    move = moves[0].state
    if move.phase is not MovePhase.PROPOSED and not (move.orders.approved and not move.phase.ended):
        raise NotProposedError(f"{namespace}/{name} is {move.phase}: only a proposed move can be approved")
    return moves[0]


def _waits(move: MoveState) -> bool:
    return move.phase is MovePhase.PROPOSED and not move.orders.approved


def _approved(client: Client, found: OpenMove) -> Approval:
    move, orders = found.state, found.state.orders
    if not orders.approved:
        try:
            approve_move(client, namespace=orders.namespace, name=orders.name, uid=found.raw["metadata"]["uid"])
        except Conflict as error:
            raise NotProposedError(
                f"{orders.key} has been replaced meanwhile: look at the move again, and then approve it"
            ) from error
    return Approval(
        orders.namespace, orders.name, orders.executor_name, orders.source, move.destination, already=orders.approved
    )


def _tell(approvals: list[Approval], namespace: str | None, output: Output) -> None:
    if output.for_programs:
        names = [f"{MOVE}/{each.name}" for each in approvals]
        write({"approved": [_document(each) for each in approvals]}, output, names=names)
    elif output.form is Format.WIDE:
        rows = [[a.namespace, a.name, a.executor, a.source, a.target] for a in approvals]
        show(table(["namespace", "move", "executor", "from", "to"], rows), form=output.form)
    elif approvals:
        for each in approvals:
            again = " (was already)" if each.already else ""
            typer.echo(f"{each.name} approved{again}: {each.executor} moves from {each.source} to {each.target}")
    else:
        typer.echo(f"no move waits for approval in {f'namespace {namespace}' if namespace else 'any namespace'}")


def _document(each: Approval) -> dict[str, Any]:
    return {
        "namespace": each.namespace,
        "name": each.name,
        "executor": each.executor,
        "from": each.source,
        "to": each.target,
        "already": each.already,
    }
