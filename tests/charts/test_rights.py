"""The rights that the chart grants: all of them, written down once more."""

from __future__ import annotations

from typing import Any

from tests.charts.rendering import NAMESPACE, Manifests, Renderer

LIST = frozenset({"list"})
WATCH = LIST | {"watch"}
READ = WATCH | {"get"}
PATCH = frozenset({"patch"})

OPERATOR_EVERYWHERE = {
    "nodes": WATCH,
    "namespaces": WATCH,
    "persistentvolumes": WATCH,
    "persistentvolumeclaims": WATCH,
    "storageclasses.storage.k8s.io": WATCH,
    "pods": READ | {"patch", "delete"},
    "pods/status": PATCH,
    "pods/eviction": frozenset({"create"}),
    "balancingpolicies.ballast.dev": READ,
    "balancingpolicies/status.ballast.dev": PATCH,
    "sparktopologies.ballast.dev": READ,
    "sparktopologies/status.ballast.dev": PATCH,
    "executormoves.ballast.dev": READ | {"create", "delete"},
    "executormoves/status.ballast.dev": PATCH,
    "gateswitches.ballast.dev": frozenset({"create", "list"}),
    "gateswitches.ballast.dev ballast": frozenset({"get", "patch"}),
    "gateswitches/status.ballast.dev ballast": PATCH,
    "events.events.k8s.io": frozenset({"create", "patch"}),
    "customresourcedefinitions.apiextensions.k8s.io": WATCH,
}
OPERATOR_AT_HOME = {
    "leases.coordination.k8s.io": frozenset({"create"}),
    "leases.coordination.k8s.io ballast": frozenset({"get", "update"}),
}
RELEASE_EVERYWHERE = {
    "pods": frozenset({"get", "list", "patch", "delete"}),
    "namespaces": frozenset({"get"}),
    "gateswitches.ballast.dev": frozenset({"list"}),
    "gateswitches.ballast.dev ballast": frozenset({"get", "patch"}),
    "gateswitches/status.ballast.dev ballast": PATCH,
}
RELEASE_AT_HOME = {
    "leases.coordination.k8s.io ballast": frozenset({"get"}),
    "jobs.batch ballast-uninstall": frozenset({"get"}),
}


def rights(role: dict[str, Any]) -> dict[str, frozenset[str]]:
    """Resource with group, and name where it is limited to one, to verbs."""
    found: dict[str, frozenset[str]] = {}
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                name = " ".join([resource + (f".{group}" if group else ""), *rule.get("resourceNames", [])])
                assert name not in found, f"{name} is granted twice"
                found[name] = frozenset(rule["verbs"])
    return found


def test_the_operator_has_these_rights_and_no_others(defaults: Manifests) -> None:
    assert rights(defaults.named("ClusterRole", "ballast")) == OPERATOR_EVERYWHERE
    assert rights(defaults.named("Role", "ballast")) == OPERATOR_AT_HOME


def test_the_account_that_releases_has_these_rights_and_no_others(defaults: Manifests) -> None:
    assert rights(defaults.named("ClusterRole", "ballast-release")) == RELEASE_EVERYWHERE
    assert rights(defaults.named("Role", "ballast-release")) == RELEASE_AT_HOME


def test_every_role_is_bound_to_its_own_account_alone(defaults: Manifests) -> None:
    for binding in [*defaults.of("ClusterRoleBinding"), *defaults.of("RoleBinding")]:
        name = binding["metadata"]["name"]
        assert binding["roleRef"]["name"] == name
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]


def test_evictions_are_granted_where_the_installer_says(render: Renderer) -> None:
    found = render({"evictionNamespaces": ["ads", "search"]})
    assert "pods/eviction" not in rights(found.named("ClusterRole", "ballast"))
    granted = {
        role["metadata"]["namespace"]: rights(role)
        for role in found.of("Role")
        if role["metadata"]["name"] == "ballast-evict"
    }
    assert granted == {name: {"pods/eviction": frozenset({"create"})} for name in ("ads", "search")}
    for binding in found.of("RoleBinding"):
        if binding["metadata"]["name"] == "ballast-evict":
            assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "ballast", "namespace": NAMESPACE}]


def test_secrets_are_granted_one_by_one(render: Renderer) -> None:
    role = rights(render({"prometheus": {"secrets": ["token", "authority"]}}).named("Role", "ballast"))
    assert {name: verbs for name, verbs in role.items() if name.startswith("secrets")} == {
        "secrets token authority": frozenset({"get"})
    }


def test_users_roles_are_extended_by_what_is_namespaced_and_theirs(defaults: Manifests) -> None:
    edit, view = defaults.named("ClusterRole", "ballast-edit"), defaults.named("ClusterRole", "ballast-view")
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert set(rights(edit)) == {"sparktopologies.ballast.dev", "executormoves.ballast.dev"}
    assert set(rights(view).values()) == {READ}
