"""The command ``browse``: pictures of any screen without a terminal, and what it refuses."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from click.testing import CliRunner

from tracelens.cli import cli


def browse(*args: object):
    return CliRunner().invoke(cli, ["browse", *map(str, args)])


def test_a_picture_of_a_request_is_svg_and_says_why_it_was_slow(demo_path, tmp_path) -> None:
    target = tmp_path / "request.svg"
    done = browse(
        "-c", demo_path, "--screen", "request", "--id", "chatcmpl-b_queue_dominated-1bea85931a95", "--size", "100x30",
        "--theme", "light", "--screenshot", target,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    words = " ".join("".join(ET.parse(target).getroot().itertext()).replace("\xa0", " ").split())
    assert "It waited 11.66 s in the queue" in words
    assert "#fcfcfa" in target.read_text()
    assert "#14171c" not in target.read_text()


def test_what_makes_no_sense_is_refused_with_a_hint(demo_path, tmp_path) -> None:
    for args, words in (
        (("--screenshot", tmp_path / "x.png"), ".svg or .txt"),
        (("--size", "big"), "no size"),
        (("--screen", "nowhere", "--screenshot", tmp_path / "x.svg"), "there is no screen"),
        (("--run", "nobody", "--screenshot", tmp_path / "x.svg"), "there is no run"),
        ((), "needs a terminal"),
    ):
        done = browse("-c", demo_path, *args)
        assert done.exit_code == 2
        assert words in done.stderr


def test_without_colours_letters_and_fills_still_say_it(demo_path, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    target = tmp_path / "plain.txt"
    assert browse("-c", demo_path, "--size", "100x30", "--screenshot", target).exit_code == 0
    text = target.read_text()
    assert "slowest NTSQ███" in text
    assert "● critical" in text
