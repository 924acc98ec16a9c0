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
_LONG_S: Final = 100.0
_MINUTES_S: Final = 600.0
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB")
_KIBI: Final = 1024
_SURE_PERCENT: Final = 10


def duration(seconds: float | None) -> str:
    """Seconds as ``948 s``, ``12.00 s``, ``94 ms``, ``3.7 ms`` or ``257 µs``; from ten minutes on ``15 min 48 s``."""
    if seconds is None:
        return UNKNOWN
    size = abs(seconds)
    if size < _MICROSECOND:
        return "0 ms"
    if size >= _MINUTES_S:
        minutes, rest = divmod(round(size), 60)
        return f"{'-' if seconds < 0 else ''}{minutes:,} min {rest} s"
    if size >= 0.9995:
        return f"{seconds:.0f} s" if size >= _LONG_S else f"{seconds:.2f} s"
    return _below_a_second(seconds)


def _below_a_second(seconds: float) -> str:
    size = abs(seconds)
    if size >= 0.00995:
        return f"{seconds * 1e3:.0f} ms"
    return f"{seconds * 1e3:.1f} ms" if size >= 0.0009995 else f"{seconds * 1e6:.0f} µs"


def error(seconds: float | None) -> str:
    """Half-width of an interval as ``± 9 ms``; empty where it is 0 or not known."""
    return f"± {duration(seconds)}" if seconds is not None and seconds >= _MICROSECOND else ""


def percent(ratio: float | None) -> str:
    """A share of 1 as ``97 %``, ``0.8 %``."""
    if ratio is None:
        return UNKNOWN
    value = ratio * 100
    if abs(value) < 0.05:
        return "0 %"
    return f"{value:.1f} %" if abs(value) < _SURE_PERCENT else f"{value:.0f} %"


def percentile(ratio: float | None) -> str:
    """The share of the others that are shorter, as a percentile: ``p99``, ``p99.8``."""
    if ratio is None:
        return UNKNOWN
    value = ratio * 100
    text = f"{int(value * 10) / 10:.1f}" if value > 99 else f"{int(value + 1e-9)}"
    return f"p{text.removesuffix('.0')}"


def count(number: float | None) -> str:
    """A whole number with thousands set apart: ``1,234``."""
    return UNKNOWN if number is None else f"{number:,.0f}"


def number(value: float | None) -> str:
    """A number of no known unit, four digits of it: ``13.2``, ``515``."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= _LONG_S or value == int(value) else f"{value:.3g}"


def size(size_bytes: float | None) -> str:
    """Bytes as ``460 B``, ``14.2 KiB``, ``3.1 GiB``."""
    if size_bytes is None:
        return UNKNOWN
    amount, unit = float(size_bytes), 0
    while abs(amount) >= _KIBI and unit < len(_SIZES) - 1:
        amount, unit = amount / _KIBI, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {_SIZES[unit]}"


def plural(number: int, one: str, many: str = "") -> str:
    """``1 line``, ``2 lines``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
