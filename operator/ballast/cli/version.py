"""`ballast version`: this program, the operator in the cluster, and the versions of Ballast's kinds there."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ballast.cli.access import ANYHOW, Access, reads_cluster
from ballast.cli.operators import OURS, is_operator
from ballast.cli.output import AS_TEXT, TextOption, show, write
from ballast.errors import BallastError

if TYPE_CHECKING:
    from ballast.kube.client import Client
    from ballast.kube.document import JSON

EXAMPLES = (
    "kubectl ballast version",
    "kubectl ballast version -o json",
    "ballast version --client",
)
_RELEASED = "app.kubernetes.io/version"
_GROUP = "ballast.dev"


@dataclass(frozen=True, slots=True)
class Operator:
    """One Deployment of the operator."""

    namespace: str
    name: str
    version: str | None
    """Of its image's tag; of its chart's label, if the image is named by its digest alone."""
    image: str
    ready: int
    replicas: int


@dataclass(frozen=True, slots=True)
class Versions:
    client: str
    operators: tuple[Operator, ...] | None = None
    """None where they are not known."""
    kinds: dict[str, tuple[str, ...]] | None = None
    """By the plural of each of Ballast's kinds: the versions that the API server serves."""
    problems: tuple[str, ...] = ()
    """Why something is not known."""


@reads_cluster
def version(
    client: Annotated[bool, typer.Option("--client", help="Only this program's version; no server is asked.")] = False,
    output: TextOption = AS_TEXT,
    access: Access = ANYHOW,
) -> None:
    """Show the version of this program, of the operator in the cluster, and of the custom resource definitions.

    What can't be read is not known, and says why; that is no error.
    """
    found = Versions(installed("ballast-operator"))
    if not client:
        found = _with_cluster(found, access)
    if output.for_programs:
        write(_document(found, client_only=client), output)
    else:
        show(*(Text(line, overflow="fold") for line in _lines(found, client_only=client)))


def _with_cluster(found: Versions, access: Access) -> Versions:
    try:
        server = access.client(access.connect())
    except BallastError as error:
        return Versions(found.client, problems=(str(error),))
    problems = []
    operators: tuple[Operator, ...] | None = None
    kinds: dict[str, tuple[str, ...]] | None = None
    try:
        try:
            operators = _operators(server)
        except BallastError as error:
            problems.append(str(error))
        try:
            kinds = _kinds(server)
        except BallastError as error:
            problems.append(str(error))
    finally:
        server.close()
    return Versions(found.client, operators, kinds, tuple(dict.fromkeys(problems)))


def _operators(server: Client) -> tuple[Operator, ...]:
    """Raises KubeError."""
    from ballast.kube.kinds import DEPLOYMENT  # noqa: PLC0415 -- unused with --client
    from ballast.kube.objects import Query, read_list  # noqa: PLC0415 -- as above

    found = read_list(server, Query(DEPLOYMENT, labels=OURS), lambda raw: raw).items
    return tuple(_operator(each) for each in found if is_operator(each))


def _operator(raw: JSON) -> Operator:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    image = str(spec["template"]["spec"]["containers"][0]["image"])
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return Operator(
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=tag or (metadata.get("labels") or {}).get(_RELEASED),
        image=image,
        ready=status.get("readyReplicas") or 0,
        replicas=1 if spec.get("replicas") is None else spec["replicas"],
    )


def _kinds(server: Client) -> dict[str, tuple[str, ...]]:
    """Raises KubeError."""
    from ballast.kube.kinds import DEFINITION  # noqa: PLC0415 -- unused with --client
    from ballast.kube.objects import Query, read_list  # noqa: PLC0415 -- as above

    specs = [spec for spec in read_list(server, Query(DEFINITION), _own).items if spec is not None]
    return {
        spec["names"]["plural"]: tuple(each["name"] for each in spec["versions"] if each.get("served"))
        for spec in sorted(specs, key=lambda spec: str(spec["names"]["plural"]))
    }


def _own(raw: JSON) -> JSON | None:
    spec: JSON = raw["spec"]
    return spec if spec["group"] == _GROUP else None


def _lines(found: Versions, *, client_only: bool) -> list[str]:
    lines = [f"client    {found.client}"]
    if client_only:
        return lines
    unknown = f"not known: {'; '.join(found.problems)}"
    if found.operators is None:
        lines.append(f"operator  {unknown}")
    elif not found.operators:
        lines.append("operator  none: no Deployment with the labels of Ballast's chart")
    for each in found.operators or ():
        differs = "" if each.version in (found.client, None) else "; it differs from the client"
        lines.append(
            f"operator  {each.version or 'not known'} in {each.namespace}/{each.name}: {each.image}, "
            f"{each.ready} of {each.replicas} replicas ready{differs}"
        )
    if found.kinds is None:
        lines.append(f"crds      {unknown}")
    else:
        told = ", ".join(f"{plural} {'/'.join(served)}" for plural, served in found.kinds.items())
        lines.append(f"crds      {told or 'none'}")
    return lines


def _document(found: Versions, *, client_only: bool) -> dict[str, Any]:
    """`operators` and `crds` are null where they are not known."""
    if client_only:
        return {"client": {"version": found.client}}
    operators = None
    if found.operators is not None:
        operators = [
            {
                "namespace": each.namespace,
                "name": each.name,
                "version": each.version,
                "image": each.image,
                "ready": each.ready,
                "replicas": each.replicas,
            }
            for each in found.operators
        ]
    kinds = None if found.kinds is None else {plural: list(served) for plural, served in found.kinds.items()}
    return {
        "client": {"version": found.client},
        "operators": operators,
        "crds": kinds,
        "problems": list(found.problems),
    }
