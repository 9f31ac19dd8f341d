"""`kubectl exec`: a command's streams over a WebSocket, subprotocol v5.channel.k8s.io.

Every binary message begins with its channel: 0 stdin, 1 stdout, 2 stderr, 3 the final status, 4 terminal size,
255 says that the channel named after it is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import pty
import signal
import struct
import termios
from dataclasses import dataclass
from typing import Any

from aiohttp import WSMsgType, web

from tests.testbed.kubelet.attempts import Attempt, readable

PROTOCOL = "v5.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
CHUNK_BYTES = 32_768


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller wants to run and which streams it wants."""

    argv: list[str]
    stdin: bool
    tty: bool

    @classmethod
    def of(cls, request: web.Request) -> Wish:
        def asked(*names: str) -> bool:
            return any(request.query.get(name) in {"1", "true"} for name in names)

        return cls(request.query.getall("command", []), asked("input", "stdin"), asked("tty"))


def final_status(code: int) -> dict[str, Any]:
    """What kubectl derives its own exit code from."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": f"command terminated with non-zero exit code: {code}",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


def resize(descriptor: int, message: bytes) -> None:
    size = json.loads(message)
    packed = struct.pack("HHHH", size.get("Height", 24), size.get("Width", 80), 0, 0)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, packed)


@dataclass(slots=True)
class Streams:
    """The ends of the command's streams that are ours; -1 where there is none."""

    stdin: int
    outputs: dict[int, int]
    terminal: int


async def execute(request: web.Request, attempt: Attempt) -> web.StreamResponse:
    """Run a command in a container and be its terminal until it ends."""
    wish = Wish.of(request)
    socket = web.WebSocketResponse(protocols=[PROTOCOL], max_msg_size=0)
    if not socket.can_prepare(request):
        raise web.HTTPBadRequest(text=f"exec needs a WebSocket with the subprotocol {PROTOCOL}")
    await socket.prepare(request)
    try:
        process, streams = await start(attempt, wish)
    except ProcessLookupError as error:
        await tell_status(socket, {"metadata": {}, "status": "Failure", "message": str(error)})
        return socket
    incoming = asyncio.create_task(receive(socket, streams))
    try:
        await asyncio.gather(*(send(socket, channel, end) for channel, end in streams.outputs.items()))
        code = await process.wait()
        await tell_status(socket, final_status(code if code >= 0 else 128 - code))
    finally:
        incoming.cancel()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()
        for descriptor in {streams.stdin, *streams.outputs.values()} - {-1}:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    return socket


async def start(attempt: Attempt, wish: Wish) -> tuple[asyncio.subprocess.Process, Streams]:
    argv = attempt.inside(wish.argv)
    if wish.tty:
        ours, theirs = pty.openpty()
        process = await asyncio.create_subprocess_exec(*argv, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        return process, Streams(stdin=ours, outputs={STDOUT: ours}, terminal=ours)
    pipes = {channel: os.pipe() for channel in (STDIN, STDOUT, STDERR)}
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipes[STDIN][0], stdout=pipes[STDOUT][1], stderr=pipes[STDERR][1], start_new_session=True
    )
    for descriptor in (pipes[STDIN][0], pipes[STDOUT][1], pipes[STDERR][1]):
        os.close(descriptor)
    stdin = pipes[STDIN][1]
    if not wish.stdin:
        os.close(stdin)
        stdin = -1
    return process, Streams(stdin, {channel: pipes[channel][0] for channel in (STDOUT, STDERR)}, -1)


async def send(socket: web.WebSocketResponse, channel: int, descriptor: int) -> None:
    """Pass one output on until its end (which a terminal reports as an error)."""
    while True:
        await readable(descriptor)
        try:
            chunk = os.read(descriptor, CHUNK_BYTES)
        except OSError:
            return
        if not chunk:
            return
        await socket.send_bytes(bytes([channel]) + chunk)


async def receive(socket: web.WebSocketResponse, streams: Streams) -> None:
    """Pass the caller's input and window sizes on."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, body = message.data[0], message.data[1:]
        if channel == STDIN and streams.stdin >= 0:
            with contextlib.suppress(BrokenPipeError):
                await asyncio.to_thread(os.write, streams.stdin, body)
        elif channel == RESIZE and streams.terminal >= 0:
            resize(streams.terminal, body)
        elif channel == CLOSE and body[:1] == bytes([STDIN]) and streams.terminal < 0 <= streams.stdin:
            os.close(streams.stdin)
            streams.stdin = -1


async def tell_status(socket: web.WebSocketResponse, status: dict[str, Any]) -> None:
    await socket.send_bytes(bytes([STATUS]) + json.dumps(status).encode())
    await socket.close()
