from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelens.text.bars import Piece, lengths
from tracelens.text.terminal import clean, columns, pad, shorten, wrap


@given(st.text())
def test_nothing_that_acts_on_a_terminal_is_left(text: str) -> None:
    left = {unicodedata.category(mark) for mark in clean(text)}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(clean(text)) & set(
        "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb", "a\\nb"),
        ("\u202eabc", "\\u202eabc"),
        ("\x9b2J", "\\x9b2J"),
        ("größe 長い", "größe 長い"),
    ],
)
def test_what_acts_is_shown_as_its_code(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(
    st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"])),
    st.integers(1, 40),
    st.booleans(),
)
def test_a_shortened_text_fits_and_a_padded_one_is_exact(text: str, limit: int, middle: bool) -> None:
    short = shorten(text, limit, middle=middle)
    assert columns(short) <= limit
    assert columns(pad(short, limit)) == limit


def test_an_id_is_shortened_in_its_middle() -> None:
    assert shorten("chatcmpl-b_queue_dominated-552454f14fab", 14, middle=True) == "chatc…54f14fab"


def test_a_wide_character_takes_two_columns() -> None:
    assert columns("長い") == 4


@given(st.lists(st.text("abc", min_size=1, max_size=8), min_size=1), st.integers(8, 30))
def test_wrapped_text_loses_no_word_and_fits(words: list[str], limit: int) -> None:
    lines = wrap(" ".join(words), limit)
    assert " ".join(lines).split(" ") == words
    assert all(columns(line) <= limit for line in lines)


def test_a_word_longer_than_a_line_is_broken_and_nothing_of_it_lost() -> None:
    assert wrap("(--enable-logging-iteration-details)", 14) == [
        "(--enable-logg",
        "ing-iteration-",
        "details)",
    ]


@given(st.lists(st.none() | st.floats(0, 1e4), min_size=1, max_size=8), st.integers(8, 120))
def test_a_bar_has_its_width_and_a_cell_for_every_stage_that_took_time(
    seconds: list[float | None], width: int
) -> None:
    pieces = [Piece("Q", amount) for amount in seconds]
    cells = lengths(pieces, width)
    took_time = [amount is not None and amount >= 1e-6 for amount in seconds]
    assert [cell > 0 for cell in cells] == took_time
    assert sum(cells) == (width if any(took_time) else 0)
