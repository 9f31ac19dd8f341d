"""Levels of nearness, in the words of the resources."""

from __future__ import annotations

from enum import StrEnum


class Pin(StrEnum):
    """How narrowly an executor is tied to its place."""

    NONE = "None"
    ZONE = "Zone"
    RACK = "Rack"
    NODE = "Node"


class SeparateBy(StrEnum):
    """What separated components must not share."""

    NODE = "Node"
    RACK = "Rack"
    ZONE = "Zone"
