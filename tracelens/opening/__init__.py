"""From what a user names to streams of bytes: folders, globs, standard input, compressed files and bundles.

Compression and archives are recognised by their first bytes, never by the name.  Archive members are read where
they are; nothing is unpacked onto the disk, and links inside an archive are not followed.
"""

from __future__ import annotations

import contextlib
import glob
import io
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Final

from tracelens.opening.archives import hidden, is_tar, is_zip, piped, tar_members, zip_members
from tracelens.opening.exports import PEEKED_BYTES
from tracelens.opening.inputs import Input, Unreadable
from tracelens.opening.replay import Replayed, read_up_to
from tracelens.opening.streams import READ_ERRORS, Counted, is_changed, unpacked

__all__ = [
    "READ_ERRORS",
    "SKIPPED_SUFFIXES",
    "Input",
    "Replayed",
    "Unreadable",
    "expand",
    "located",
    "read_up_to",
    "unfolded",
]

_SHELL_PIPES: Final = ("/dev/fd/", "/proc/self/fd/")
SKIPPED_SUFFIXES: Final = (".duckdb", ".duckdb.wal", ".partial")


def _piped(open_pipe: Callable[[], IO[bytes]], label: str, *, closes: bool) -> Input:
    """What comes out of a pipe, decompressed; it can be opened once."""

    def opened() -> IO[bytes]:
        counted = Counted(open_pipe(), closes=closes)
        return unpacked(io.BufferedReader(counted), label, lambda: counted.count, contextlib.ExitStack())

    return Input(label, None, opened)


def _opener(path: Path, size: int) -> Callable[[], IO[bytes]]:
    return lambda: unpacked(path.open("rb"), str(path), size, contextlib.ExitStack())


def _file(path: Path) -> Iterator[Input | Unreadable]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            yield _no_file(path, status.st_mode)
            return
        with path.open("rb") as stream:
            magic = stream.read(PEEKED_BYTES)
    except OSError as error:
        yield Unreadable(str(path), error.strerror or str(error))
        return
    opener = _opener(path, status.st_size)
    if is_zip(magic):
        yield from zip_members(path, status.st_mtime)
    elif is_tar(opener):
        yield from tar_members(path, opener, status.st_mtime)
    else:
        compressed = is_changed(magic)
        yield Input(str(path), status.st_size, opener, path, status.st_mtime, compressed)


def _no_file(path: Path, mode: int) -> Input | Unreadable:
    """A pipe that the shell made, as of ``<(zcat x.gz)``, is read; other pipes might never end, devices never do."""
    if stat.S_ISFIFO(mode):
        if str(path).startswith(_SHELL_PIPES):
            return _piped(lambda: path.open("rb"), str(path), closes=True)
        return Unreadable(str(path), f"a named pipe; read it with: tracelens ingest - < {path}")
    kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
    return Unreadable(str(path), f"{kind}, not a file")


def _folder(path: Path) -> Iterator[Input | Unreadable]:
    entries = [
        entry
        for entry in sorted(path.rglob("*"))
        if not (_is_folder(entry) or hidden(entry.relative_to(path)) or entry.name.endswith(SKIPPED_SUFFIXES))
    ]
    if not entries:
        yield Unreadable(str(path), "no files in this folder")
    for entry in entries:
        yield from _file(entry)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _stdin() -> Iterator[Input]:
    yield _piped(lambda: sys.stdin.buffer, "-", closes=False)


def _named(name: str) -> Iterator[Input | Unreadable]:
    try:
        yield from _found(name)
    except OSError as error:  # a folder on the way that may not be entered, a name that is too long
        yield Unreadable(name, error.strerror or str(error))


def _found(name: str) -> Iterator[Input | Unreadable]:
    path = Path(name)
    if name == "-":
        yield from _stdin()
    elif path.is_dir():
        yield from _folder(path)
    elif path.exists():
        yield from _file(path)
    else:
        found = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []  # noqa: PTH207 - absolute and relative alike
        if not found:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, ValueError):
                path.stat()  # a name that is too long: from Python 3.14 on `exists` does not tell
            yield Unreadable(name, "no such file or folder")
        for match in found:
            yield from _named(match)


def located(label: str, folder: Path = Path()) -> Input | Unreadable:
    """What `Input.label` said once, found again: a file, or a member of an archive; a relative one is looked for in `folder`.

    Of what one of several writers wrote (``compose.log!vllm-1``) it is the file, with the file's own label.
    """
    ends = [place for place, char in enumerate(label) if char == "!"]
    for end in (len(label), *reversed(ends)):
        path = folder / label[:end]
        if path.is_file():
            members = {str(one.label): one for one in _named(str(path))}
            wanted = f"{path}{label[end:]}"
            one = members.get(wanted)
            if one is not None:
                return replace(one, label=label)
            of = max((name for name in members if wanted.startswith(f"{name}!")), key=len, default=None)
            if of is not None and isinstance(members[of], Input):
                return replace(members[of], label=label[: len(of) - len(wanted)])
    return Unreadable(
        label,
        "a stream, which cannot be read twice" if label.split("!", maxsplit=1)[0] == "-" else "no such file",
    )


def expand(names: list[str]) -> Iterator[Input | Unreadable]:
    """Every stream behind the names, in a stable order; a file named twice comes once."""
    seen: set[str] = set()
    for name in names:
        for found in _named(name):
            key = str(found.path.resolve()) if isinstance(found, Input) and found.path else found.label
            if key not in seen:
                seen.add(key)
                yield found


def unfolded(found: Iterable[Input | Unreadable]) -> Iterator[Input | Unreadable]:
    """The same, with the members of a tar that comes out of a pipe in the pipe's place.

    Such a member must be read before the next one is asked for.
    """
    for one in found:
        if isinstance(one, Input) and one.size_bytes is None:
            yield from piped(one)
        else:
            yield one
