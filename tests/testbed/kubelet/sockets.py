"""Listening sockets."""

from __future__ import annotations

import socket


def listening(address: str, port: int) -> socket.socket:
    """A socket that accepts connections at an address; taken over at once from a predecessor that ended."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind((address, port))
    found.listen(128)
    return found
