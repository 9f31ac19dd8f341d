"""Profiles of a policy: what Conservative, Balanced and Aggressive set, field by field.

A field that the user sets always wins. The CRD gives these fields no default, since a default that the API server has
filled in could not be told from a value that the user has set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, GetJsonSchemaHandler, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ballast.api.duration import Between, Duration
from ballast.api.meta import Model
from ballast.api.rule import Rule, matching

# Budgets of moves: how many there may be, in what span or window, counted for what.


class BudgetScope(StrEnum):
    """What a budget is counted for."""

    POOL = "Pool"
    TOPOLOGY = "Topology"
    NODE = "Node"


_CRON_FIELD = "[-A-Za-z0-9*,/]+"


class Budget(Model):
    """At most so many moves: per span of time, or during a recurring window."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="has(self.per) != has(self.schedule)",
            message="set exactly one of per (a sliding span such as 1h) and schedule (when a window begins)",
            holds=lambda budget: (budget.per is None) != (budget.schedule is None),
        ),
        Rule(
            cel="has(self.schedule) == has(self.duration)",
            message="schedule and duration go together: set both (when a window begins, how long it lasts) or none",
            holds=lambda budget: (budget.schedule is None) == (budget.duration is None),
            path=".duration",
        ),
        Rule(
            cel="!has(self.timeZone) || has(self.schedule)",
            message="timeZone goes with schedule: remove it or set schedule",
            holds=lambda budget: budget.time_zone is None or budget.schedule is not None,
            path=".timeZone",
        ),
    )

    moves: Annotated[int, Field(ge=0, le=10_000)]
    """The most moves; 0 forbids them, unless percent allows some."""
    percent: Annotated[int, Field(ge=1, le=100)] | None = None
    """Or so many in percent of the executors that it is counted for, rounded down, if that is more."""
    per: Annotated[Duration, Between("1s", "168h")] | None = None
    """In any span of this length, up to 168h."""
    scope: BudgetScope = BudgetScope.POOL
    """Counted for the whole pool, for each topology or for each node: Pool, Topology or Node."""
    schedule: (
        Annotated[
            str,
            Field(min_length=9, max_length=100),
            matching(
                f"{_CRON_FIELD}( {_CRON_FIELD}){{4}}",
                "write five fields of cron (minute hour day month weekday), such as 0 8 * * 1-5",
            ),
        ]
        | None
    ) = None
    """When a window begins, in the five fields of cron, such as 0 8 * * 1-5."""
    time_zone: (
        Annotated[
            str,
            Field(min_length=1, max_length=64),
            matching("[A-Za-z][-+A-Za-z0-9_/]*", "write an IANA time zone such as Europe/Berlin"),
        ]
        | None
    ) = None
    """The IANA time zone of the schedule. Default: UTC."""
    duration: Annotated[Duration, Between("1m", "168h")] | None = None
    """How long the window lasts, up to 168h."""


class Profile(StrEnum):
    """How eagerly executors are moved, and how far they are kept apart."""

    CONSERVATIVE = "Conservative"
    BALANCED = "Balanced"
    AGGRESSIVE = "Aggressive"


@dataclass(frozen=True, slots=True)
class Setting:
    """What each profile sets one field to."""

    conservative: Any
    balanced: Any
    aggressive: Any

    def of(self, profile: Profile) -> Any:
        return getattr(self, profile.lower())

    def by_name(self) -> dict[str, Any]:
        return {profile.value: self.of(profile) for profile in Profile}


def _budgets(an_hour: tuple[int, int], a_day_per_topology: tuple[int, int]) -> tuple[Budget, ...]:
    """Each in moves, and in percent of the executors."""
    (moves, percent), (moves_each, percent_each) = an_hour, a_day_per_topology
    return (
        Budget(moves=moves, percent=percent, per=Duration.parse("1h")),
        Budget(moves=moves_each, percent=percent_each, per=Duration.parse("24h"), scope=BudgetScope.TOPOLOGY),
    )


def _durations(*texts: str) -> Setting:
    return Setting(*(Duration.parse(text) for text in texts))


