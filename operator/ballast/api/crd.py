"""The CustomResourceDefinitions, generated from the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from ballast.api.gate import GateSwitch
from ballast.api.meta import Model, Resource, descriptions
from ballast.api.move import ExecutorMove
from ballast.api.policy import BalancingPolicy
from ballast.api.structural import Schema, structural
from ballast.api.topology import SparkTopology
from ballast.api.version import GROUP, VERSION

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = "# Generated from the models in ballast.api by `ballast crds`. Change those, not this file.\n"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a wide one shows with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str = ""

    def as_column(self) -> dict[str, Any]:
        column: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        if self.wide:
            column["priority"] = 1
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind: its model, its names and its columns."""

    model: type[Resource]
    plural: str
    short_names: tuple[str, ...]
    namespaced: bool
    columns: tuple[Column, ...]
    status_default: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{GROUP}"

    @property
    def file_name(self) -> str:
        return f"{GROUP}_{self.plural}.yaml"

    def part(self, field: str) -> tuple[type[Model], str]:
        """The model and the description of `spec` or `status`."""
        info = self.model.model_fields[field]
        assert isinstance(info.annotation, type)  # noqa: S101 -- a Resource's parts are models
        assert issubclass(info.annotation, Model)  # noqa: S101 -- as above
        return info.annotation, descriptions(self.model)[field]


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


_AGE = Column("Age", ".metadata.creationTimestamp", "date")
_UNSEEN = {"observedGeneration": -1}

KINDS: tuple[Kind, ...] = (
    Kind(
        model=SparkTopology,
        plural="sparktopologies",
        short_names=("stopo",),
        namespaced=True,
        status_default=_UNSEEN,
        columns=(
            Column("Ready", _condition("Ready")),
            Column("Executors", ".status.executors.text", description="Running and expected executors"),
            Column("Gated", ".status.executors.gated", "integer", description="Executors gated until they are placed"),
            Column("Cross-zone", ".status.locality.crossZoneRatio", "number", description="Share of the traffic"),
            Column("Cross-rack", ".status.locality.crossRackRatio", "number", description="Share of the traffic"),
            Column("Cross-node", ".status.locality.crossNodeRatio", "number", wide=True),
            Column("Policy", ".status.policy"),
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', wide=True),
            _AGE,
        ),
    ),
    Kind(
        model=BalancingPolicy,
        plural="balancingpolicies",
        short_names=("bpol",),
        namespaced=False,
        status_default=_UNSEEN,
        columns=(
            Column("Ready", _condition("Ready")),
            Column("Placement", ".spec.placement.mode"),
            Column("Moves", ".spec.moves.mode"),
            Column("Stopped", ".spec.stopped", "boolean", description="Does nothing: kubectl ballast start"),
            Column("Nodes", ".status.nodes.eligible", "integer", description="Nodes that can take part"),
            Column("Metrics", '.status.conditions[?(@.type=="MetricsAvailable")].reason'),
            Column("Mean", ".status.nodes.mean", "number", description="Mean score"),
            Column("Std", ".status.nodes.stdDev", "number", description="Standard deviation of the scores"),
            Column("Gap", ".status.nodes.gap", "number", description="Highest score less the lowest"),
            Column("Moved", ".status.moved", "integer", description="Successful moves in the last 24 hours"),
            Column("Balanced", _condition("Balanced")),
            Column("Profile", ".spec.profile", wide=True),
            Column("Hottest", ".status.nodes.hottest.name", wide=True),
            Column("Coldest", ".status.nodes.coldest.name", wide=True),
            _AGE,
        ),
    ),
    Kind(
        model=ExecutorMove,
        plural="executormoves",
        short_names=("emove",),
        namespaced=True,
        status_default=_UNSEEN,
        columns=(
            Column("Phase", ".status.phase"),
            Column("Reason", ".status.reason"),
            Column("Executor", ".spec.executor.pod"),
            Column("From", ".spec.sourceNodeName"),
            Column("To", ".spec.targetNodeName"),
            Column("Gain", ".status.measured.gain", "number", description="Points by which the gap narrowed"),
            Column("Topology", ".spec.topologyName", wide=True),
            Column("Replacement", ".status.replacement.pod", wide=True),
            Column("Landed", ".status.replacement.node", wide=True),
            _AGE,
        ),
    ),
    Kind(
        model=GateSwitch,
        plural="gateswitches",
        short_names=("gsw",),
        namespaced=False,
        columns=(
            Column("Gating", ".spec.gating", "boolean"),
            Column("Everywhere", ".spec.allNamespaces", "boolean"),
            Column("Namespaces", ".spec.namespaces", wide=True),
            Column("Leader", ".status.leader"),
            Column("Written", ".status.heartbeatTime", "date"),
            _AGE,
        ),
    ),
)


def definition(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of `kind`."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name, "labels": {"app.kubernetes.io/part-of": "ballast"}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(kind.short_names),
                "categories": ["ballast"],
            },
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [column.as_column() for column in kind.columns],
                    "schema": {"openAPIV3Schema": schema(kind)},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def schema(kind: Kind) -> Schema:
    """The schema of a whole object of `kind`."""
    status = _part(kind, "status")
    if kind.status_default is not None:
        status = {**status, "default": kind.status_default}
    required = {"required": ["spec"]} if kind.model.model_fields["spec"].is_required() else {}
    return {
        "description": kind.model.__doc__ or "",
        "type": "object",
        **required,
        "properties": {
            "apiVersion": {"description": "The version of the schema of this object.", "type": "string"},
            "kind": {"description": "The kind of this object.", "type": "string"},
            "metadata": {"type": "object"},
            "spec": _part(kind, "spec"),
            "status": status,
        },
    }


def _part(kind: Kind, field: str) -> Schema:
    model, description = kind.part(field)
    whole = {**structural(model), "description": description}
    if callable(add_default := kind.model.model_fields[field].json_schema_extra):
        add_default(whole)
    return whole


class _Dumper(yaml.SafeDumper):
    """Lists indented, no anchors for values that occur twice."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 -- PyYAML's
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- PyYAML's
        return True


def generate() -> dict[str, str]:
    """File name to YAML text, the same in every run."""
    return {
        kind.file_name: _HEADER
        + yaml.dump(definition(kind), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
        for kind in KINDS
    }


def write(directory: Path) -> list[Path]:
    """Write every definition below `directory`, remove stale ones, and return the files that changed."""
    directory.mkdir(parents=True, exist_ok=True)
    expected = generate()
    changed = [directory / name for name in check(directory)]
    for path in changed:
        if path.name in expected:
            path.write_text(expected[path.name], encoding="utf-8")
        else:
            path.unlink()
    return changed


def check(directory: Path) -> list[str]:
    """Names of the files in `directory` that are missing, stale or differ from what would be generated."""
    expected = generate()
    present = {path.name: path.read_text(encoding="utf-8") for path in directory.glob(f"{GROUP}_*.yaml")}
    return sorted(name for name in {*expected, *present} if expected.get(name) != present.get(name))
