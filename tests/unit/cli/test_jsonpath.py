"""`-o jsonpath=…`: kubectl's examples, and what can't be read."""

from __future__ import annotations

from typing import Any

import pytest

from ballast.cli.jsonpath import JSONPath, JSONPathError

DOCUMENT: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.1", "labels": {"kubernetes.io/hostname": "127.0.0.1"}},
            "status": {"capacity": {"cpu": "4"}, "addresses": [{"type": "LegacyHostIP", "address": "127.0.0.1"}]},
        },
        {
            "kind": "None",
            "metadata": {"name": "127.0.0.2"},
            "status": {
                "capacity": {"cpu": "8"},
                "addresses": [
                    {"type": "LegacyHostIP", "address": "127.0.0.2"},
                    {"type": "another", "address": "127.0.0.3"},
                ],
            },
        },
    ],
    "users": [{"name": "myself", "user": {}}, {"name": "e2e", "user": {"username": "admin", "password": "secret"}}],
    "scores": [95.5, 10, None, True],
}
"""The document of kubectl's own reference, and some numbers."""


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("kind is {.kind}", "kind is List"),
        (".kind", "List"),
        ("kind", "List"),
        ("{$.kind}", "List"),
        ("{['kind']}", "List"),
        ("{..name}", "127.0.0.1 127.0.0.2 myself e2e"),
        ("{.items[*].metadata.name}", "127.0.0.1 127.0.0.2"),
        ("{.users[0].name}", "myself"),
        ("{.users[-1].name}", "e2e"),
        ("{.users[0:2].name}", "myself e2e"),
        ("{.users[::2].name}", "myself"),
        ("{.users[0,1].name}", "myself e2e"),
        ("{.items[*]['metadata.name', 'kind']}", "127.0.0.1 127.0.0.2 None None"),
        (r"{.items[*].metadata.labels.kubernetes\.io/hostname}", "127.0.0.1"),
        ("{.items[*].metadata.labels['kubernetes.io/hostname']}", "127.0.0.1"),
        ('{.users[?(@.name=="e2e")].user.password}', "secret"),
        ("{.users[?(@.name != 'e2e')].name}", "myself"),
        ("{.users[?(@.user.password)].name}", "e2e"),
        ("{.items[*].status.addresses[?(@.type=='another')].address}", "127.0.0.3"),
        ("{.scores[?(@ > 20)]}", "95.5"),
        ("{.scores[*]}", "95.5 10  true"),
        ("{.users[1].user}", '{"username":"admin","password":"secret"}'),
        ("{.items[0].status.addresses[*].type}", "LegacyHostIP"),
        (
            r'{range .items[*]}[{.metadata.name}, {.status.capacity.cpu}]{"\n"}{end}',
            "[127.0.0.1, 4]\n[127.0.0.2, 8]\n",
        ),
        (
            '{range .items[*]}{.metadata.name}:{range .status.addresses[*]} {.address}{end}{";"}{end}',
            "127.0.0.1: 127.0.0.1;127.0.0.2: 127.0.0.2 127.0.0.3;",
        ),
        ("{.absent.name}{.users[7].name}", ""),
        ('{"}"}{.kind}', "}List"),
    ],
)
def test_a_template_prints_what_kubectl_prints(template: str, text: str) -> None:
    assert JSONPath.parse(template).text(DOCUMENT) == text


def test_the_value_itself_is_printed_as_json() -> None:
    for template in ("{.}", "{@}", "{$}"):
        assert JSONPath.parse(template).text([1, "a"]) == '[1,"a"]'


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("", "write a path such as .items[*].name"),
        ("{}", "write a path such as .items[*].name"),
        ("{.items", "close every { with }"),
        (".items}", "close every { with }"),
        ("{.items[0}", "'[0' is not understood"),
        ("{.items[x]}", "[x]: write [0], [1:3], [*], ['name']"),
        ("{.items[]}", "[]: write [0]"),
        ("{.items[::0]}", "[::0]: write [0]"),
        ("{.items[?(@.a=1)]}", "[?(@.a=1)]: write one comparison"),
        ("{.items[?(@.a==b)]}", "'b': write @.path, text in quotation marks, or a number"),
        ("{range .items[*]}{.name}", "{range} without {end}"),
        ("{.name}{end}", "{end} without {range}"),
        ("{.a b}", "' b' is not understood"),
        ('{.a "x"}', "is not understood"),
    ],
)
def test_what_can_t_be_read_is_told_with_what_to_write(template: str, words: str) -> None:
    with pytest.raises(JSONPathError) as refused:
        JSONPath.parse(template)
    assert words in str(refused.value)
