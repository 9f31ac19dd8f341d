from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ballast import deadline
from ballast.kube.client import Action, Client
from ballast.kube.connection import Connection
from ballast.kube.errors import Gone, Invalid, KubeError, NotConnected, Unavailable
from ballast.kube.kinds import POD
from ballast.kube.stream import Stream
from tests.apiserver import Answer, kubeconfig, scripted
from tests.loopback import Handler, Server
from tests.testbed.kubeconfig import by_certificate
from tests.testbed.pki import Pki

ADDED = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}'
BOOKMARK = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}'
LONG = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "b" * 100_000}}}).encode()
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old resource version"}}'


@dataclass
class Watched:
    """A server whose answer to a watch is written piece by piece, and then kept open until `finish`, or cut off."""

    pieces: list[bytes]
    content_type: str = "application/json"
    chunked: bool = True
    cut_off: bool = False
    pki: Pki | None = None
    """With it the server speaks TLS."""
    url: str = ""
    sent: threading.Event = field(default_factory=threading.Event)
    """All pieces are."""
    finish: threading.Event = field(default_factory=threading.Event)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def open(self, folder: Path, *, read_seconds: float = 30.0, **parameters: Any) -> Stream:
        path = kubeconfig(folder, self.url)
        if self.pki is not None:
            path.write_text(
                by_certificate(server=self.url, ca=self.pki.cluster_ca.files.certificate, client=self.pki.admin)
            )
        client = Client(Connection.from_kubeconfig(path))
        try:
            return client.stream(POD, {}, connect_seconds=60.0, read_seconds=read_seconds, **parameters)
        finally:
            client.close()


@contextmanager
def watched(*pieces: bytes, ends: bool = True, **options: Any) -> Iterator[Watched]:
    given = Watched(list(pieces), **options)
    if ends:
        given.finish.set()

    class Watching(Handler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            given.paths.append(self.path)
            given.headers.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Type", given.content_type)
            self.send_header(*(("Transfer-Encoding", "chunked") if given.chunked else ("Connection", "close")))
            self.end_headers()
            self.wfile.flush()
            for piece in given.pieces:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if given.chunked else piece)
            given.sent.set()
            given.finish.wait(60)
            if given.chunked and not given.cut_off:
                self.wfile.write(b"0\r\n\r\n")
            self.close_connection = True

    with Server(Watching, tls=given.pki.apiserver.server_context() if given.pki else None) as server:
        given.url = server.url
        try:
            yield given
        finally:
            given.finish.set()


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        pytest.param([], [], id="none"),
        pytest.param([ADDED + b"\n", BOOKMARK + b"\n"], [ADDED, BOOKMARK], id="an event a piece"),
        pytest.param([ADDED + b"\n" + BOOKMARK + b"\n"], [ADDED, BOOKMARK], id="two events in a piece"),
        pytest.param([ADDED[:9], ADDED[9:20], ADDED[20:] + b"\n"], [ADDED], id="an event in three pieces"),
        pytest.param([ADDED + b"\n" + BOOKMARK[:5], BOOKMARK[5:] + b"\n"], [ADDED, BOOKMARK], id="one and a half"),
        pytest.param([LONG + b"\n\n", ADDED + b"\n"], [LONG, ADDED], id="a long event and an empty line"),
    ],
)
def test_every_event_is_one_line_of_bytes(
    pieces: list[bytes], events: list[bytes], chunked: bool, tmp_path: Path
) -> None:
    with watched(*pieces, chunked=chunked) as server, server.open(tmp_path) as stream:
        assert list(stream) == events


@pytest.mark.parametrize("encrypted", [False, True])
def test_events_come_while_the_watch_is_open_and_closing_it_ends_the_wait(
    encrypted: bool, pki: Pki, tmp_path: Path
) -> None:
    with watched(ADDED + b"\n", ends=False, pki=pki if encrypted else None) as server:
        stream = server.open(tmp_path)
        came, seen = threading.Event(), []

        def follow() -> None:
            for event in stream:
                seen.append(event)
                came.set()

        reader = threading.Thread(target=follow)
        reader.start()
        assert came.wait(60)
        stream.close()
        reader.join(60)
        assert not reader.is_alive()
        assert seen == [ADDED]
        assert not server.finish.is_set()


def test_a_stream_that_is_closed_before_it_is_read_is_empty(tmp_path: Path) -> None:
    with watched(ADDED + b"\n") as server:
        stream = server.open(tmp_path)
        stream.close()
        stream.close()
        assert list(stream) == []


def test_silence_beyond_the_bound_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=lambda: 0.0))
    with watched(ADDED + b"\n", ends=False) as server:
        events = []
        with pytest.raises(Unavailable, match=r"watch pods: the watch broke off: .*timed out"):  # noqa: PT012
            stream = server.open(tmp_path, read_seconds=0.2)
            # Only what follows this event comes too late.
            assert server.sent.wait(60)
            for event in stream:
                events.append(event)  # noqa: PERF402
        assert events == [ADDED]


