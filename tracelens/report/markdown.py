"""A report as Markdown, for an issue or a wiki: the same content as the page, plots as text, nothing that a log says as markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tracelens import units
from tracelens.text.checks import prose
from tracelens.text.rows import marked

_TEMPLATES: Final = Path(__file__).parent / "templates"
_BAR_CHARS: Final = 60
MOST_ROWS: Final = 200
"""Files and settings beyond which a document only says how many more there are."""
_LEAST_SHARE: Final = 0.01
"""Share of the longest bar from which on a stage has at least one letter."""
_LEVELS: Final = " ▁▂▃▄▅▆▇█"
LIMIT_LETTERS: Final[Mapping[str | None, str]] = {
    "seats": "S", "kv": "K", "prefill": "P", "budget": "B", "deferred": "D", "stalled": "!", "unknown": "?",
}  # fmt: skip
"""What the queue waited for, a letter each."""


def markdown(document: Mapping[str, Any]) -> str:
    """The document as Markdown."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        prose=lambda text: prose(str(text)) if text is not None else "",
        marked=lambda text: marked(str(text)) if text is not None else units.UNKNOWN,
        duration=units.duration,
        percent=units.percent,
        count=units.count,
        number=units.number,
        file=lambda path: path.rpartition("/")[2],
        instant=lambda text: units.UNKNOWN if not text else text[:19].replace("T", " "),
        bar=_bar,
        spark=_spark,
    )
    return (
        environment.get_template("report.md.j2").render(
            report=document, limits=LIMIT_LETTERS, unknown=units.UNKNOWN, most_rows=MOST_ROWS
        )
        + "\n"
    )


def _bar(
    stages: Sequence[Mapping[str, Any]], key: str, longest: float | None, width: int = _BAR_CHARS
) -> str:
    """Letters of the stages, as many as their share of the longest bar."""
    if not longest:
        return ""
    return "".join(
        units.STAGE_LETTERS[stage["stage"]]
        * max(round(width * stage[key] / longest), stage[key] / longest > _LEAST_SHARE)
        for stage in stages
        if stage[key] is not None and stage[key] > 0
    )


def _spark(pieces: Sequence[Mapping[str, Any]], key: str) -> str:
    """A lane over time: eight heights up to its own largest value; a dot where nothing is known."""
    known = [piece[key] for piece in pieces if piece[key] is not None]
    top = max(known, default=0) or 1
    return "".join(
        "·" if piece[key] is None else _LEVELS[round((len(_LEVELS) - 1) * max(piece[key], 0) / top)]
        for piece in pieces
    )
