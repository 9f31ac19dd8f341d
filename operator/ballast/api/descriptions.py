"""The docstrings below the attributes of a class: the descriptions of its fields.

Read from the source when a schema is asked for. pydantic would do it for each class when that is made, which takes a
tenth of a second in every command.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise


def descriptions(model: type) -> dict[str, str]:
    """By attribute; those of the bases in the same package too."""
    package = model.__module__.partition(".")[0]
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.partition(".")[0] == package:
            found |= _by_class(base.__module__).get(base.__qualname__, {})
    return found


@cache
def _by_class(module: str) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {name: dict(_docstrings(definition)) for name, definition in _classes(tree, "")}


def _classes(node: ast.AST, path: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """With their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield path + child.name, child
            yield from _classes(child, f"{path}{child.name}.")
        elif isinstance(child, ast.FunctionDef):
            yield from _classes(child, f"{path}{child.name}.<locals>.")


def _docstrings(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(definition.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
