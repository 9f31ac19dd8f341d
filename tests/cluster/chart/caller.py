"""Asking the API server as somebody, and what it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from ballast.kube.kinds import Kind
from tests.testbed.testbed import Testbed

JSON = dict[str, Any]

_TIMEOUT_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    body: JSON

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def ok(self) -> bool:
        return self.code < 300

    def refused_by(self, policy: str) -> bool:
        """Whether that admission policy said no; a missing right or a wrong object is something else."""
        return self.code == 403 and f"ValidatingAdmissionPolicy '{policy}'" in self.message


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody at the API server. With `dry`, it is told what would come of it and nothing is stored."""

    url: str
    session: requests.Session

    def create(self, kind: Kind, body: Mapping[str, Any], *, namespace: str | None = None, dry: bool = False) -> Answer:
        return self._ask("POST", kind.path(namespace=namespace), body, dry=dry)

    def read(self, kind: Kind, name: str | None = None, *, namespace: str | None = None) -> Answer:
        """One object, or all without a name."""
        return self._ask("GET", kind.path(namespace=namespace, name=name))

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Sequence[JSON] | Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        dry: bool = False,
    ) -> Answer:
        """A list is an RFC 6902 patch, a mapping a merge patch."""
        path = kind.path(namespace=namespace, name=name, subresource=subresource)
        form = "merge-patch" if isinstance(patch, Mapping) else "json-patch"
        return self._ask("PATCH", path, patch, form=form, dry=dry)

    def replace(self, kind: Kind, name: str, body: JSON, *, namespace: str | None = None, dry: bool = False) -> Answer:
        return self._ask("PUT", kind.path(namespace=namespace, name=name), body, dry=dry)

    def delete(self, kind: Kind, name: str, *, namespace: str | None = None, dry: bool = False) -> Answer:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        return self._ask("DELETE", kind.path(namespace=namespace, name=name), options, dry=dry)

    def act(self, kind: Kind, name: str, *, subresource: str, body: JSON, namespace: str, dry: bool = False) -> Answer:
        """Post to a subresource."""
        return self._ask("POST", kind.path(namespace=namespace, name=name, subresource=subresource), body, dry=dry)

    def _ask(self, method: str, path: str, body: Any = None, *, form: str = "", dry: bool = False) -> Answer:
        response = self.session.request(
            method,
            f"{self.url}{path}",
            params={"dryRun": "All"} if dry else {},
            json=body,
            headers={"Content-Type": f"application/{form}+json"} if form else {},
            timeout=_TIMEOUT_SECONDS,
        )
        return Answer(response.status_code, response.json())


@contextmanager
def administrator(testbed: Testbed) -> Iterator[Caller]:
    with _session(testbed) as session:
        session.cert = _certificate(testbed)
        yield Caller(testbed.url, session)


@contextmanager
def user(testbed: Testbed, name: str) -> Iterator[Caller]:
    """Somebody with the rights of the user `name`, and no others."""
    with _session(testbed) as session:
        session.cert = _certificate(testbed)
        session.headers["Impersonate-User"] = name
        yield Caller(testbed.url, session)


@contextmanager
def account(testbed: Testbed, namespace: str, name: str) -> Iterator[Caller]:
    """A ServiceAccount, by its own token."""
    with _session(testbed) as session:
        session.headers["Authorization"] = f"Bearer {testbed.token(namespace, name)}"
        yield Caller(testbed.url, session)


@contextmanager
def _session(testbed: Testbed) -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = str(testbed.ca)
        yield session


def _certificate(testbed: Testbed) -> tuple[str, str]:
    client = testbed.api.client
    return str(client.certificate), str(client.key)
