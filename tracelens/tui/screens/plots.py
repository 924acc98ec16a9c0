"""What the plots share: a plot that fits its size, round ticks, short labels, colours as plotext takes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from textual.app import RenderResult
from textual.geometry import Size
from textual_plotext import PlotextPlot

LABEL: Final = 6
"""Columns of the labels left of a plot; always as many, so that its axis stands where the lanes' does."""
_STEPS: Final = (1.0, 2.0, 2.5, 5.0, 10.0)
_THOUSANDS: Final = 10_000


class Plot(PlotextPlot):
    """A plot that is drawn whenever it is painted: its ticks are those of the size it has then, not of an earlier one."""

    _drawing: Callable[[Any, Size], None] | None = None

    def fill(self, drawing: Callable[[Any, Size], None]) -> None:
        """Take what draws on an empty figure, told its size in columns and lines."""
        self._drawing = drawing
        self.refresh()

    def render(self) -> RenderResult:
        """The figure, drawn for the size it has."""
        if self._drawing is not None:
            self.plt.clear_figure()
            self._drawing(self.plt, self.size)
        return super().render()


def rgb(style: str) -> tuple[int, int, int]:
    """A colour of `ink.Ink` (``#14171c``)."""
    red, green, blue = (int(style[place : place + 2], 16) for place in (1, 3, 5))
    return red, green, blue


def round_ticks(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten between two ends, at most `most` of them."""
    least = (high - low) / max(most - 1, 1)
    if least <= 0 or not math.isfinite(least):
        return [low]
    power = 10.0 ** math.floor(math.log10(least))
    step = next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A tick's value, short: ``0.25``, ``1,500``, ``20k``."""
    if abs(value) >= _THOUSANDS:
        return f"{value / 1000:,.3g}k"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


def upright(plt: Any, high: float, lines: int) -> None:
    """The vertical axis from 0 to a little above `high`, for a plot of `lines` lines."""
    top = high * 1.02 if high > 0 else 1.0
    ticks = round_ticks(0.0, top, max(min(lines // 2, 6), 3))
    plt.ylim(0, top)
    plt.yticks(ticks, [f"{tick_text(tick):>{LABEL}}" for tick in ticks])
