"""What applications were submitted with: Spark writes it to ConfigMaps that the driver mounts.

In client mode there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ballast.kube import names
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden, Invalid, NotFound
from ballast.kube.kinds import CONFIG_MAP, POD
from ballast.kube.objects import Query, read_list

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One key of the ConfigMap of one volume of the driver."""

    volume: str
    key: str


PROPERTIES = Part("spark-conf-volume-driver", "spark.properties")
EXECUTOR_TEMPLATE = Part("pod-template-volume", "podspec-configmap-key")
"""The executors' pod template (spark.kubernetes.executor.podTemplateFile)."""


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

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.application}"


def submitted(client: Client) -> Submitted:
    """Of all drivers that run in cluster mode. Raises KubeError when pods can't be listed."""
    found = _read(client, PROPERTIES)
    denied = frozenset(each.namespace for each, text in found if text is None)
    return Submitted({each.key: text for each, text in found if text}, denied)


def executor_templates(client: Client) -> dict[str, str | None]:
    """The text by application (`namespace/id`), of those that run in cluster mode with a pod template for executors.

    None where the ConfigMap may not be read. Raises KubeError when pods can't be listed.
    """
    return {each.key: text for each, text in _read(client, EXECUTOR_TEMPLATE)}


def _read(client: Client, part: Part) -> list[tuple[_Driver, str | None]]:
    query = Query(POD, labels=f"{names.SPARK_ROLE}=driver", fields="status.phase!=Succeeded,status.phase!=Failed")
    drivers = [each for each in read_list(client, query, lambda pod: _driver(pod, part)).items if each is not None]
    with ThreadPoolExecutor(_AT_ONCE) as readers:
        texts = readers.map(lambda each: _text(client, each, part), drivers)
        return list(zip(drivers, texts, strict=True))


def _driver(pod: JSON, part: Part) -> _Driver | None:
    application = (pod["metadata"].get("labels") or {}).get(names.SPARK_APPLICATION)
    name = next(_config_maps(pod, part), None)
    return _Driver(pod["metadata"]["namespace"], application, name) if application and name else None


def _config_maps(pod: JSON, part: Part) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        source = volume.get("configMap") or {}
        if volume.get("name") == part.volume and source.get("name"):
            yield source["name"]


def _text(client: Client, driver: _Driver, part: Part) -> str | None:
    """Empty where there is no such text; None where the ConfigMap may not be read."""
    try:
        found = client.get(CONFIG_MAP, driver.config_map, namespace=driver.namespace)
    except Forbidden:
        return None
    except (NotFound, Invalid):
        # A volume's author may write any text for the name, also one that no ConfigMap can have.
        return ""
    text = (found.get("data") or {}).get(part.key)
    return text if isinstance(text, str) else ""
