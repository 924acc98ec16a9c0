"""One writer per case: the lock beside it, and the folder in which the new state grows.

Both are named after the case.  A writer that was killed leaves them behind; the next one takes them over, since a lock
is held by a process and not by a file.  The folder is its owner's alone, so no one reads a case's write-ahead log.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
from pathlib import Path
from typing import Final, Self

from tracelens.errors import CaseError

_HOLDER_BYTES: Final = 300


class CaseLock:
    """The right to write one case, and an empty `folder` beside it, until the block is left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.target = path.resolve()
        """Where the case lies; `path` may be a link to it, and stays one."""
        self.folder = self.target.with_name(f".{self.target.name}.partial")
        self._entry = self.target.with_name(f".{self.target.name}.lock")

    def __enter__(self) -> Self:
        self._handle = self._taken()
        try:
            self.clear()
        except BaseException:
            self._released()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _remove(self.folder)
        finally:
            self._released()

    def clear(self) -> None:
        """Make the folder, or empty it."""
        try:
            _remove(self.folder)
            self.folder.mkdir(0o700)
        except OSError as error:
            raise CaseError(f"{self.path}: cannot write there ({error.strerror})") from error

    def _released(self) -> None:
        self._entry.unlink(missing_ok=True)
        os.close(self._handle)

    def _taken(self) -> int:
        """Hold the entry ``.NAME.lock``, in which process and host of the holder stand."""
        while True:
            try:
                handle = os.open(self._entry, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise CaseError(f"{self.path}: cannot write there ({error.strerror})") from error
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_entry(handle):
                    os.ftruncate(handle, 0)
                    os.pwrite(handle, f"{os.getpid()} on {socket.gethostname()}\n".encode(), 0)
                    return handle
            except OSError as error:
                refused = self._refused(error, handle)
                os.close(handle)
                raise refused from error
            os.close(handle)  # whoever held it took the entry away in between

    def _is_entry(self, handle: int) -> bool:
        """Whether what is held is what others will find: its last holder may have taken it away in between."""
        try:
            return os.fstat(handle).st_ino == self._entry.stat().st_ino
        except FileNotFoundError:
            return False

    def _refused(self, error: OSError, handle: int) -> CaseError:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            return CaseError(f"{self.path}: cannot be locked ({error.strerror})")
        holder = os.pread(handle, _HOLDER_BYTES, 0).decode("utf-8", "replace").strip()
        return CaseError(
            f"{self.path}: another ingest{f' (process {holder})' if holder else ''} is writing this case",
            hint="wait for it to end, or choose another --case",
        )


def _remove(path: Path) -> None:
    """Take a folder away with what is in it; older versions left a file of that name."""
    if path.is_symlink() or path.is_file():
        path.unlink()
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        raise OSError(errno.EEXIST, f"{path} cannot be removed")