SETTINGS: Mapping[str, Setting] = {
    # field (as an attribute): Conservative, Balanced, Aggressive
    "placement.max_executors_per_node_percent": Setting(25, 25, 50),
    "placement.max_executors_per_zone_percent": Setting(67, 100, 100),
    "shedding.avg_shedder.low_threshold": Setting(20, 15, 10),
    "shedding.avg_shedder.high_threshold": Setting(50, 40, 30),
    "shedding.avg_shedder.low_hits": Setting(12, 8, 4),
    "shedding.avg_shedder.high_hits": Setting(3, 2, 1),
    "shedding.avg_shedder.min_hot_score": Setting(80, 60, 50),
    "shedding.avg_shedder.persistent_hits": Setting(0, 15, 10),
    "moves.max_concurrent": Setting(1, 6, 12),
    "moves.max_concurrent_per_node": Setting(1, 3, 4),
    "moves.max_concurrent_per_topology_percent": Setting(0, 15, 25),
    "moves.min_executor_age": _durations("15m", "5m", "2m"),
    "moves.min_gain": Setting(10, 5, 3),
    "moves.min_slowness_percent": Setting(150, 120, 110),
    "moves.min_pressure_percent": Setting(20, 10, 5),
    "moves.saturation_score": Setting(95, 90, 80),
    "moves.max_locality_loss_percent": Setting(0, 10, 20),
    "moves.cooldown": _durations("30m", "10m", "5m"),
    "moves.budgets": Setting(
        _budgets((2, 5), (1, 10)),
        _budgets((6, 20), (2, 75)),
        _budgets((20, 40), (6, 100)),
    ),
    "moves.pause_after_failures": Setting(2, 3, 5),
}


def by_profile(path: str) -> Any:
    """The default of a field that the profile sets: until the policy's profile is known, Balanced's."""
    return Field(default_factory=lambda: SETTINGS[path].balanced)


class Profiled(Model):
    """A block of a policy with fields that the profile sets. One that was not set is not written out."""

    # Where the block is in a policy's spec, as attributes.
    BLOCK: ClassVar[str]

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """By attribute."""
        split = {path: path.rpartition(".") for path in SETTINGS}
        return {name: SETTINGS[path] for path, (block, _, name) in split.items() if block == cls.BLOCK}

    def under(self, profile: Profile) -> Self:
        """The block with the profile's values where the user set none; `model_fields_set` still says which."""
        values = {name: each.of(profile) for name, each in self.settings().items() if name not in self.model_fields_set}
        filled = self.model_copy(update=values)
        filled.model_fields_set.difference_update(values)
        return filled

    def left_to_profile(self) -> Iterator[str]:
        """The attributes that the profile decides, here and now."""
        return (name for name in self.settings() if name not in self.model_fields_set)

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        left = set(self.left_to_profile())
        left |= {type(self).model_fields[name].alias or name for name in left}
        return {name: value for name, value in write(self).items() if name not in left}

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = super().__get_pydantic_json_schema__(schema, handler)
        target = handler.resolve_ref_schema(json_schema)
        for name, setting in cls.settings().items():
            field = target["properties"][cls.model_fields[name].alias or name]
            field["description"] += f"\n\n{_default_text(setting)}"
        return json_schema


def effective(path: str) -> str:
    """CEL over a policy's spec: the field's value, or the profile's if the field is not set."""
    field = "self." + ".".join(to_camel(step) for step in path.split("."))
    values = ", ".join(f"'{name}': {_literal(value)}" for name, value in SETTINGS[path].by_name().items())
    return f"(has({field}) ? {field} : {{{values}}}[self.profile])"


def text(value: Any) -> str:
    """A field's value for people: budgets in words."""
    if isinstance(value, tuple):
        return ", ".join(_budget_text(budget) for budget in value) or "none"
    return str(value)


def _default_text(setting: Setting) -> str:
    values = setting.by_name()
    if len(set(map(text, values.values()))) == 1:
        return f"Default: {text(setting.balanced)} in every profile."
    return "Default, by profile: " + "; ".join(f"{name} {text(value)}" for name, value in values.items()) + "."


def _budget_text(budget: Budget) -> str:
    where = "" if budget.scope is BudgetScope.POOL else f" per {budget.scope.lower()}"
    many = f"{budget.moves}" if budget.percent is None else f"{budget.moves} (or {budget.percent} % of the executors)"
    if budget.schedule is not None:
        return f"{many}{where} for {budget.duration} from {budget.schedule} ({budget.time_zone or 'UTC'})"
    return f"{many}{where} in {budget.per}"


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, Duration) else repr(value)
