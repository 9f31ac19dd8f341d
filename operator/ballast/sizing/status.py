"""A recommendation in the status of a SparkTopology."""

from __future__ import annotations

from ballast.api.topology_sizing import Sizing
from ballast.api.topology_status import SizingStatus, SizingVariable
from ballast.sizing.facts import Facts
from ballast.sizing.provenance import Variable
from ballast.sizing.recommendation import Recommendation, recommend

_MOST_WARNINGS = 32


def sizing_status(declared: Sizing) -> tuple[SizingStatus, str] | None:
    """The block and the headline, by what is declared alone; None where nothing but a goal is."""
    facts = Facts(declared)
    if facts.nothing_known:
        return None
    found = recommend(facts)
    return in_status(found), found.headline


def in_status(found: Recommendation) -> SizingStatus:
    limit = found.bottleneck
    named = "" if limit.resource is None else f"{limit.resource.value} at {limit.stage}: "
    return SizingStatus(
        bottleneck=f"{named}{limit.evidence}",
        variables=tuple(_variable(each) for each in found.table.variables.values()),
        spark_conf=dict(found.spark_conf),
        warnings=found.warnings[:_MOST_WARNINGS],
    )


def _variable(variable: Variable) -> SizingVariable:
    value = variable.value
    return SizingVariable(
        name=variable.name,
        value=f"{value.amount:.6g} {value.unit}".strip(),
        formula=variable.formula,
        origin=value.origin.value,
    )
