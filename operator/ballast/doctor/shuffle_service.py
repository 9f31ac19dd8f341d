"""Remote shuffle services, by the classes that an application names to use them."""

from __future__ import annotations

from collections.abc import Mapping

MANAGER = "spark.shuffle.manager"
PLUGIN = "spark.shuffle.sort.io.plugin.class"
SERVICES: tuple[tuple[str, str], ...] = (
    ("celeborn", "Celeborn"),
    ("uniffle", "Uniffle"),
    ("rssshufflemanager", "Uniffle or another remote shuffle service"),
    ("cssshufflemanager", "Cloud Shuffle Service"),
    ("splashshufflemanager", "Splash"),
    ("chopperplugin", "the Cloud Shuffle Storage Plugin"),
    ("s3shuffle", "S3"),
)
"""A part of the class's name in lower case, and what it stands for. The first that fits counts."""


def service_of(conf: Mapping[str, str]) -> str | None:
    """What the application shuffles through; None if through its own executors."""
    for key in (MANAGER, PLUGIN):
        named = conf.get(key, "").lower()
        for part, service in SERVICES:
            if part in named:
                return service
    return None
