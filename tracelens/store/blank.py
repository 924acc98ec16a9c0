"""An empty case, kept from one ingest to the next: it is made of nine hundred statements, most of the work of a small ingest.

One lies in ``$XDG_CACHE_HOME/tracelens/`` (``~/.cache``), its owner's alone, behind a key of all that it is made of.  It is
packed, since a damaged one then does not unpack.  Where none is to be had, a case is made from the statements, and kept if it
can be.  Removing the file is safe at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb

from tracelens.store.allowance import WRITER_SETTINGS
from tracelens.store.keeping import make_case
from tracelens.store.reader import Store
from tracelens.store.schema import schema_version

_NAME: Final = "empty_case"
_QUICK: Final = 1


def place_blank(path: Path) -> None:
    """Write an empty case to a place where no file is; raises `OSError` or `duckdb.Error` where that cannot be done."""
    blank = _kept()
    if blank is not None:
        path.write_bytes(blank)
        return
    with duckdb.connect(str(path), config=dict(WRITER_SETTINGS)) as connection:
        make_case(connection)
    _keep(path.read_bytes())


@contextlib.contextmanager
def blank_case() -> Iterator[Store]:
    """An empty case to read from, for what the schema alone tells."""
    with TemporaryDirectory(prefix="tracelens-") as folder:
        path = Path(folder) / "case.duckdb"
        place_blank(path)
        with Store(path) as case:
            yield case


def _folder() -> Path:
    """Raises `RuntimeError` for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tracelens"


def _key() -> bytes:
    """Changes with the tables and views, with the code that makes them, and with the DuckDB that stores them."""
    digest = hashlib.sha256(f"{duckdb.__version__} {schema_version()}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.digest()


def _kept() -> bytes | None:
    """The kept one, where there is one of this version, whole, and nobody else's."""
    with contextlib.suppress(OSError, RuntimeError, zlib.error), (_folder() / _NAME).open("rb") as file:
        key = _key()
        if os.fstat(file.fileno()).st_uid == os.getuid() and file.read(len(key)) == key:
            return zlib.decompress(file.read())
    return None


def _keep(blank: bytes) -> None:
    """Put one in the place of the kept one in a single step, where that is possible.

    Whoever is killed meanwhile leaves one file, which the next one writes over; two at once write the same.
    """
    with contextlib.suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(0o700, parents=True, exist_ok=True)
        new = folder / f"{_NAME}.new"
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_key() + zlib.compress(blank, _QUICK))
        new.replace(folder / _NAME)
