"""A shell script that records next time what these files do not show.

The script is put together from the fragments beside this module.  The first line of a fragment names the subjects of the view
`coverage` that it records (``# for: ...``); it is in the script where one of them is not observed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FRAGMENTS: Final = Path(__file__).parent
_COMMENT_CHARS: Final = 110
_FOR: Final = "# for:"
_CLIENT: Final = 'if [ "${1:-}" = client ]; then send_one "$2" "$3"; exit; fi\n'
_SAY: Final = 'echo "start the server with: ${server_arguments[*]}"\n'
CLOSED: Final = ("closed", "derived")
"""States of `coverage` that a recording would better."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of ``vllm serve``: `subject` is what it records, `note` what it gives and costs."""

    subject: str
    text: str
    note: str


def script(coverage: Iterable[Mapping[str, Any]], arguments: Sequence[Argument], version: str | None) -> str:
    """A commented bash script from the rows of `coverage`; empty where nothing is missing that can be recorded.

    `arguments` are those that the server's version knows; `version` is the one stated, None where none was.
    """
    closed = [row for row in coverage if row["state"] in CLOSED]
    missing = [row["subject"] for row in closed]
    asked = {row["server_subject"] for row in closed}
    parts = [(path, text) for path, text in _fragments() if _subjects(text) & set(missing)]
    if not parts:
        return ""
    named = [one for one in arguments if one.subject in asked]
    if not named:
        parts = [(path, text) for path, text in parts if path.stem != "10_server"]
    names = {path.stem for path, _ in parts}
    words = {
        "MISSING": _comment(name for name in missing if any(name in _subjects(text) for _, text in parts)),
        "VERSION": f" for vLLM {version}" if version else ", version of vLLM not known: the newest is meant",
        "NOTES": "\n".join(f"#   {one.text}\n#     {one.note}" for one in named),
        "ARGUMENTS": "\n".join(f"  {one.text}" for one in named),
        "CLIENT": _CLIENT if "50_client" in names else "",
        "SAY_ARGUMENTS": _SAY if "10_server" in names else "",
    }
    texts = [_text("00_begin"), *(_without_subjects(text) for _, text in parts), _text("90_end")]
    return "\n".join(_filled(text, words) for text in texts)


def _comment(names: Iterable[str]) -> str:
    return "\n#   ".join(textwrap.wrap(", ".join(names), _COMMENT_CHARS))


def _fragments() -> list[tuple[Path, str]]:
    paths = sorted(_FRAGMENTS.glob("*.sh"))
    texts = [(path, path.read_text(encoding="utf-8")) for path in paths]
    return [(path, text) for path, text in texts if text.startswith(_FOR)]


def _subjects(text: str) -> set[str]:
    first = text.partition("\n")[0].removeprefix(_FOR)
    return {name.strip() for name in first.split(",")}


def _without_subjects(text: str) -> str:
    return text.partition("\n")[2]


def _text(name: str) -> str:
    return (_FRAGMENTS / f"{name}.sh").read_text(encoding="utf-8")


def _filled(text: str, words: Mapping[str, str]) -> str:
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    return text
