"""Label selectors as Kubernetes has them, and matching."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from ballast.api.meta import Model
from ballast.api.names import LabelKey, LabelValue
from ballast.api.rule import ATOMIC, Rule


class Operator(StrEnum):
    """How a label's value relates to the given values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"


def _values_fit(requirement: Requirement) -> bool:
    return bool(requirement.values) == (requirement.operator in {Operator.IN, Operator.NOT_IN})


class Requirement(Model):
    """One condition on one label."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel="(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            message="operators In and NotIn need values; Exists and DoesNotExist must have none",
            holds=_values_fit,
            path=".values",
        ),
    )

    key: LabelKey
    """The label's key."""
    operator: Operator
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[tuple[LabelValue, ...], Field(max_length=20), ATOMIC] = ()
    """The values to compare with, for In and NotIn."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        if self.operator is Operator.IN:
            return present and labels[self.key] in self.values
        if self.operator is Operator.NOT_IN:
            return not present or labels[self.key] not in self.values
        return present == (self.operator is Operator.EXISTS)


class LabelSelector(Model):
    """Chooses objects by their labels; all conditions must hold, and an empty selector chooses everything."""

    match_labels: Annotated[dict[str, LabelValue], Field(max_length=16)] = Field(default_factory=dict)
    """Labels with exactly these values."""
    match_expressions: Annotated[tuple[Requirement, ...], Field(max_length=8), ATOMIC] = ()
    """Further conditions on labels."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    @property
    def keys(self) -> frozenset[str]:
        """The labels that it asks for."""
        return frozenset((*self.match_labels, *(each.key for each in self.match_expressions)))

    @property
    def is_empty(self) -> bool:
        return not self.match_labels and not self.match_expressions
