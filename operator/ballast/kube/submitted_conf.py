"""The configuration that applications were submitted with: Spark writes it to a ConfigMap that the driver mounts.

In client mode there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ballast.kube import names
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden, NotFound
from ballast.kube.kinds import CONFIG_MAP, POD
from ballast.kube.objects import Query, read_list

VOLUME = "spark-conf-volume-driver"
FILE = "spark.properties"
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Submitted:
    """`properties`: the text of spark.properties, by application (`namespace/id`)."""

    properties: dict[str, str]
    denied: frozenset[str] = frozenset()
    """Namespaces whose ConfigMaps may not be read."""


@dataclass(frozen=True, slots=True)
class _Driver:
    namespace: str
    application: str
    config_map: str


def submitted(client: Client) -> Submitted:
    """Of all drivers that run in cluster mode. Raises KubeError when pods can't be listed."""
    found = read_list(client, Query(POD, labels=f"{names.SPARK_ROLE}=driver"), _driver).items
    drivers = [each for each in found if each is not None]
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        texts = list(readers.map(lambda each: _properties(client, each), drivers))
    denied = frozenset(each.namespace for each, text in zip(drivers, texts, strict=True) if text is None)
    known = zip(drivers, texts, strict=True)
    return Submitted({f"{each.namespace}/{each.application}": text for each, text in known if text}, denied)


def _driver(pod: JSON) -> _Driver | None:
    application = (pod["metadata"].get("labels") or {}).get(names.SPARK_APPLICATION)
    name = next(_config_maps(pod), None)
    return _Driver(pod["metadata"]["namespace"], application, name) if application and name else None


def _config_maps(pod: JSON) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        source = volume.get("configMap") or {}
        if volume.get("name") == VOLUME and source.get("name"):
            yield source["name"]


def _properties(client: Client, driver: _Driver) -> str | None:
    """Empty where there is no such file; None where the ConfigMap may not be read."""
    try:
        found = client.get(CONFIG_MAP, driver.config_map, namespace=driver.namespace)
    except Forbidden:
        return None
    except NotFound:
        return ""
    text = (found.get("data") or {}).get(FILE)
    return text if isinstance(text, str) else ""
