"""Gangs: pods that their scheduler binds together or not at all, and for which it reserves room beforehand."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_OF_VOLCANO = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
ANNOTATIONS = (
    *_OF_VOLCANO,
    "yunikorn.apache.org/task-group-name",
    "yunikorn.apache.org/task-groups",
    "gang.scheduling.koordinator.sh/name",
)
"""Of Volcano, YuniKorn and Koordinator."""
LABELS = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name")
"""Of coscheduling (scheduler-plugins), now and before its release 0.24, and of Koordinator."""
FIELDS = ("schedulingGroup", "workloadRef")
"""Of Kubernetes' own workloads: the first since 1.36, the second in 1.35."""
_OF_VOLCANO_ITSELF = "podgroup-"
"""Volcano writes a group whose name begins so, of one member, into each pod that names none. That is no gang."""
_SHOWN = 63


def gang_of(labels: Mapping[str, str], annotations: Mapping[str, str], fields: Collection[str] = ()) -> str:
    """What makes a pod a member of a gang, such as `label scheduling.x-k8s.io/pod-group: clicks`; empty: nothing does.

    `fields`: names of those that the pod's spec has.
    """
    for kind, keys, values in (("annotation", ANNOTATIONS, annotations), ("label", LABELS, labels)):
        for key in keys:
            name = values.get(key)
            if name and not (key in _OF_VOLCANO and name.startswith(_OF_VOLCANO_ITSELF)):
                # A task group's definition is a JSON document.
                return f"{kind} {key}" if name.startswith(("[", "{")) else f"{kind} {key}: {name[:_SHOWN]}"
    return next((f"field spec.{each}" for each in FIELDS if each in fields), "")
