"""A stream whose beginning was looked at, and the look itself."""

from __future__ import annotations

import io
from typing import IO


class Replayed(io.RawIOBase):
    """A stream whose beginning has been read already."""

    def __init__(self, start: bytes, stream: IO[bytes]) -> None:
        self._start, self._stream = start, stream

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read like any stream, the beginning first."""
        if self._start:
            end = len(self._start) if size < 0 else size
            taken, self._start = self._start[:end], self._start[end:]
            return taken
        return self._stream.read(size)


def read_up_to(stream: IO[bytes], size: int) -> bytes:
    """The next `size` bytes, or what there is."""
    parts: list[bytes] = []
    while size > 0 and (block := stream.read(size)):
        parts.append(block)
        size -= len(block)
    return b"".join(parts)
