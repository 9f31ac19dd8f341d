from datetime import UTC, datetime
from typing import Any

from tests.testbed.kubelet.client import Client, Json
from tests.testbed.kubelet.tests.builders import pod
from tests.testbed.kubelet.tokens import TokenSource


class Issuer(Client):
    """Issues numbered tokens and remembers what it was asked for."""

    def __init__(self, clock: list[float]) -> None:
        self.asked: list[tuple[str, Json]] = []
        self._clock = clock

    async def post(self, path: str, body: Json) -> Json:
        self.asked.append((path, body["spec"]))
        expires = datetime.fromtimestamp(self._clock[0] + body["spec"]["expirationSeconds"], UTC)
        stamp = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"status": {"token": f"token-{len(self.asked)}", "expirationTimestamp": stamp}}


def source(clock: list[float], **spec: Any) -> tuple[TokenSource, Issuer]:
    issuer = Issuer(clock)
    return TokenSource(issuer, pod(**spec), clock=lambda: clock[0]), issuer


async def test_a_token_belongs_to_the_pod_and_its_account() -> None:
    tokens, issuer = source([0.0], serviceAccountName="spark")
    await tokens.token({"path": "token", "audience": "vault", "expirationSeconds": 600})
    ((path, spec),) = issuer.asked
    assert path == "/api/v1/namespaces/shop/serviceaccounts/spark/token"
    assert (spec["audiences"], spec["expirationSeconds"]) == (["vault"], 600)
    assert spec["boundObjectRef"]["uid"] == "11111111-2222"


async def test_a_token_is_renewed_when_four_fifths_of_its_life_have_passed() -> None:
    clock = [0.0]
    tokens, _ = source(clock)
    wanted = {"path": "token", "expirationSeconds": 1000}
    found = []
    for now in (0.0, 799.0, 801.0):
        clock[0] = now
        found.append(await tokens.token(wanted))
    assert found == ["token-1", "token-1", "token-2"]
