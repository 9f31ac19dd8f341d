"""Service-account tokens for pods, renewed in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from tests.testbed.kubelet.client import Client, Json

DEFAULT_SECONDS = 3600
RENEW_AT_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Token:
    value: str
    renew_at: float
    """Unix time from which a new one is due."""


class TokenSource:
    """Tokens of one pod, by audience and lifetime; each is kept until four fifths of its life have passed."""

    def __init__(self, client: Client, pod: Json, *, clock: Callable[[], float]) -> None:
        self._client = client
        self._pod = pod
        self._clock = clock
        self._tokens: dict[tuple[str, int], Token] = {}

    async def token(self, source: Json) -> str:
        """The token that a `serviceAccountToken` projection asks for."""
        key = (source.get("audience", ""), int(source.get("expirationSeconds") or DEFAULT_SECONDS))
        held = self._tokens.get(key)
        if held is None or held.renew_at <= self._clock():
            held = self._tokens[key] = await self._request(*key)
        return held.value

    async def _request(self, audience: str, seconds: int) -> Token:
        metadata = self._pod["metadata"]
        account = self._pod["spec"].get("serviceAccountName", "default")
        spec: Json = {
            "expirationSeconds": seconds,
            "audiences": [audience] if audience else [],
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = await self._client.post(path, body)
        status = answer["status"]
        expires = datetime.fromisoformat(status["expirationTimestamp"]).timestamp()
        now = self._clock()
        return Token(status["token"], now + RENEW_AT_SHARE * (expires - now))
