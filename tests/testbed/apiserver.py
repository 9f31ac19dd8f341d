"""The few calls to the API server that the testbed itself makes, verified against its own authority."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.testbed.errors import TestbedError
from tests.testbed.pki import KeyPair

TIMEOUT_SECONDS = 30
CONNECTIONS = 8

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Speaks JSON to `url` as the holder of `client`. Refusals raise TestbedError."""

    url: str
    ca: Path
    client: KeyPair

    def get(self, path: str) -> Json:
        with self._session() as session:
            return self._checked(session.get(f"{self.url}{path}", timeout=TIMEOUT_SECONDS))

    def post(self, path: str, body: Json) -> Json:
        return self.post_all(path, [body])[0]

    def post_all(self, path: str, bodies: Sequence[Json]) -> list[Json]:
        """Many at once, over a few connections; the answers in the order of the bodies."""
        shares = [bodies[start::CONNECTIONS] for start in range(min(CONNECTIONS, len(bodies)))]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            answers = list(pool.map(lambda share: self._post_in_turn(path, share), shares))
        return [answers[index % CONNECTIONS][index // CONNECTIONS] for index in range(len(bodies))]

    def answers(self, path: str) -> bool:
        """Whether `path` is served with success; False also when nobody listens yet."""
        try:
            with self._session() as session:
                return session.get(f"{self.url}{path}", timeout=TIMEOUT_SECONDS).ok
        except requests.ConnectionError:
            return False

    def _post_in_turn(self, path: str, bodies: Sequence[Json]) -> list[Json]:
        with self._session() as session:
            url = f"{self.url}{path}"
            return [self._checked(session.post(url, json=body, timeout=TIMEOUT_SECONDS)) for body in bodies]

    @contextmanager
    def _session(self) -> Iterator[requests.Session]:
        with requests.Session() as session:
            session.trust_env = False  # a proxy of the environment has no business on loopback
            session.verify = str(self.ca)
            session.cert = (str(self.client.certificate), str(self.client.key))
            yield session

    def _checked(self, response: requests.Response) -> Json:
        if not response.ok:
            request = response.request
            raise TestbedError(f"{request.method} {request.path_url}: {response.status_code} {response.text[:500]}")
        found: Json = response.json()
        return found
