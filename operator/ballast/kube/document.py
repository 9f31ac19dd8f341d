"""JSON as the API server speaks it, before it becomes our own values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON = dict[str, Any]
ReadOnlyJSON = Mapping[str, Any]
