"""Policies to run under: a user's file, or strategies by name on top of the scenario; and all variants of a grid."""

from __future__ import annotations

import copy
import itertools
import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from ballast.api import BalancingPolicy
from ballast.api.meta import Model, fields_of, model_of
from ballast.api.policy import PolicySpec
from ballast.api.policy_placement import PlacementStrategy
from ballast.api.policy_shedding import SheddingStrategy
from ballast.api.version import API_VERSION
from ballast.enums import LoadUnit
from ballast.errors import InvalidField, InvalidResource, file_name, nearest
from ballast.files import documents
from ballast.model import MovesMode, PlacementMode, Policy
from ballast.model.from_api import defect, policy_from
from ballast.simulation.scenario import Scenario
from ballast.simulation.study import Document, moves_anything

FILES = (".yaml", ".yml", ".json")
"""What tells a policy's file from a strategy's name."""


def in_file(path: Path, *, option: str = "--policy") -> list[dict[str, Any]]:
    """The BalancingPolicies of a file, one or several, as they stand there. Raises InvalidResource or InvalidField."""
    found = documents(path, option=option, remedy="name a file or a strategy")
    for raw in found or [None]:
        if not isinstance(raw, dict) or raw.get("kind") != "BalancingPolicy":
            raise InvalidField(option, str(path), "name a file with BalancingPolicies and nothing else, or a strategy")
        _sound(raw, file=path)
    return found


def scenario_in(path: Path, *, option: str = "SCENARIO") -> Scenario:
    """As Scenario.read, and `spec.policy` holds what a policy can have. Raises InvalidField or InvalidResource."""
    found = Scenario.read(path, option=option)
    figures, problems = found.spec.policy, dict[str, InvalidField]()
    for section in ("shedding", "placement", "moves"):
        if not isinstance(figures.get(section, {}), Mapping):
            problems[section] = InvalidField(f"spec.policy.{section}", figures[section], "write a mapping")
    own = _block(_block(figures, "shedding"), "advanced")
    for strategy in SheddingStrategy:
        if strategy is SheddingStrategy.AVG_SHEDDER or block_of(strategy) in own:
            try:
                BalancingPolicy.parse(by_name(strategy, figures))
            except InvalidResource as error:
                for each in error.problems:
                    field = each.field.replace("spec", "spec.policy", 1)
                    problems.setdefault(field, InvalidField(field, each.value, each.remedy))
    if problems:
        raise InvalidResource(f"{file_name(path)}: Scenario {found.name}", [*problems.values()])
    return found


def by_name(name: str, figures: Mapping[str, Any], *, option: str = "--policy") -> dict[str, Any]:
    """`SHEDDING`, `SHEDDING/UNIT`, or either with `+PLACEMENT`, such as `AvgShedder/Traffic+RoundRobin`.

    `figures`: fields of a spec that differ from the defaults. Everything is enforced. Raises InvalidField.
    """
    first, _, placement = name.partition("+")
    shedding, _, unit = first.partition("/")
    spec = dict(figures)
    try:
        spec["shedding"] = _shedding(_block(spec, "shedding"), shedding, unit)
        spec["placement"] = _placement(_block(spec, "placement"), placement)
    except InvalidField as error:
        raise InvalidField(option, name, f"{error.field}: {error.remedy}") from None
    spec["moves"] = {**_block(spec, "moves"), "mode": "Enforce"}
    return _document(re.sub("[^a-z0-9]+", "-", name.lower()), spec)


def from_name(name: str, scenario: Scenario) -> Policy:
    """The same, with the figures of the scenario's `policy`. Raises InvalidField or InvalidResource."""
    found = _sound(by_name(name, scenario.spec.policy))
    return replace(policy_in(found, scenario), name=name)


def _sound(raw: dict[str, Any], *, file: Path | None = None) -> BalancingPolicy:
    """One that can be followed. Raises InvalidResource."""
    found = BalancingPolicy.parse(raw) if file is None else BalancingPolicy.of_file(raw, file)
    wrong = defect(found)
    if wrong is not None:
        where = "" if file is None else f"{file_name(file)}: "
        raise InvalidResource(f"{where}BalancingPolicy {found.metadata.name}", [wrong])
    return found


def policy_in(resource: BalancingPolicy, scenario: Scenario) -> Policy:
    """A policy whose pool is the scenario's nodes."""
    hosts = {name: {"kubernetes.io/hostname": name} for each in scenario.spec.nodes for name in each.names}
    return policy_from(resource, hosts)


def enforced(policy: Policy) -> Policy:
    """The policy as if it were trusted: what it only recommends, or asks approval for, is done; nothing disabled is."""
    placement, moves = policy.placement, policy.moves
    if placement.mode is not PlacementMode.DISABLED:
        placement = replace(placement, mode=PlacementMode.ENFORCE)
    if moves.mode is not MovesMode.DISABLED:
        moves = replace(moves, mode=MovesMode.ENFORCE)
    return replace(policy, placement=placement, moves=moves)


