"""Patterns matched once per distinct text: headers, parameters and access lines of a log repeat themselves."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def of_distinct(texts: pl.Series, said: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """What each of `said`, expressions over ``pl.col("text")``, gives for the texts, row by row; NULL for NULL."""
    known = pl.DataFrame({"text": texts.unique().drop_nulls()})
    if not known.height:
        return known.select(**said).clear(texts.len())
    found = known.select("text", **said)
    return (
        pl.DataFrame({"text": texts}).join(found, on="text", how="left", maintain_order="left").drop("text")
    )


def up_to(text: pl.Expr, end: pl.Expr) -> pl.Expr:
    """The first `end` bytes of a text, none of it where `end` is NULL; it must not lie inside a character."""
    return text.cast(pl.Binary).bin.slice(0, end.fill_null(0)).cast(pl.String)


def behind(text: pl.Expr, begin: pl.Expr) -> pl.Expr:
    """What stands from byte `begin` on, NULL where `begin` is; it must not lie inside a character."""
    return text.cast(pl.Binary).bin.slice(begin).cast(pl.String)
