import base64
from typing import Any

import pytest

from tests.testbed.kubelet.environment import ConfigError, expand, references, resolve
from tests.testbed.kubelet.tests.builders import container, facts, pod


def resolved(*env: dict[str, Any], env_from: list[dict[str, Any]] | None = None, **objects: Any) -> dict[str, str]:
    main = container(env=list(env), envFrom=env_from or [], resources={"limits": {"memory": "128Mi"}})
    return resolve(main, facts(pod(main), **objects), image={"PATH": "/bin"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web-0"),
        ("metadata.namespace", "shop"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['missing']", ""),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.9.1.2"),
        ("status.hostIP", "127.9.1.1"),
    ],
)
def test_a_variable_can_hold_a_field_of_the_pod(path: str, value: str) -> None:
    assert resolved({"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}})["X"] == value


@pytest.mark.parametrize(
    ("resource", "value"),
    [("limits.memory", "128"), ("limits.cpu", "1"), ("requests.memory", "0")],
    ids=["set", "the node's capacity when not set", "nothing when not requested"],
)
def test_a_variable_can_hold_a_resource(resource: str, value: str) -> None:
    reference = {"resource": resource, "divisor": "1Mi"}
    assert resolved({"name": "X", "valueFrom": {"resourceFieldRef": reference}})["X"] == value


def test_later_variables_see_earlier_ones() -> None:
    found = resolved({"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(A)"}, {"name": "A", "value": "2"})
    assert (found["A"], found["B"]) == ("2", "11")


@pytest.mark.parametrize(
    ("text", "value"),
    [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(NONE)", "$(NONE)"), ("$A", "$A"), ("a$(A)b$(A)c", "a1b1c")],
)
def test_only_known_names_in_parentheses_are_replaced(text: str, value: str) -> None:
    assert expand(text, {"A": "1"}) == value


def test_config_maps_and_secrets_give_single_keys_and_all_of_theirs() -> None:
    found = resolved(
        {"name": "ONE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
        {"name": "TWO", "valueFrom": {"secretKeyRef": {"name": "login", "key": "user"}}},
        env_from=[{"configMapRef": {"name": "settings"}, "prefix": "C_"}, {"secretRef": {"name": "login"}}],
        config_maps={"settings": {"data": {"mode": "fast"}}},
        secrets={"login": {"data": {"user": base64.b64encode(b"ann").decode()}}},
    )
    assert found == {"PATH": "/bin", "C_mode": "fast", "user": "ann", "ONE": "fast", "TWO": "ann"}


def test_a_missing_key_is_named_unless_it_is_optional() -> None:
    reference = {"name": "settings", "key": "mode"}
    with pytest.raises(ConfigError, match="'mode' in 'settings'"):
        resolved({"name": "X", "valueFrom": {"configMapKeyRef": reference}})
    assert "X" not in resolved({"name": "X", "valueFrom": {"configMapKeyRef": {**reference, "optional": True}}})


def test_what_must_be_fetched_is_known_beforehand() -> None:
    needy = container(
        env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "login", "key": "x"}}}, {"name": "B", "value": ""}],
        envFrom=[{"configMapRef": {"name": "settings"}}],
    )
    assert references(needy) == {("secrets", "login"), ("configmaps", "settings")}