def own_block_only(spec: Mapping[str, Any], strategy: str, words: type[StrEnum]) -> dict[str, Any]:
    """`spec` without the blocks of other strategies, because a policy's own strategy reads only its own."""
    others = {block_of(word) for word in words} - {block_of(strategy)}
    kept = {key: value for key, value in spec.items() if key not in others}
    if isinstance(spec.get("advanced"), Mapping):
        kept["advanced"] = {key: value for key, value in spec["advanced"].items() if key not in others}
    return kept


def block_of(strategy: str) -> str:
    """The key of the strategy's own figures."""
    return strategy[0].lower() + strategy[1:]


def _document(name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "BalancingPolicy",
        "metadata": {"name": name},
        "spec": dict(spec),
    }


def _block(spec: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = spec.get(key, {})
    return dict(found) if isinstance(found, Mapping) else {}


def _shedding(spec: dict[str, Any], strategy: str, unit: str) -> dict[str, Any]:
    spec["strategy"] = _known("shedding.strategy", strategy, SheddingStrategy)
    if unit:
        if strategy != SheddingStrategy.AVG_SHEDDER:
            raise InvalidField("shedding.strategy", f"{strategy}/{unit}", "only AvgShedder has units")
        chosen = _known("shedding.avgShedder.unit", unit, LoadUnit)
        spec["avgShedder"] = {**_block(spec, "avgShedder"), "unit": chosen}
    return own_block_only(spec, strategy, SheddingStrategy)


def _placement(spec: dict[str, Any], strategy: str) -> dict[str, Any]:
    spec["mode"] = "Enforce"
    if strategy:
        spec["strategy"] = _known("placement.strategy", strategy, PlacementStrategy)
    return own_block_only(spec, strategy or spec.get("strategy", "Proximity"), PlacementStrategy)


def _known(field: str, value: str, words: type[StrEnum]) -> str:
    if value not in set(words):
        near = nearest(value, words)
        hint = f"did you mean {near}? " if near else ""
        raise InvalidField(field, value, f"{hint}choose one of {', '.join(words)}, or name a policy's file")
    return value


# Variants of a policy: fields of its spec with several values each, and all their combinations.

_OPTION = "--grid"
_STRATEGIES = {
    "shedding": (SheddingStrategy, SheddingStrategy.AVG_SHEDDER),
    "placement": (PlacementStrategy, PlacementStrategy.PROXIMITY),
}
"""Sections that have a block for each strategy; their words, and the default."""


@dataclass(frozen=True, slots=True)
class Value:
    text: str
    """As it was given."""
    plain: Any
    """As JSON has it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One field of the spec and what to try there."""

    path: tuple[str, ...]
    """Keys as in YAML, such as `shedding`, `avgShedder`, `lowThreshold`."""
    values: tuple[Value, ...]

    @classmethod
    def parse(cls, text: str) -> Axis:
        """`shedding.avgShedder.lowThreshold=10,15,20`. Raises InvalidField."""
        name, equals, listed = text.partition("=")
        if not (name and equals and listed):
            raise InvalidField(_OPTION, text, "write PATH=VALUE,VALUE, such as shedding.avgShedder.lowThreshold=10,15")
        path = tuple(name.removeprefix("spec.").split("."))
        truth = _field(path) is bool
        return cls(path, tuple(_value(typed, text, truth=truth) for typed, text in _listed(name, listed)))

    @property
    def owner(self) -> tuple[str, str] | None:
        """Section and key of the strategy's block that the field is in; None where all strategies have it."""
        section, inside = _STRATEGIES.get(self.path[0]), [key for key in self.path[1:-1] if key != "advanced"]
        if section is None or not inside or inside[0] not in {block_of(word) for word in section[0]}:
            return None
        return self.path[0], inside[0]


def combined(label: str, document: Document, axes: Sequence[Axis]) -> dict[str, dict[str, Any]]:
    """The policy in all combinations of the axes that concern it, by labels such as `default lowThreshold=10`.

    Settings of a strategy that a policy does not use leave the policy unchanged. Raises InvalidResource for a
    combination that is not valid.
    """
    names = _short([axis.path for axis in axes])
    found: dict[str, dict[str, Any]] = {}
    for values in itertools.product(*(axis.values for axis in axes)):
        variant, told = copy.deepcopy(dict(document)), [label]
        for axis, value in sorted(zip(axes, values, strict=True), key=lambda pair: pair[0].owner is not None):
            if axis.owner is None or axis.owner[1] == block_of(_strategy(variant["spec"], axis.owner[0])):
                _set(variant["spec"], axis.path, value.plain)
                told.append(f"{names[axis.path]}={value.text}")
        found[" ".join(told)] = variant
    for name, variant in found.items():
        _checked(name, variant)
    return found


def without_effect(axes: Sequence[Axis], policies: Mapping[str, Document]) -> Iterator[InvalidField]:
    """Axes in blocks of strategies that none of the combined policies has."""
    blocks = {block_of(_strategy(each["spec"], section)) for each in policies.values() for section in _STRATEGIES}
    for axis in axes:
        if axis.owner is not None and axis.owner[1] not in blocks:
            yield InvalidField(
                _OPTION, ".".join(axis.path), f"no policy has that strategy: give one, or remove {_OPTION}"
            )


def _checked(name: str, variant: Mapping[str, Any]) -> None:
    try:
        BalancingPolicy.parse(variant)
    except InvalidResource as error:
        raise InvalidResource(f"{_OPTION}: policy {name}", error.problems) from None


def _set(spec: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if path[1:] == ("strategy",) and path[0] in _STRATEGIES:
        spec[path[0]] = own_block_only(spec.get(path[0], {}), value, _STRATEGIES[path[0]][0])
    block = spec
    for key in path[:-1]:
        block = block.setdefault(key, {})
    block[path[-1]] = value


def _strategy(spec: Mapping[str, Any], section: str) -> str:
    return str(spec.get(section, {}).get("strategy", _STRATEGIES[section][1]))


def _listed(name: str, text: str) -> Iterator[tuple[Any, Any]]:
    """Each value as YAML reads it, and as it stands there."""
    try:
        typed = yaml.safe_load(f"[{text}]")
        plain = yaml.load(f"[{text}]", Loader=yaml.BaseLoader)  # noqa: S506 -- makes nothing but strings and lists
    except yaml.YAMLError as error:
        raise InvalidField(f"{_OPTION} {name}", text, "write values with commas between them, as in YAML") from error
    if not typed or None in typed:
        raise InvalidField(f"{_OPTION} {name}", text, "write a value between all commas")
    yield from zip(typed, plain, strict=True)


def _value(typed: Any, plain: Any, *, truth: bool) -> Value:
    """YAML takes bare words such as On for true and false; where the field is neither, they are words."""
    if isinstance(typed, bool) and not truth:
        return Value(plain, plain)
    if isinstance(typed, str | int | float):
        return Value(str(plain), typed)
    return Value(yaml.safe_dump(typed, default_flow_style=True, width=10_000).strip(), typed)


def _field(path: tuple[str, ...]) -> Any:
    """What the spec's field holds: a model, or an annotation. Raises InvalidField for one that is not there."""
    model: type[Model] | None = PolicySpec
    annotation: Any = PolicySpec
    for depth, key in enumerate(path):
        done = ".".join(path[: depth + 1])
        if model is None:
            raise InvalidField(_OPTION, ".".join(path), f"{'.'.join(path[:depth])} has no fields: set it whole")
        fields = fields_of(model)
        if key not in fields:
            near = nearest(key, fields, cutoff=0.5)
            hint = f"did you mean {near}? " if near else ""
            raise InvalidField(_OPTION, done, f"no such field; {hint}there are {', '.join(fields)}")
        annotation = fields[key].annotation
        # A list is set whole, so what its items hold is no field.
        model = None if typing.get_origin(annotation) is tuple else model_of(annotation)
    return annotation


def _short(paths: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """The last key of each path, with as many before it as tell it from the others."""
    short = {}
    for path in paths:
        others = [other for other in paths if other != path]
        length = next((n for n in range(1, len(path)) if all(path[-n:] != other[-n:] for other in others)), len(path))
        short[path] = ".".join(path[-length:])
    return short


NO_MOVES = "no moves"
_POLICIES = "--policies"


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
                raise InvalidField(_POLICIES, name, "there is a policy of that name already: rename one")
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
        return [(raw["metadata"]["name"], _to_apply(raw)) for raw in in_file(Path(text), option=_POLICIES)]
    return [(text, _recommending(by_name(text, figures, option=_POLICIES)))]


def _recommending(document: Document) -> Document:
    """A strategy that is given by name has no mode: applied, it enforces nothing. Trials run it as if it did."""
    spec = {**document["spec"]}
    for section, mode in (("placement", PlacementMode.RECOMMEND), ("moves", MovesMode.RECOMMEND)):
        spec[section] = {**spec[section], "mode": mode.value}
    return {**document, "spec": spec}


def _to_apply(raw: Document) -> Document:
    """Without what an API server has added."""
    named = {key: value for key, value in raw["metadata"].items() if key in ("name", "labels", "annotations")}
    return {"apiVersion": API_VERSION, "kind": raw["kind"], "metadata": named, "spec": raw.get("spec", {})}


def _still(document: Document) -> Document:
    """The policy with its placement alone. Its name stays, so that applied it takes the place of the one that moves."""
    still = copy.deepcopy(dict(document))
    still["spec"]["moves"] = {**still["spec"].get("moves", {}), "mode": "Disabled"}
    return still
