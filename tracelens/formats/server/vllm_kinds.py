"""What kind of fact a record of a vLLM log holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from tracelens.formats.server import records
from tracelens.formats.server.rejoin import rejoin
from tracelens.formats.server.vllm_lines import LINE_FORMS, LineForm
from tracelens.formats.server.vllm_samples import STATS_WHOLE

_BEGUN: Final = [form for form in LINE_FORMS if not form.contains]
"""Forms that the beginning of a message tells."""
_SEARCHED: Final = sorted({form.starts for form in LINE_FORMS if form.contains and form.starts})
_COUNTED: Final = r"^\d+ Engines Aggregated: "


def kinds_of(read: pl.DataFrame, *, bare: bool) -> pl.DataFrame:
    """Add ``kind`` by the table of forms, the first row that fits wins; mend stats lines that were broken.

    Without a header only a whole stats line counts, unless the file is `bare`: has no headers at all.
    """
    whole = records.without_repeat(read.with_columns(message=pl.col("message").fill_null(pl.col("text"))))
    kind = pl.when(~pl.col("is_quoted")).then(_by_form(whole["message"]))
    mended = rejoin(whole.with_columns(kind=kind))
    is_bare = pl.col("level").is_null() & pl.col("kind").is_not_null()
    if not mended.select(is_bare.any()).item():
        return mended
    is_whole = pl.col("message").str.contains(STATS_WHOLE)
    is_stats = pl.col("kind") == "stats"
    counts = (~is_stats | is_whole) if bare else (is_stats & is_whole)
    return mended.with_columns(kind=pl.when(~is_bare | counts).then("kind"))


def _by_form(messages: pl.Series) -> pl.Series:
    """The kind of each message.  Only those are searched further in whose beginning leaves that open."""
    message = pl.col("message")
    frame = messages.to_frame("message")
    is_open = pl.any_horizontal([message.str.starts_with(start) for start in _SEARCHED])
    mask = frame.select(is_open | message.str.contains(_COUNTED)).to_series().fill_null(value=False)
    kinds = frame.select(kind=_first_that_fits(_BEGUN)).to_series()
    searched = frame.filter(mask).select(kind=_first_that_fits(LINE_FORMS)).to_series()
    return kinds.scatter(mask.arg_true(), searched)


def _first_that_fits(forms: Sequence[LineForm]) -> pl.Expr:
    """The kind by the first form that fits; numbers until the end, since columns of text are slow to choose among."""
    message = pl.col("message")
    place = pl.lit(None, pl.UInt32)
    for index, form in reversed(list(enumerate(forms))):
        fits = message.str.contains(form.begins) if form.begins else message.str.starts_with(form.starts)
        if form.contains:
            fits = fits & message.str.contains(form.contains, literal=True)
        place = pl.when(fits).then(pl.lit(index, pl.UInt32)).otherwise(place)
    return pl.lit(pl.Series([form.kind for form in forms])).gather(place)
