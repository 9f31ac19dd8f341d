"""The few calls to the API server that the testbed itself makes, verified against its own authority."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.testbed.errors import TestbedError
from tests.testbed.pki import KeyPair

TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Speaks JSON to `url` as the holder of `client`."""

    url: str
    ca: Path
    client: KeyPair

    def get(self, path: str) -> dict[str, Any]:
        return self._call("GET", path, None)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call("POST", path, body)

    def answers(self, path: str) -> bool:
        """Whether `path` is served with success; False also when nobody listens yet."""
        try:
            return self._send("GET", path, None).ok
        except requests.ConnectionError:
            return False

    def _call(self, method: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        response = self._send(method, path, body)
        if not response.ok:
            raise TestbedError(f"{method} {path}: {response.status_code} {response.text[:500]}")
        found: dict[str, Any] = response.json()
        return found

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False  # a proxy of the environment has no business on loopback
            return session.request(
                method,
                f"{self.url}{path}",
                json=body,
                verify=str(self.ca),
                cert=(str(self.client.certificate), str(self.client.key)),
                timeout=TIMEOUT_SECONDS,
            )
