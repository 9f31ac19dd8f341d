from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ballast.kube.client import Client, Limits
from ballast.kube.connection import Connection
from ballast.kube.errors import (
    AlreadyExists,
    Conflict,
    Denied,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotConnected,
    NotFound,
    TooLarge,
    Unavailable,
)
from ballast.kube.kinds import EXECUTOR_MOVE, NODE, POD
from tests.apiserver import Answer, Asked, kubeconfig, scripted

OK = Answer(body={"metadata": {"name": "p"}})
BUSY = Answer(429, {"message": "too many requests"}, {"Retry-After": "2"})
DOWN = Answer(503, {"message": "etcd is away"})
LOST = Answer(hang_up=True)


def read(client: Client) -> object:
    return client.get(POD, "p", namespace="ns")


def create(client: Client) -> object:
    return client.create(POD, {"metadata": {"name": "p"}}, namespace="ns")


def create_dry(client: Client) -> object:
    return client.create_dry(POD, {"metadata": {"name": "p"}}, namespace="ns")


def patch(client: Client) -> object:
    return client.patch(POD, "p", [], namespace="ns")


def delete_exactly(client: Client) -> object:
    client.delete(POD, "p", namespace="ns", preconditions={"uid": "u"})
    return None


@pytest.mark.parametrize(
    ("call", "answers", "requests"),
    [
        pytest.param(read, [DOWN, DOWN, OK], 3, id="reading is repeated"),
        pytest.param(read, [LOST, OK], 2, id="reading is repeated without an answer"),
        pytest.param(delete_exactly, [LOST, OK], 2, id="deleting one uid is repeated"),
        pytest.param(create, [BUSY, OK], 2, id="a busy server did nothing, so creating is repeated"),
        pytest.param(patch, [BUSY, OK], 2, id="and so is patching"),
    ],
)
def test_what_may_be_repeated_is(
    call: Callable[[Client], object], answers: list[Answer], requests: int, tmp_path: Path
) -> None:
    with scripted(*answers) as script:
        call(script.client(tmp_path))
        assert len(script.asked) == requests


@pytest.mark.parametrize("call", [create, patch])
@pytest.mark.parametrize("answer", [DOWN, LOST])
def test_what_may_have_been_done_is_not_repeated(
    call: Callable[[Client], object], answer: Answer, tmp_path: Path
) -> None:
    with scripted(answer) as script:
        with pytest.raises(Unavailable):
            call(script.client(tmp_path))
        assert len(script.asked) == 1


def test_pauses_double_unless_the_server_says_how_long(tmp_path: Path) -> None:
    with scripted(DOWN, BUSY, DOWN, OK) as script:
        read(script.client(tmp_path, Limits(first_pause_seconds=0.1)))
        assert script.slept == [0.1, 2.0, 0.4]


def test_a_server_that_stays_away_is_given_up_with_its_words(tmp_path: Path) -> None:
    with scripted(DOWN) as script:
        with pytest.raises(Unavailable, match="get pods ns/p: etcd is away"):
            read(script.client(tmp_path, Limits(attempts=3)))
        assert len(script.asked) == 3


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, {}, NotConnected),
        (403, {}, Forbidden),
        (404, {}, NotFound),
        (409, {"reason": "Conflict"}, Conflict),
        (409, {"reason": "AlreadyExists"}, AlreadyExists),
        (410, {}, Gone),
        (422, {}, Invalid),
        (400, {}, Invalid),
        (500, {}, Unavailable),
        (500, {"message": "etcdserver: request is too large"}, TooLarge),
        (413, {}, Invalid),
        (503, {"message": 'admission webhook "no.example" denied the request: later'}, Denied),
        (410, {"message": 'admission webhook "no.example" denied the request without explanation'}, Denied),
        (500, {"message": 'Internal error occurred: failed calling webhook "no.example": connection refused'}, Denied),
        (500, {"message": "Internal error occurred: resource quota evaluation timed out"}, Denied),
        (
            403,
            {"message": "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no"},
            Denied,
        ),
        (
            422,
            {"message": "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no"},
            Denied,
        ),
        (403, {"message": "policy 'x' with binding 'y' denied request: expression 'z' resulted in error"}, Denied),
        (403, {"message": 'pods "a" is forbidden: User "x" cannot patch resource "pods/status"'}, Forbidden),
    ],
)
def test_refusals_have_kinds(status: int, body: dict[str, str], error: type[KubeError], tmp_path: Path) -> None:
    with scripted(Answer(status, body)) as script, pytest.raises(KubeError) as raised:
        create(script.client(tmp_path))
    assert type(raised.value) is error


