"""Fingerprints of prompts: which ones begin alike, and which say the same further on, with no word of them kept.

As vLLM's prefix cache does (``hash_block_tokens``: hash of the parent's hash and the block's tokens), a prompt is cut into
blocks from its beginning and each block's hash goes on from the one before: two prompts have the same n-th link where their
first n blocks are the same.  Blocks have 64 characters of the text as the file has it, or 16 token ids where a log lists ids
only.  Beside that, each passage (what stands between line ends and full stops) has a hash of its own, whatever stands before
it: that shows prompts that say the same after a difference.

All hashes are keyed with a random number that belongs to the case, so no list of known prompts can be held against them
without the case.  Only whole blocks count, at most `MAX_BLOCKS` of a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import polars as pl

BLOCK_CHARS: Final = 64
BLOCK_TOKENS: Final = 16
MAX_BLOCKS: Final = 256
MAX_PASSAGES: Final = 256
_LEAST_PASSAGE: Final = 24
"""Bytes from which on a passage is long enough not to be the same by chance."""
_STEP: Final = 6364136223846793005
"""An odd multiplier: a link is the one before times this, plus the keyed hash of its block, modulo 2^64."""
_MODULUS: Final = 2**64
_CHARACTER_BLOCK: Final = rf"(?s:.){{{BLOCK_CHARS}}}"
_TOKEN_BLOCK: Final = rf"(?:\d+, ?){{{BLOCK_TOKENS - 1}}}\d+"

SCHEMA: Final[dict[str, Any]] = {
    "line_no": pl.Int64,
    "request_id": pl.String,
    "unit": pl.String,
    "block_length": pl.Int64,
    "prompt_length": pl.Int64,
    "chain": pl.List(pl.UInt64),
    "passage": pl.List(pl.UInt64),
}


def fingerprints(prompts: Iterable[tuple[int, str | None, str | None]], key: int) -> pl.DataFrame:
    """Rows of `prompt_block` from line numbers, names of requests and prompts as they were sent (None gives no row)."""
    rows = [each for each in prompts if each[2]]
    schema = {"line_no": pl.Int64, "request_id": pl.String, "text": pl.String}
    written = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        # As logs write a line end, so that one rule cuts the passages of all.
        pl.col("text").str.replace_all("\n", "\\n", literal=True),
        ids=pl.lit(None, pl.String),
    )
    return prompt_blocks(written, key)


def prompt_blocks(prompts: pl.DataFrame, key: int) -> pl.DataFrame:
    """Rows of `prompt_block` from ``line_no, request_id, text, ids``; a prompt with neither text nor ids gives none."""
    has_text = pl.col("text").str.len_bytes() > 0
    texts = _chained(prompts.filter(has_text), "characters", key)
    listed = prompts.filter(has_text.fill_null(value=False).not_() & pl.col("ids").str.contains(r"\d"))
    return pl.concat([texts, _chained(listed, "tokens", key)]).sort("line_no", maintain_order=True)


def _chained(prompts: pl.DataFrame, unit: str, key: int) -> pl.DataFrame:
    if not prompts.height:
        return pl.DataFrame(schema=SCHEMA)
    characters = unit == "characters"
    length = pl.col("text").str.len_chars() if characters else pl.col("ids").str.count_matches(r"\d+")
    sized = prompts.with_row_index("row").with_columns(prompt_length=length.cast(pl.Int64))
    hashed = (_text_blocks(sized) if characters else _id_blocks(sized)).with_columns(
        pl.col("block").hash(key)
    )
    links = hashed.select("row", link=_link()).group_by("row", maintain_order=True).agg(chain="link")
    passages = _passages(sized, key) if characters else sized.select("row", passage=None)
    joined = sized.join(links, on="row", how="left", maintain_order="left").join(
        passages, on="row", how="left", maintain_order="left"
    )
    return joined.select(
        "line_no",
        "request_id",
        unit=pl.lit(unit),
        block_length=pl.lit(BLOCK_CHARS if characters else BLOCK_TOKENS, pl.Int64),
        prompt_length="prompt_length",
        chain=pl.col("chain").fill_null([]),
        passage=pl.col("passage").fill_null([]) if characters else pl.lit(None, pl.List(pl.UInt64)),
    )


def _text_blocks(prompts: pl.DataFrame) -> pl.DataFrame:
    """Whole blocks of the texts (``row, place, block``).

    Where every character is one byte, blocks are cut by bytes, in a fraction of the time, and have the same hashes.
    """
    if (prompts["text"].str.len_bytes() != prompts["prompt_length"]).any():
        return _listed(prompts, pl.col("text").str.extract_all(_CHARACTER_BLOCK))
    count = (pl.col("prompt_length") // BLOCK_CHARS).clip(upper_bound=MAX_BLOCKS)
    places = prompts.select("row", "text", place=pl.int_ranges(count)).filter(_count_of("place") > 0)
    block = pl.col("text").cast(pl.Binary).bin.slice(pl.col("place") * BLOCK_CHARS, BLOCK_CHARS)
    return places.explode("place").select("row", "place", block=block)


def _id_blocks(prompts: pl.DataFrame) -> pl.DataFrame:
    bare = pl.col("ids").str.replace_all(" ", "", literal=True)
    return _listed(prompts, bare.str.extract_all(_TOKEN_BLOCK))


def _listed(prompts: pl.DataFrame, blocks: pl.Expr) -> pl.DataFrame:
    listed = prompts.select("row", block=blocks.list.head(MAX_BLOCKS)).filter(_count_of("block") > 0)
    return listed.with_columns(place=pl.int_ranges(_count_of("block"))).explode("block", "place")


def _count_of(name: str) -> pl.Expr:
    """Length of the lists of a column."""
    return pl.col(name).list.len().cast(pl.Int64)


def _link() -> pl.Expr:
    """Each prompt's chain, for all prompts at once (``row, place, block``; block is the hash).

    The n-th link is the sum of ``hash_k * STEP^(n - k)`` over the blocks up to it.  That is ``STEP^n`` times a running sum of
    ``hash_k * STEP^-k``, less what the sum was before the prompt: modulo 2^64 an odd number has an inverse.
    """
    place = pl.col("place")
    part = pl.col("block") * pl.lit(_powers(pow(_STEP, -1, _MODULUS))).gather(place)
    before = pl.when(place == 0).then(part.cum_sum() - part).forward_fill()
    return (part.cum_sum() - before) * pl.lit(_powers(_STEP)).gather(place)


def _powers(base: int) -> pl.Series:
    return pl.Series([pow(base, exponent, _MODULUS) for exponent in range(MAX_BLOCKS)], dtype=pl.UInt64)


def _passages(prompts: pl.DataFrame, key: int) -> pl.DataFrame:
    """Hashes of the passages of each text, in order, each on its own; repr and JSON write a line end as backslash n."""
    lines = prompts.select("row", pl.col("text").str.split("\\n")).explode("text")
    cut = lines.with_columns(pl.col("text").str.split(". ")).explode("text")
    long = cut.filter(pl.col("text").str.len_bytes() >= _LEAST_PASSAGE)
    hashed = long.select("row", passage=pl.col("text").hash(key))
    return hashed.group_by("row", maintain_order=True).agg(pl.col("passage").head(MAX_PASSAGES))
