from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelens import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (-8.7e-8, "0 ms"),
        (0.000257, "257 µs"),
        (0.0037, "3.7 ms"),
        (0.0942, "94 ms"),
        (0.612, "612 ms"),
        (0.9996, "1.00 s"),
        (1.234, "1.23 s"),
        (12.0041, "12.00 s"),
        (99.96, "100 s"),
        (599.2, "599 s"),
        (948, "15 min 48 s"),
        (-0.05, "-50 ms"),
    ],
)
def test_a_duration_is_short_text(seconds: float | None, text: str) -> None:
    assert units.duration(seconds) == text


@given(st.floats(min_value=1e-5, max_value=1e5))
def test_a_duration_is_never_off_by_more_than_its_last_digit(seconds: float) -> None:
    amount, unit = units.duration(seconds).replace(",", "").rsplit(" ", 1)
    if "min" in amount:
        minutes, rest = amount.split(" min ")
        read = int(minutes) * 60 + int(rest)
    else:
        read = float(amount) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]
    assert abs(read - seconds) <= 0.05 * seconds + 0.5e-6


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(None, "–"), (0.0, "0 %"), (0.0081, "0.8 %"), (0.0997, "10 %"), (0.9712, "97 %"), (1.0, "100 %")],
)
def test_a_ratio_is_shown_in_per_cent(ratio: float | None, text: str) -> None:
    assert units.percent(ratio) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "–"), (0.0, "p0"), (95 / 96, "p98"), (0.99, "p99"), (0.9987, "p99.8")]
)
def test_a_rank_is_a_percentile_rounded_down(ratio: float | None, text: str) -> None:
    assert units.percentile(ratio) == text


@pytest.mark.parametrize(
    ("amount", "text"), [(None, "–"), (460, "460 B"), (14_541, "14.2 KiB"), (80 * 2**30, "80.0 GiB")]
)
def test_a_size_is_in_binary_units(amount: int | None, text: str) -> None:
    assert units.size(amount) == text
