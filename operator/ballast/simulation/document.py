"""Reading resources from a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ballast.errors import InvalidField

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def document(path: Path, *, field: str, remedy: str) -> Any:
    """What a file with one resource holds. Raises InvalidField, which names `field`, the file and a remedy."""
    found = documents(path, field=field, remedy=remedy)
    if len(found) > 1:
        raise InvalidField(field, str(path), f"{len(found)} documents in one file: give each its own file")
    return found[0] if found else None


def documents(path: Path, *, field: str, remedy: str) -> list[Any]:
    """What a file holds, empty documents left out. Raises InvalidField, as above."""
    try:
        text = path.read_text(encoding="utf-8")
        return [found for found in yaml.load_all(text, Loader=_Loader) if found is not None]
    except OSError as error:
        raise InvalidField(field, str(path), f"{error.strerror}; {remedy}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidField(field, str(path), f"not readable as YAML: {' '.join(str(error).split())}") from error
