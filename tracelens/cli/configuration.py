"""What the user keeps in files: thresholds under ``[set]``, and a folder of rules.

Read in this order, a later one over an earlier one: ``$XDG_CONFIG_HOME/tracelens/config.toml``, ``./tracelens.toml``, the
options of the command.  Rules of the user's own lie in ``$XDG_CONFIG_HOME/tracelens/rules``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tracelens.errors import UsageError

HERE: Final = Path("tracelens.toml")


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
    for path in (home() / "config.toml", HERE):
        if path.is_file():
            for key, value in _flat(_table(path)):
                values[key], origins[key] = value, str(path)
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or "." not in key:
            raise UsageError(f"--set {text!r} is no RULE.PARAM=VALUE")
        values[key.strip()], origins[key.strip()] = value.strip(), "--set"
    return values, origins


def _table(path: Path) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    unknown = sorted(set(document) - {"set"})
    if unknown or not isinstance(document.get("set", {}), dict):
        raise UsageError(f"{path}: {unknown[0] if unknown else 'set'!r}: only a table [set] is known")
    table: Mapping[str, Any] = document.get("set", {})
    return table


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested tables as dotted keys: ``queue.seats_exhausted.min_ratio = 0.9`` needs no quotes."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
