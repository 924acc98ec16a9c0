"""A report as one HTML file that opens without a network: styles, scripts and data are inside, and nothing else may load.

Every text goes through Jinja's autoescaping and `clean`, so nothing that a log says can act.  A content security policy allows the two scripts
of this package by their hashes and forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import tracelens
from tracelens import units
from tracelens.compare import Comparison, signed
from tracelens.report.markdown import LIMIT_LETTERS, MOST_ROWS
from tracelens.text.terminal import clean

_HERE: Final = Path(__file__).parent
_SCRIPTS: Final = ("uPlot.iife.min.js", "report.js")
_STYLES: Final = ("uPlot.min.css", "report.css")
_CAPS: Final = {"most_findings": 30, "most_rows": MOST_ROWS, "most_rules": 500}
"""Rows beyond which a page only says how many more there are, or where to ask for them."""
_DRAWN: Final = ("waiting_count", "running_count", "kv_cache_usage_ratio", "sm_ratio", "generation_tps")
"""What the timeline draws; without any of it there is no plot."""
_PLOTTED: Final[Mapping[str, Sequence[str]]] = {
    "timeline": ("from_ts", "to_ts", *_DRAWN),
    "length_points": ("input_tokens", "ttft_s"),
    "curve": ("slope_s_per_1k_tokens", "slope_low_s", "intercept_s"),
}
"""Columns that the scripts read."""
_DAY: Final = 10


def page(document: Mapping[str, Any]) -> str:
    """The document as HTML."""
    return _render("report.html", {"report": document, "data": _data(document)})


def comparison_page(found: Comparison) -> str:
    """A comparison as HTML."""
    values = {
        "found": found,
        "changes": found.listed,
        "signed": signed,
        "version": tracelens.__version__,
        "data": Markup("[]"),
    }
    return _render("comparison.html", values)


def _render(name: str, values: Mapping[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update(
        duration=units.duration,
        percent=units.percent,
        count=units.count,
        number=units.number,
        error=units.error,
        instant=_instant,
        span=_span,
        known_count=_known_count,
        file=lambda path: path.rpartition("/")[2],
    )
    environment.globals.update(
        letters=units.STAGE_LETTERS, unknown=units.UNKNOWN, drawn=_DRAWN, limits=LIMIT_LETTERS, **_CAPS
    )
    scripts = [_asset(name) for name in _SCRIPTS]
    styles = [_asset(name) for name in _STYLES]
    text = environment.get_template(f"{name}.j2").render(
        **values,
        scripts=scripts,
        styles=styles,
        policy=_policy(scripts),
    )
    return text + "\n"


def _shown(value: Any) -> Any:
    """What stands for a value in the page: no control or bidi characters, and nothing for None."""
    if isinstance(value, Markup):
        return value
    return "" if value is None else clean(value) if isinstance(value, str) else value


def _instant(text: str | None) -> str:
    """``2026-11-29 12:46:54`` of an instant of the document."""
    return units.UNKNOWN if not text else text[:19].replace("T", " ")


def _span(ends: Sequence[str | None]) -> str:
    """Two instants; the day of the second one only where it is another day."""
    first, last = map(_instant, ends)
    return f"{first} – {last[_DAY + 1 :] if first[:_DAY] == last[:_DAY] else last}"


def _known_count(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> int:
    """How many rows know any of these."""
    return sum(any(row[key] is not None for key in keys) for row in rows)


def _asset(name: str) -> Markup:
    return Markup((_HERE / "assets" / name).read_text(encoding="utf-8"))


def _policy(scripts: list[Markup]) -> str:
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}; base-uri 'none'; form-action 'none'"


def _data(document: Mapping[str, Any]) -> Markup:
    """What the plots need, numbers and instants alone, as JSON in which no ``<`` can end the element that holds it."""
    wanted = [
        {key: [{name: row[name] for name in names} for row in run[key]] for key, names in _PLOTTED.items()}
        for run in document["runs"]
    ]
    text = orjson.dumps(wanted).decode()
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)
