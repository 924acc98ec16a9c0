"""What kind of fact a record of a vLLM log holds."""

from __future__ import annotations

import polars as pl

from tracelens.formats.server import records
from tracelens.formats.server.rejoin import rejoin
from tracelens.formats.server.vllm_lines import LINE_FORMS
from tracelens.formats.server.vllm_samples import STATS_WHOLE


def kinds_of(read: pl.DataFrame, *, bare: bool) -> pl.DataFrame:
    """Add ``kind`` by the table of forms, the first row that fits wins; mend stats lines that were broken.

    Without a header only a whole stats line counts, unless the file is `bare`: has no headers at all.
    """
    whole = records.without_repeat(read.with_columns(message=pl.col("message").fill_null(pl.col("text"))))
    kind = pl.lit(None, pl.String)
    for form in reversed(LINE_FORMS):
        fits = pl.col("message").str.starts_with(form.starts) if form.starts else pl.lit(True)
        if form.begins:
            fits = pl.col("message").str.contains(form.begins)
        if form.contains:
            fits = fits & pl.col("message").str.contains(form.contains, literal=True)
        kind = pl.when(fits).then(pl.lit(form.kind)).otherwise(kind)
    kind = pl.when(~pl.col("is_quoted")).then(kind)
    mended = rejoin(whole.with_columns(kind=kind))
    is_bare = pl.col("level").is_null() & pl.col("kind").is_not_null()
    if not mended.select(is_bare.any()).item():
        return mended
    is_whole = pl.col("message").str.contains(STATS_WHOLE)
    is_stats = pl.col("kind") == "stats"
    counts = (~is_stats | is_whole) if bare else (is_stats & is_whole)
    return mended.with_columns(kind=pl.when(~is_bare | counts).then("kind"))
