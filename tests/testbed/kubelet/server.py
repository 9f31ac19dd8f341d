"""A node's two HTTP servers: the kubelet's own (TLS, for the API server alone) and the metrics'."""

from __future__ import annotations

import ssl
from pathlib import Path

from aiohttp import web

from tests.testbed.kubelet import exposition, logs, streaming
from tests.testbed.kubelet.config import KubeletConfig
from tests.testbed.kubelet.interfaces import within
from tests.testbed.kubelet.node import NodeAgent
from tests.testbed.kubelet.observation import Observer
from tests.testbed.kubelet.sockets import listening
from tests.testbed.kubelet.status import Running
from tests.testbed.kubelet.worker import PodWorker


def tls(config: KubeletConfig) -> ssl.SSLContext:
    """Serves with the given certificate, and only clients that the API server's authority has signed."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(config.client_ca_file))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(config.serving_cert, config.serving_key)
    return context


def _number(request: web.Request, name: str) -> int | None:
    return int(request.query[name]) if name in request.query else None


class NodeServer:
    """Serves one node at its address."""

    def __init__(self, agent: NodeAgent) -> None:
        self._agent = agent
        self._observer = Observer(agent)
        self._runners: list[web.AppRunner] = []

    async def start(self) -> None:
        node, config = self._agent.host.node, self._agent.host.config
        await self._serve(self._kubelet_routes(), node.port, tls(config))
        await self._serve(self._metrics_routes(), node.metrics_port, None)

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    async def _serve(self, routes: list[web.RouteDef], port: int, context: ssl.SSLContext | None) -> None:
        node = self._agent.host.node
        application = web.Application()
        application.add_routes(routes)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        if node.netns:
            socket = within(Path("/run/netns") / node.netns, lambda: listening(node.address, port))
        else:
            socket = listening(node.address, port)
        await web.SockSite(runner, socket, ssl_context=context).start()
        self._runners.append(runner)

    def _kubelet_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self._healthy),
            web.get("/containerLogs/{namespace}/{pod}/{container}", self._logs),
            web.get("/exec/{namespace}/{pod}/{container}", self._exec),
            web.post("/exec/{namespace}/{pod}/{container}", self._exec),
            *self._metrics_routes(),
        ]

    def _metrics_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/metrics", self._exporter),
            web.get("/metrics/cadvisor", self._cadvisor),
            web.get("/metrics/resource", self._resource),
        ]

    async def _healthy(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _exporter(self, _: web.Request) -> web.Response:
        return self._page(exposition.text(self._observer.exporter()))

    async def _cadvisor(self, _: web.Request) -> web.Response:
        return self._page(exposition.text(self._observer.cadvisor()))

    async def _resource(self, _: web.Request) -> web.Response:
        return self._page(exposition.text(self._observer.resource()))

    def _page(self, text: str) -> web.Response:
        return web.Response(body=text.encode(), headers={"Content-Type": exposition.CONTENT_TYPE})

    def _worker(self, request: web.Request) -> PodWorker:
        """The pod that a request names. Raises HTTPNotFound."""
        wanted = (request.match_info["namespace"], request.match_info["pod"])
        for worker in self._agent.workers.values():
            metadata = worker.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == wanted:
                return worker
        raise web.HTTPNotFound(text=f"pod {'/'.join(wanted)} is not on this node")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        worker, name = self._worker(request), request.match_info["container"]
        container = next((c for c in worker.containers if c.name == name), None)
        if container is None or container.attempt is None:
            raise web.HTTPBadRequest(text=f"container {name!r} in this pod is waiting to start")
        number = container.attempt.number - (request.query.get("previous") == "true")
        path = worker.habitat.log_file(name, number)
        if not path.exists():
            raise web.HTTPBadRequest(text=f"previous terminated container {name!r} not found")

        async def ended() -> bool:
            return not isinstance(container.status.state, Running) or number != container.status.restarts

        query = logs.LogQuery(
            follow=request.query.get("follow") == "true",
            tail_lines=_number(request, "tailLines"),
            limit_bytes=_number(request, "limitBytes"),
        )
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        async for chunk in logs.read(path, query, ended):
            await response.write(chunk)
        return response

    async def _exec(self, request: web.Request) -> web.StreamResponse:
        worker, name = self._worker(request), request.match_info["container"]
        container = next((c for c in worker.containers if c.name == name), None)
        if container is None or container.attempt is None:
            raise web.HTTPNotFound(text=f"container {name!r} is not running")
        return await streaming.execute(request, container.attempt)