def test_a_gateway_s_own_json_has_no_causes(tmp_path: Path) -> None:
    body = {"code": 3, "message": "no", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo"}]}
    with scripted(Answer(404, body)) as script, pytest.raises(NotFound) as raised:
        read(script.client(tmp_path))
    assert (raised.value.causes, raised.value.of_kind) == ((), True)


def test_a_pause_that_is_no_number_is_the_client_s_own(tmp_path: Path) -> None:
    with scripted(Answer(503, {}, {"Retry-After": "\N{SUPERSCRIPT TWO}"}), OK) as script:
        read(script.client(tmp_path, Limits(first_pause_seconds=0.1)))
        assert script.slept == [0.1]


@pytest.mark.parametrize(
    "change", [{"authorization": lambda: "Bearer hun\nter2"}, {"impersonated": "hun\N{COMBINING ACUTE ACCENT}ter2"}]
)
def test_a_header_that_cannot_be_sent_is_not_shown(change: dict[str, Any], tmp_path: Path) -> None:
    with scripted(OK) as script:
        connection = Connection.from_kubeconfig(kubeconfig(tmp_path, script.url))
        with pytest.raises(NotConnected, match="can't be sent") as raised:
            read(Client(replace(connection, **change)))
    assert "ter2" not in str(raised.value)
    assert not script.asked


def test_a_password_in_the_server_s_address_is_not_shown(tmp_path: Path) -> None:
    connection = Connection("http://me:secret@127.0.0.1:9/x", "ns", lambda: None)
    with pytest.raises(Unavailable, match=r"no answer from http://127\.0\.0\.1:9/x: ") as raised:
        read(Client(connection, Limits(attempts=1)))
    assert "secret" not in str(raised.value)


def test_a_refused_right_names_verb_and_resource(tmp_path: Path) -> None:
    with scripted(Answer(403, {"message": "no"})) as script:
        client = script.client(tmp_path)
        with pytest.raises(Forbidden, match=r"not allowed to patch executormoves/status ns/m: no \(grant"):
            client.patch(EXECUTOR_MOVE, "m", {}, namespace="ns", subresource="status")
        with pytest.raises(Forbidden, match=r"not allowed to create pods/binding ns/p: no"):
            client.act(POD, "p", subresource="binding", body={}, namespace="ns")
        with pytest.raises(Forbidden, match=r"not allowed to list nodes: no"):
            client.get_page(NODE, {})


def test_a_refusal_without_words_is_told_by_its_status(tmp_path: Path) -> None:
    with scripted(Answer(404)) as script, pytest.raises(NotFound, match="get pods ns/p: HTTP 404"):
        read(script.client(tmp_path))


@pytest.mark.parametrize("body", ["sign in first", ["no object"]])
def test_an_answer_that_is_not_the_servers_is_no_answer(body: Any, tmp_path: Path) -> None:
    with scripted(Answer(body=body)) as script:
        client = script.client(tmp_path, Limits(attempts=1))
        with pytest.raises(Unavailable, match=r"get pods ns/p: the answer is not the API server.s: it is no JSON"):
            read(client)
        with pytest.raises(Unavailable, match=r"list nodes: the answer is not the API server.s: it is no JSON"):
            client.get_page(NODE, {})
        with pytest.raises(Unavailable, match=r"patch pods ns/p: the answer is not the API server.s: it is no JSON"):
            client.patch(POD, "p", [], namespace="ns", answer=False)


def test_a_deletion_without_conditions_is_sent_once(tmp_path: Path) -> None:
    with scripted(LOST) as script:
        with pytest.raises(Unavailable):
            script.client(tmp_path).delete(POD, "p", namespace="ns")
        assert [asked.body for asked in script.asked] == [{"apiVersion": "v1", "kind": "DeleteOptions"}]


def test_every_request_impersonates_the_user_that_was_named(tmp_path: Path) -> None:
    with scripted(OK) as script:
        connection = Connection.from_kubeconfig(kubeconfig(tmp_path, script.url))
        for user in (None, "ann"):
            client = Client(replace(connection, impersonated=user))
            read(client)
            patch(client)
        sent = [asked.headers.get("Impersonate-User") for asked in script.asked]
    assert sent == [None, None, "ann", "ann"]


def through(proxy: str) -> Client:
    connection = Connection("http://cluster.example", "ns", lambda: None, proxy=proxy)
    return Client(connection, Limits(attempts=1))


def test_a_cluster_behind_a_proxy_is_asked_through_it(tmp_path: Path) -> None:
    with scripted(OK) as script:
        read(through(script.url))
        assert [asked.path for asked in script.asked] == ["http://cluster.example/api/v1/namespaces/ns/pods/p"]


def test_a_proxy_that_does_not_answer_is_named() -> None:
    with pytest.raises(Unavailable) as raised:
        read(through("http://127.0.0.1:1"))
    assert str(raised.value) == "get pods ns/p: no answer from http://cluster.example: the proxy gave none"


def test_a_server_whose_name_no_resolver_knows_is_told_as_that() -> None:
    with pytest.raises(Unavailable, match=r"no answer from http://ballast\.invalid: its name can't be resolved"):
        read(Client(Connection("http://ballast.invalid", "ns", lambda: None), Limits(attempts=1)))


def test_writes_are_signed_and_sent_in_the_patchs_own_type(tmp_path: Path) -> None:
    with scripted(OK) as script:
        client = script.client(tmp_path)
        client.patch(POD, "p", [{"op": "test"}], namespace="ns", answer=False)
        client.patch(POD, "p", {"metadata": {}}, namespace="ns")
        one, two = script.asked
    assert one.path == "/api/v1/namespaces/ns/pods/p?fieldManager=ballast"
    assert (one.headers["Content-Type"], two.headers["Content-Type"]) == (
        "application/json-patch+json",
        "application/merge-patch+json",
    )
    assert "PartialObjectMetadata" in one.headers["Accept"]
    assert one.headers["Authorization"] == "Bearer secret"


def test_what_the_server_sends_back_after_a_write_is_passed_on_if_it_is_an_object(tmp_path: Path) -> None:
    """A dry run of it is none, and neither is a Status."""
    stored = Answer(body={"metadata": {"name": "p", "uid": "u"}})
    heard: list[object] = []
    with scripted(stored, stored, stored, OK) as script:
        client = script.client(tmp_path)
        client.written = lambda kind, found: heard.append((kind, found))
        for write in (create, patch, create_dry, create):
            write(client)
    assert heard == [(POD, stored.body), (POD, stored.body)]


BODY: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {}}
OURS = "/api/v1/namespaces/ns/pods"


