"""The picture of a screen as SVG, so that every viewer puts the letters where the terminal has them."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

if TYPE_CHECKING:
    from tracelens.tui.app import Browser

_TEXT: Final = re.compile(
    r'(<text [^>]*?\bx=")([\d.]+)("[^>]*?\btextLength=")([\d.]+)("[^>]*>)([^<]*)(</text>)'
)
_BLANK: Final = "\xa0"


def svg_of(app: Browser) -> str:
    """The screen in front.  Some viewers drop the blanks that a text begins with: there the text begins after them."""
    return _TEXT.sub(_begun_later, app.export_screenshot(title="tracelens"))


def _begun_later(match: re.Match[str]) -> str:
    head, x, middle, length, rest, body, end = match.groups()
    text = html.unescape(body)
    shown = text.lstrip(_BLANK)
    if not shown.strip() or not cell_len(text):
        return ""
    blanks = len(text) - len(shown)
    cell = float(length) / cell_len(text)
    shown = shown.rstrip(_BLANK)
    return f"{head}{float(x) + blanks * cell:.1f}{middle}{cell_len(shown) * cell:.1f}{rest}{_escaped(shown)}{end}"


def _escaped(text: str) -> str:
    return html.escape(text).replace(_BLANK, "&#160;")
