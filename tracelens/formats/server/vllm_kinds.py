"""What kind of fact a record of a vLLM log holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from tracelens.formats.server import records
from tracelens.formats.server.rejoin import rejoin
from tracelens.formats.server.vllm_lines import LINE_FORMS
from tracelens.formats.server.vllm_samples import STATS_WHOLE

_BEGUN: Final = [place for place, form in enumerate(LINE_FORMS) if not form.contains]
"""Forms that the beginning of a message tells; no other form begins like one of them."""
_SEARCHED: Final = sorted({form.starts for form in LINE_FORMS if form.contains and form.starts})
_LED_STATS: Final = r"^[^\"'{]{0,80}?((?:Engine \d+: )?Avg prompt throughput: )"
"""A stats line behind what is left of a header, or one of another form."""
_COUNTED: Final = r"^\d+ Engines Aggregated: "


def kinds_of(read: pl.DataFrame, *, bare: bool) -> pl.DataFrame:
    """Add ``kind`` by the table of forms, the first row that fits wins; mend stats lines that were broken.

    Without a header only a whole stats line counts, unless the file is `bare`: has no headers at all.
    """
    said = pl.col("text").str.strip_chars("` ")
    said = said.str.replace(_LED_STATS, "${1}") if bare else said
    whole = records.without_repeat(read.with_columns(message=pl.col("message").fill_null(said)))
    mended = rejoin(whole.with_columns(kind=_by_form(whole)))
    is_bare = pl.col("level").is_null() & pl.col("kind").is_not_null()
    if not mended.select(is_bare.any()).item():
        return mended
    is_whole = pl.col("message").str.contains(STATS_WHOLE)
    is_stats = pl.col("kind") == "stats"
    counts = (~is_stats | is_whole) if bare else (is_stats & is_whole)
    return mended.with_columns(kind=pl.when(~is_bare | counts).then("kind"))


def _by_form(records: pl.DataFrame) -> pl.Series:
    """The kind of each message.  Only those are searched further in whose beginning says nothing or leaves that open.

    Places of the table until the end, since columns of text are slow to choose among.
    """
    message = pl.col("message")
    rows = records.select((~pl.col("is_quoted") & ~pl.col("is_access")).arg_true()).to_series()
    frame = records.select(message.gather(rows))
    is_open = pl.any_horizontal([message.str.starts_with(start) for start in _SEARCHED])
    place = frame.select(_first_that_fits(_BEGUN)).to_series()
    left = place.is_null().arg_true()
    left = left.filter(frame[left].select(is_open | message.str.contains(_COUNTED)).to_series())
    place = place.scatter(left, frame[left].select(_first_that_fits(range(len(LINE_FORMS)))).to_series())
    kinds = pl.Series([form.kind for form in LINE_FORMS]).gather(place)
    return pl.repeat(None, records.height, dtype=pl.String, eager=True).scatter(rows, kinds)


def _first_that_fits(places: Sequence[int]) -> pl.Expr:
    """The first of these places of the table whose form fits."""
    message = pl.col("message")
    found = pl.lit(None, pl.UInt32)
    for place in reversed(places):
        form = LINE_FORMS[place]
        fits = message.str.contains(form.begins) if form.begins else message.str.starts_with(form.starts)
        if form.contains:
            fits = fits & message.str.contains(form.contains, literal=True)
        found = pl.when(fits).then(pl.lit(place, pl.UInt32)).otherwise(found)
    return found
