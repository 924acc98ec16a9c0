"""The folder for an ingest's Parquet parts: its owner's alone, gone at the end, and taken away later if its owner was killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tracelens.errors import CaseError

_PREFIX: Final = "tracelens-parts-"
_OWNER: Final = "owner"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of one's own among the temporary files ($TMPDIR); those of killed ingests are removed first.

    Raises `CaseError` where none can be made.
    """
    try:
        _sweep(Path(tempfile.gettempdir()))
        folder, owner = _made()
    except OSError as error:
        raise CaseError(
            f"temporary files cannot be written ({error.strerror or error})",
            hint="free space there, or set TMPDIR to a folder on another disk",
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(owner)


def _made() -> tuple[Path, int]:
    """A folder and the lock on it.  Another ingest may take it for litter before it is locked: then the next one."""
    for _ in range(100):
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder / _OWNER, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            if _locks(handle) and (folder / _OWNER).exists():
                return folder, handle
            os.close(handle)
    raise OSError(0, "no folder stays")


def _locks(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(place: Path) -> None:
    """Remove the folders of ingests that are no more: nobody holds their lock."""
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            if not any(folder.iterdir()):
                folder.rmdir()
                continue
            if not (
                folder / _OWNER
            ).exists():  # its owner was killed while it removed the folder, or is at it
                shutil.rmtree(folder, ignore_errors=True)
                continue
            handle = os.open(folder / _OWNER, os.O_RDWR | os.O_CLOEXEC)
            try:
                if _locks(handle):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