def test_an_answer_that_is_slow_to_begin_is_given_up(tmp_path: Path) -> None:
    release = threading.Event()
    with scripted(Answer()) as script:
        script.by = lambda _: Answer(body={"late": release.wait(60)})
        client = script.client(tmp_path)
        with pytest.raises(Unavailable, match="watch pods: no answer"):
            client.stream(POD, {}, connect_seconds=0.2, read_seconds=30.0)
        release.set()


@pytest.mark.parametrize(
    ("pieces", "options", "error", "words"),
    [
        pytest.param([EXPIRED + b"\n"], {}, Gone, "watch pods: too old", id="the resource version has expired"),
        pytest.param([b'{"type":"ERROR","object":{"code":400}}\n'], {}, Invalid, "HTTP 400", id="another error"),
        pytest.param([b'{"type":"ERROR"}\n'], {}, Unavailable, "not the API server's", id="an error about nothing"),
        pytest.param([b"<html>\n"], {}, Unavailable, "not the API server's", id="a page that calls itself JSON"),
        pytest.param([b"<html>\n"], {"content_type": "text/html"}, Unavailable, "text/html", id="a page"),
        pytest.param([ADDED[:9]], {}, Unavailable, "in the middle", id="half an event"),
        pytest.param([ADDED[:9]], {"chunked": False}, Unavailable, "in the middle", id="half an event, not chunked"),
        pytest.param([], {"cut_off": True}, Unavailable, "broke off", id="a connection that is cut off"),
    ],
)
def test_what_is_no_event_is_an_error(
    pieces: list[bytes], options: dict[str, Any], error: type[KubeError], words: str, tmp_path: Path
) -> None:
    with watched(ADDED + b"\n", *pieces, **options) as server:
        with pytest.raises(KubeError, match=words) as raised:
            list(server.open(tmp_path))
        assert type(raised.value) is error


@pytest.mark.parametrize(
    ("status", "error"), [(401, NotConnected), (410, Gone), (429, Unavailable), (503, Unavailable)]
)
def test_a_refused_watch_has_the_errors_of_every_request_and_is_not_repeated(
    status: int, error: type[KubeError], tmp_path: Path
) -> None:
    with scripted(Answer(status, {"message": "no"}, {"Retry-After": "3"})) as script:
        with pytest.raises(KubeError, match="watch pods: no") as raised:
            script.client(tmp_path).stream(POD, {}, connect_seconds=60.0, read_seconds=5.0)
        assert type(raised.value) is error
        assert getattr(raised.value, "retry_after_seconds", 3.0) == 3.0
        assert len(script.asked) == 1


def test_a_refused_watch_leaves_no_connection_open(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with scripted(Answer(503)) as script:
        client = script.client(tmp_path)
        with pytest.raises(Unavailable) as refused:
            client.stream(POD, {}, connect_seconds=60.0, read_seconds=5.0)
        # The server has a thread for each open connection, and one that accepts them. Nothing was collected yet.
        for thread in [each for each in threading.enumerate() if each not in before and "request" in each.name]:
            thread.join(60)
            assert not thread.is_alive()
        assert refused.value.status == 503


def test_what_is_watched_is_said_in_the_query(tmp_path: Path) -> None:
    with watched() as server:
        client = Client(Connection.from_kubeconfig(kubeconfig(tmp_path, server.url)))
        parameters = {"labelSelector": "spark-role=executor", "resourceVersion": "5"}
        for metadata_only in (False, True):
            list(
                client.stream(
                    POD, parameters, namespace="ns", metadata_only=metadata_only, connect_seconds=60.0, read_seconds=5.0
                )
            )
        whole, slim = server.headers
    query = "labelSelector=spark-role%3Dexecutor&resourceVersion=5&watch=true"
    assert server.paths == [f"/api/v1/namespaces/ns/pods?{query}"] * 2
    assert (whole["Accept"], whole["Authorization"]) == ("application/json", "Bearer secret")
    assert "PartialObjectMetadata;" in slim["Accept"]


def test_every_request_is_observed(tmp_path: Path) -> None:
    seen: list[tuple[Action, int]] = []
    with scripted(Answer(503), Answer(), Answer(404)) as script:
        connection = Connection.from_kubeconfig(kubeconfig(tmp_path, script.url))
        client = Client(connection, sleep=lambda _: None, observer=lambda action, status: seen.append((action, status)))
        client.get(POD, "p", namespace="ns")
        with pytest.raises(KubeError):
            client.stream(POD, {}, connect_seconds=60.0, read_seconds=5.0)
    assert [(action.verb, action.resource, status) for action, status in seen] == [
        ("get", "pods", 503),
        ("get", "pods", 200),
        ("watch", "pods", 404),
    ]