@pytest.mark.parametrize(
    ("call", "method", "path", "body"),
    [
        (lambda c: c.get(POD, "p", namespace="ns"), "GET", f"{OURS}/p", None),
        (lambda c: c.create(POD, BODY, namespace="ns"), "POST", f"{OURS}?fieldManager=ballast", BODY),
        (lambda c: c.create_dry(POD, BODY, namespace="ns"), "POST", f"{OURS}?dryRun=All&fieldManager=ballast", BODY),
        (lambda c: c.create(NODE, BODY), "POST", "/api/v1/nodes?fieldManager=ballast", BODY),
        (lambda c: c.replace(POD, "p", BODY, namespace="ns"), "PUT", f"{OURS}/p?fieldManager=ballast", BODY),
        (
            lambda c: c.act(POD, "p", subresource="binding", body=BODY, namespace="ns"),
            "POST",
            f"{OURS}/p/binding",
            BODY,
        ),
        (
            lambda c: c.delete(POD, "p", namespace="ns", preconditions={"uid": "u"}),
            "DELETE",
            f"{OURS}/p",
            {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}},
        ),
        (lambda c: c.version(), "GET", "/version", None),
    ],
    ids=["get", "create", "create dry", "create in the cluster", "replace", "act", "delete", "version"],
)
def test_each_call_is_one_request(
    call: Callable[[Client], object], method: str, path: str, body: object, tmp_path: Path
) -> None:
    with scripted(OK) as script:
        found = call(script.client(tmp_path))
        assert [(asked.method, asked.path, asked.body) for asked in script.asked] == [(method, path, body)]
    assert found in (None, OK.body)


def test_a_server_that_never_answers_is_left_after_the_time_that_it_has(tmp_path: Path) -> None:
    ended = Event()

    def much_later(asked: Asked) -> Answer:
        del asked
        ended.wait(60.0)
        return OK

    with scripted(OK) as script:
        script.by = much_later
        try:
            with pytest.raises(Unavailable):
                read(script.client(tmp_path, Limits(attempts=1, read_seconds=0.2)))
        finally:
            ended.set()


def test_names_cannot_leave_their_place_in_the_path(tmp_path: Path) -> None:
    with scripted(OK) as script:
        script.client(tmp_path).get(POD, "../nodes", namespace="a/b")
        assert script.asked[0].path == "/api/v1/namespaces/a%2Fb/pods/..%2Fnodes"
