"""Reading one resource from a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from ballast.errors import InvalidField

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def document(path: Path, *, field: str, remedy: str) -> Any:
    """What the file holds. Raises InvalidField, which names `field`, the file and, where it can't be read, `remedy`."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 -- a safe loader
    except OSError as error:
        raise InvalidField(field, str(path), f"{error.strerror}; {remedy}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InvalidField(field, str(path), f"not readable as YAML: {' '.join(str(error).split())}") from error
