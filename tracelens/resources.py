"""Where the files that travel with the package are: in the wheel, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent


def _packaged_or_checkout(packaged: str, checkout: str) -> Path:
    inside = _PACKAGE / packaged
    return inside if inside.is_dir() else _PACKAGE.parent / checkout


def schemas() -> Path:
    """Folder of the DDL (``tables/``, ``views/``) and of the JSON Schemas (``inputs/``)."""
    return _packaged_or_checkout("schemas", "schemas")


def queries() -> Path:
    """Folder of the named queries."""
    return _PACKAGE / "queries"


def rules() -> Path:
    """Folder of the rules that come with tracelens."""
    return _PACKAGE / "rules"


def loading() -> Path:
    """Folder of the SQL that ingest runs once the facts of a file are in."""
    return _PACKAGE / "loading"


def sample_logs() -> Path:
    """Folder of the samples: one folder per format, and whole incidents."""
    return _packaged_or_checkout("sample_logs", "sample_logs")


def demo_incident() -> Path:
    """Folder of the bundled incident that ``tracelens demo`` reads."""
    return sample_logs() / "incidents" / "seats_exhausted"
