"""What applications were submitted with: Spark writes it to ConfigMaps that the driver mounts.

In client mode there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from ballast.kube import names
from ballast.kube.client import Client
from ballast.kube.document import JSON
from ballast.kube.errors import Forbidden, Invalid, NotFound
from ballast.kube.kinds import CONFIG_MAP, POD
from ballast.kube.objects import Query, read_list

T = TypeVar("T")
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
class Submitted(Generic[T]):
    """`properties`: what was read from spark.properties, by application (`namespace/id`)."""

    properties: dict[str, T]
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

    @property
    def place(self) -> tuple[str, str]:
        """Namespace and name of the ConfigMap."""
        return self.namespace, self.config_map


class _Denied(Enum):
    """In place of what was read where the ConfigMap may not be read: that may be any value, also None."""

    DENIED = "denied"


def submitted(client: Client, read: Callable[[str], T], *, namespace: str | None = None) -> Submitted[T]:
    """What `read` makes of the text, of all drivers that run in cluster mode, in one namespace or in all.

    Raises KubeError when pods can't be listed.
    """
    found = _read(client, PROPERTIES, read, namespace)
    denied = frozenset(each.namespace for each, value in found if isinstance(value, _Denied))
    return Submitted({each.key: value for each, value in found if not isinstance(value, _Denied)}, denied)


def submitted_in(objects: Mapping[str, Sequence[JSON]], read: Callable[[str], T]) -> Submitted[T]:
    """As `submitted`, of objects by their kinds, such as a file has. ConfigMaps that are not there count as denied."""
    texts = {
        (metadata.get("namespace") or "", metadata.get("name") or ""): (each.get("data") or {}).get(PROPERTIES.key)
        for each in objects.get(CONFIG_MAP.kind, ())
        if isinstance(metadata := each.get("metadata"), dict)
    }
    pods = [
        each
        for each in objects.get(POD.kind, ())
        if (each["metadata"].get("labels") or {}).get(names.SPARK_ROLE) == "driver"
    ]
    drivers = [found for each in pods if not _ended(each) and (found := _driver(each, PROPERTIES)) is not None]
    known = {each.key: texts[each.place] for each in drivers if each.place in texts}
    denied = frozenset(each.namespace for each in drivers if each.place not in texts)
    return Submitted({key: read(text if isinstance(text, str) else "") for key, text in known.items()}, denied)


def _ended(pod: JSON) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def executor_templates(client: Client, read: Callable[[str], T]) -> dict[str, T | None]:
    """What `read` makes of the text, by application (`namespace/id`), of those that run in cluster mode with a pod
    template for executors.

    None where the ConfigMap may not be read. Raises KubeError when pods can't be listed.
    """
    found = _read(client, EXECUTOR_TEMPLATE, read)
    return {each.key: None if isinstance(value, _Denied) else value for each, value in found}


def _read(
    client: Client, part: Part, read: Callable[[str], T], namespace: str | None = None
) -> list[tuple[_Driver, T | _Denied]]:
    """Each ConfigMap is read once, and its text is not kept: thousands of pods may name one of a megabyte."""
    query = Query(POD, namespace, f"{names.SPARK_ROLE}=driver", "status.phase!=Succeeded,status.phase!=Failed")
    drivers = [each for each in read_list(client, query, lambda pod: _driver(pod, part)).items if each is not None]
    places = sorted({each.place for each in drivers})

    def made(place: tuple[str, str]) -> T | _Denied:
        text = _text(client, place, part)
        return _Denied.DENIED if text is None else read(text)

    with ThreadPoolExecutor(_AT_ONCE) as readers:
        values = dict(zip(places, readers.map(made, places), strict=True))
    return [(each, values[each.place]) for each in drivers]


def _driver(pod: JSON, part: Part) -> _Driver | None:
    application = (pod["metadata"].get("labels") or {}).get(names.SPARK_APPLICATION)
    name = next(_config_maps(pod, part), None)
    return _Driver(pod["metadata"]["namespace"], application, name) if application and name else None


def _config_maps(pod: JSON, part: Part) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        source = volume.get("configMap") or {}
        if volume.get("name") == part.volume and source.get("name"):
            yield source["name"]


def _text(client: Client, place: tuple[str, str], part: Part) -> str | None:
    """`place`: namespace and name. Empty where there is no such text; None where the ConfigMap may not be read."""
    try:
        namespace, name = place
        found = client.get(CONFIG_MAP, name, namespace=namespace)
    except Forbidden:
        return None
    except (NotFound, Invalid):
        # A volume's author may write any text for the name, also one that no ConfigMap can have.
        return ""
    text = (found.get("data") or {}).get(part.key)
    return text if isinstance(text, str) else ""
