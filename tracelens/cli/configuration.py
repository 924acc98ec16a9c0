"""What the user keeps in files: thresholds under ``[set]``, an SLO under ``[slo]``, and a folder of rules.

Read in this order, a later one over an earlier one: ``$XDG_CONFIG_HOME/tracelens/config.toml``, ``./tracelens.toml``, the
options of the command.  Rules of the user's own lie in ``$XDG_CONFIG_HOME/tracelens/rules``.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tracelens.errors import UsageError
from tracelens.slo import Slo, from_table, parse

HERE: Final = Path("tracelens.toml")
TABLES: Final = ("set", "slo")
_KNOWN: Final = " and ".join(f"[{name}]" for name in TABLES)


def home() -> Path:
    """The user's folder for tracelens."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "tracelens"


def rule_folders(given: Sequence[Path]) -> list[Path]:
    """The user's folder of rules, where there is one, then those given."""
    own = home() / "rules"
    return [*([own] if own.is_dir() else ()), *given]


def settings(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Values by ``RULE.PARAM``, and where each was set; raises `UsageError` for what cannot be understood."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for path, table in _tables("set"):
        for key, value in _flat(table):
            values[key], origins[key] = value, str(path)
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or "." not in key:
            raise UsageError(
                f"--set {text!r} is no RULE.PARAM=VALUE",
                hint="such as: --set queue.seats_exhausted.min_ratio=0.9; tracelens rules show RULE lists its parameters",
            )
        values[key.strip()], origins[key.strip()] = value.strip(), "--set"
    return values, origins


def place_of(message: str, origins: Mapping[str, str]) -> str:
    """``FILE:LINE: `` of the setting that an error names, where it stands in a file."""
    for key, origin in origins.items():
        if origin != "--set" and key in message:
            return f"{origin}:{_line_of(Path(origin), key)}: "
    return ""


def _line_of(path: Path, key: str) -> int:
    """The line in which a key, or its last part, is set."""
    wanted = re.compile(rf"""^\s*(?:[\w.\[\]"'-]*[.\["'])?{re.escape(key.rpartition(".")[2])}["']?\s*=""")
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(lines, 1) if wanted.search(line)), 1)


def slo_of(text: str | None) -> Slo:
    """The SLO of the option, else of the nearest file that has one; raises `UsageError`."""
    if text is not None:
        return parse(text)
    found = Slo()
    for path, table in _tables("slo"):
        try:
            found = from_table(table) if table else found
        except UsageError as error:
            key = next((key for key in table if key in str(error)), "")
            raise UsageError(f"{path}:{_line_of(path, key)}: {error}", hint=error.hint) from error
    return found


def _tables(name: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """A table of each file that there is, the user's own first."""
    for path in (home() / "config.toml", HERE):
        if path.is_file():
            yield path, _document(path)[name]


def _document(path: Path) -> dict[str, Mapping[str, Any]]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    for key, table in document.items():
        if key not in TABLES or not isinstance(table, dict):
            nearest = difflib.get_close_matches(key, TABLES, 1)
            hint = f"did you mean [{nearest[0]}]?" if nearest and key not in TABLES else ""
            raise UsageError(
                f"{path}:{_table_line(path, key)}: {key!r}: only the tables {_KNOWN} are known", hint=hint
            )
    return {name: document.get(name, {}) for name in TABLES}


def _table_line(path: Path, key: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    begins = re.compile(rf"""^\s*\[?\s*["']?{re.escape(key)}\b""")
    return next((number for number, line in enumerate(lines, 1) if begins.search(line)), 1)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested tables as dotted keys: ``queue.seats_exhausted.min_ratio = 0.9`` needs no quotes."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
