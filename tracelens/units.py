"""Numbers as short text for people, and the letters of the stages.  Milliseconds exist here and nowhere else.

Every function takes None for "not known" and gives `UNKNOWN` for it, never a 0.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "–"
"""What stands for a value that is not known."""

STAGE_LETTERS: Final = {
    "client_wait": "w",
    "network_in": "N",
    "tokenize": "T",
    "step_wait": "S",
    "unaccounted": "?",
    "queue": "Q",
    "kv_alloc": "K",
    "prefill": "P",
    "sample": "s",
    "stream_out": "O",
    "decode": "D",
}
"""One letter per stage, in the order in which screens list them; no stage is told by its colour alone."""

_MICROSECOND: Final = 1e-6
_DURATIONS: Final = (
    (99.95, 1.0, ".0f", "s"),
    (0.9995, 1.0, ".2f", "s"),
    (0.00995, 1e3, ".0f", "ms"),
    (0.0009995, 1e3, ".1f", "ms"),
    (_MICROSECOND, 1e6, ".0f", "µs"),
)
"""From how many seconds on: factor, digits, unit.  The limits round up into the unit that follows."""
_MINUTES_S: Final = 600.0
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_KIBI: Final = 1024
_FULL_NUMBERS: Final = 100.0
_FULL_PERCENT: Final = 9.95
_NO_PERCENT: Final = 0.05
_FINE_PERCENTILE: Final = 99.0


def duration(seconds: float | None) -> str:
    """Seconds as ``948 s``, ``12.00 s``, ``94 ms``, ``3.7 ms`` or ``257 µs``; from ten minutes on ``15 min 48 s``."""
    if seconds is None:
        return UNKNOWN
    if abs(seconds) >= _MINUTES_S:
        minutes, rest = divmod(round(abs(seconds)), 60)
        return f"{'-' if seconds < 0 else ''}{minutes:,} min {rest} s"
    for limit, factor, digits, unit in _DURATIONS:
        if abs(seconds) >= limit:
            return f"{seconds * factor:{digits}} {unit}"
    return "0 ms"


def error(seconds: float | None) -> str:
    """Half-width of an interval as ``± 9 ms``; empty where it is 0 or not known."""
    return f"± {duration(seconds)}" if seconds is not None and seconds >= _MICROSECOND else ""


def percent(ratio: float | None) -> str:
    """A share of 1 as ``97 %``, ``0.8 %``."""
    if ratio is None:
        return UNKNOWN
    value = ratio * 100
    if abs(value) < _NO_PERCENT:
        return "0 %"
    return f"{value:.1f} %" if abs(value) < _FULL_PERCENT else f"{value:.0f} %"


def percentile(ratio: float | None) -> str:
    """The share of the others that are shorter, as a percentile: ``p99``, ``p99.8``."""
    if ratio is None:
        return UNKNOWN
    value = ratio * 100
    text = f"{int(value * 10) / 10:.1f}" if value > _FINE_PERCENTILE else f"{int(value)}"
    return f"p{text.removesuffix('.0')}"


def count(number: float | None) -> str:
    """A whole number with thousands set apart: ``1,234``."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def number(value: float | None) -> str:
    """A number of no known unit, four digits of it: ``13.2``, ``515``."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= _FULL_NUMBERS or value == int(value) else f"{value:.3g}"


def size(size_bytes: float | None) -> str:
    """Bytes as ``460 B``, ``14.2 KiB``, ``3.1 GiB``."""
    if size_bytes is None:
        return UNKNOWN
    amount, unit = float(size_bytes), 0
    while abs(amount) >= _KIBI and unit < len(_SIZES) - 1:
        amount, unit = amount / _KIBI, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {_SIZES[unit]}"


def kind_of_number(kind: type) -> str:
    """What a value of a type is called in a sentence."""
    return {int: "whole number", float: "number", str: "text"}.get(kind, kind.__name__)


def plural(number: int, one: str, many: str = "") -> str:
    """``1 line``, ``2 lines``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def spoken(name: str, value: object) -> str:
    """A value as a sentence says it, by the unit in its name (``_s``, ``_ratio``, ``_tps``, ``_count``)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNKNOWN if value is None else str(value)
    if name.endswith("_s"):
        return duration(value)
    if name.endswith("_ratio"):
        return percent(value)
    return f"{number(value)} tokens/s" if name.endswith("_tps") else number(value)
