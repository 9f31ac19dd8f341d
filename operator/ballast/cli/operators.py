"""Which Deployments are operators of Ballast."""

from __future__ import annotations

from ballast.kube.document import JSON

OURS = "app.kubernetes.io/name=ballast"
"""The label of all objects of the chart."""
_COMPONENT = "app.kubernetes.io/component"
"""The chart labels the operator's pods with it, and not their Deployment."""


def is_operator(deployment: JSON) -> bool:
    labels = (deployment["spec"]["template"].get("metadata") or {}).get("labels") or {}
    return bool(labels.get(_COMPONENT) == "operator")
