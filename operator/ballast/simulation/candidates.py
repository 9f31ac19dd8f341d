"""The policies to compare: from files and names, in all variants of a grid, with one that moves nothing beside."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ballast.errors import InvalidField
from ballast.simulation.grid import Axis, combined, without_effect
from ballast.simulation.policies import FILES, by_name, in_file
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Document, moves_anything

NO_MOVES = "no moves"


def candidates(
    policies: Sequence[str], axes: Sequence[Axis], *, figures: Mapping[str, Any], baseline: bool
) -> dict[str, Document]:
    """By their labels, in the order given.

    `policies`: files, or strategies by name on top of `figures`. `baseline`: add the first policy without its moves,
    unless there is one that moves nothing. Raises InvalidField or InvalidResource.
    """
    found: dict[str, Document] = {}
    for label, document in (each for text in policies for each in _read(text, figures)):
        for name, variant in combined(label, document, axes).items():
            if name in found:
                raise InvalidField("--policies", name, "there is a policy of that name already: rename one")
            found[name] = variant
    for problem in without_effect(axes, found):
        raise problem
    if baseline and all(moves_anything(document) for document in found.values()):
        found[NO_MOVES] = _still(next(iter(found.values())))
    return found


def shared_figures(scenarios: Iterable[Scenario]) -> Mapping[str, Any]:
    """What strategies that are given by name go by. Raises InvalidField where scenarios do not say the same."""
    first, *others = scenarios
    for other in others:
        if other.spec.policy != first.spec.policy:
            raise InvalidField(
                "--policies",
                f"{first.name}, {other.name}",
                "these scenarios give strategies different figures in spec.policy: name files of BalancingPolicies",
            )
    return first.spec.policy


def _read(text: str, figures: Mapping[str, Any]) -> Iterable[tuple[str, Document]]:
    if text.endswith(FILES):
        return [(raw["metadata"]["name"], _to_apply(raw)) for raw in in_file(Path(text))]
    return [(text, by_name(text, figures))]


def _to_apply(raw: Document) -> Document:
    """Without what an API server has added."""
    named = {key: value for key, value in raw["metadata"].items() if key in ("name", "labels", "annotations")}
    return {"apiVersion": raw["apiVersion"], "kind": raw["kind"], "metadata": named, "spec": raw["spec"]}


def _still(document: Document) -> Document:
    """The policy with its placement alone. Its name stays, so that applied it takes the place of the one that moves."""
    still = copy.deepcopy(dict(document))
    still["spec"]["moves"] = {**still["spec"].get("moves", {}), "mode": "Disabled"}
    return still
