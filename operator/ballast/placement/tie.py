"""What an executor would ask for had Ballast not tied it to a place.

Its replacement comes from the same template, without that tie. The tie is what release appends to every required term
of node affinity: one value per level, far to near, or the node alone, by its label or by its name.
"""

from __future__ import annotations

from dataclasses import replace

from ballast.model import Constraints, Executor, Levels, Requirement

_Term = tuple[Requirement, ...]

_NODE_FIELD = "metadata.name"


def untied(executor: Executor, levels: Levels) -> Executor:
    """The executor without the node affinity that Ballast added; itself when there is none."""
    if not executor.pinned:
        return executor
    return replace(executor, constraints=_loosened(executor.constraints, levels))


def tied_levels(executor: Executor, levels: Levels) -> int:
    """How many levels the node affinity that Ballast added fixes, from the farthest on."""
    terms = executor.constraints.affinity_terms if executor.pinned else ()
    labels = [level.label for level in levels.ordered]
    # The same is appended to every term.
    for term in terms[:1]:
        kept = _without_tie(term, labels)
        tie = [each for each in term if each not in kept]
        if any(each.on_field for each in tie):
            return len(labels)
        return max((labels.index(each.key) + 1 for each in tie), default=0)
    return 0


def _loosened(constraints: Constraints, levels: Levels) -> Constraints:
    labels = [level.label for level in levels.ordered]
    terms = tuple(_without_tie(term, labels) for term in constraints.affinity_terms)
    # A term that is empty now was added whole: only a term with something in it can be tightened.
    return replace(constraints, affinity_terms=tuple(term for term in terms if term))


def _without_tie(term: _Term, labels: list[str]) -> _Term:
    expressions = [requirement for requirement in term if not requirement.on_field]
    fields = [requirement for requirement in term if requirement.on_field]
    if fields and _names_one(fields[-1]) and fields[-1].key == _NODE_FIELD:
        return (*expressions, *fields[:-1])
    return (*_without_levels(expressions, labels), *fields)


def _without_levels(expressions: list[Requirement], labels: list[str]) -> list[Requirement]:
    """Without the last run of levels, read from near to far; the node's own level stands alone."""
    kept, nearest = list(expressions), len(labels)
    while kept and _names_one(kept[-1]) and kept[-1].key in labels and labels.index(kept[-1].key) < nearest:
        nearest = labels.index(kept.pop().key)
        if nearest == len(labels) - 1:
            break
    return kept


def _names_one(requirement: Requirement) -> bool:
    return requirement.operator == "In" and len(requirement.values) == 1
