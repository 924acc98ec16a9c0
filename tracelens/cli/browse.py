"""``tracelens browse``: the terminal UI, or a picture of one of its screens."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

import click

from tracelens.cli.options import on_case, run_option
from tracelens.cli.reading import check_run, reading
from tracelens.cli.voice import VERBOSE, asked_for
from tracelens.errors import UsageError

_LEAST: Final = (40, 12)
_MOST: Final = 1000


class _Size(click.ParamType[tuple[int, int]]):
    name = "WxH"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """``160x45`` as columns and lines."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d{1,4})[x×](\d{1,4})", str(value))
        if found is None:
            self.fail(f"{value!r} is no size such as 160x45", param, ctx)
        wide, high = int(found[1]), int(found[2])
        if not (_LEAST[0] <= wide <= _MOST and _LEAST[1] <= high <= _MOST):
            self.fail(f"{value} is not between {_LEAST[0]}x{_LEAST[1]} and {_MOST}x{_MOST}", param, ctx)
        return wide, high


@click.command()
@click.option(
    "--screen",
    "screen",
    default="overview",
    show_default=True,
    metavar="NAME",
    help="The screen to open first.",
)
@click.option(
    "--id", "given", default="", metavar="ID", help="What that screen is opened on, such as a request's id."
)
@click.option(
    "--theme", type=click.Choice(["dark", "light"]), default="dark", show_default=True, help="Colours."
)
@click.option(
    "--screenshot", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write a picture (.svg, or .txt) and open no terminal.",
)  # fmt: skip
@click.option(
    "--size", type=_Size(), default="160x45", show_default=True, metavar="WxH", help="Size of that picture."
)
@run_option
@on_case
def browse(
    case_path: Path,
    run: str,
    screen: str,
    given: str,
    theme: str,
    screenshot: Path | None,
    size: tuple[int, int],
) -> None:
    """Look at a case on the terminal: from the verdict down to one request and its log lines.

    Keys stand in the last line of every screen, all of them under ?.

    \b
    Examples:
      tracelens browse
      tracelens browse --screen requests --run before
      tracelens browse --screen request --id chatcmpl-3f2a
      tracelens browse --screenshot overview.svg --size 160x45
    """
    # Textual draws on stderr.
    if screenshot is None and not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("browse needs a terminal", hint="--screenshot FILE.svg draws a screen without one")
    if screenshot is None and asked_for(VERBOSE):
        raise UsageError(
            "--verbose would write over the screen",
            hint="tracelens check --verbose tells the same steps; --screenshot FILE.svg goes with it",
        )
    if screenshot is not None and screenshot.suffix not in (".svg", ".txt"):
        raise UsageError(f"{screenshot}: a picture is .svg or .txt")
    with reading(case_path) as case:
        check_run(case, run)
        from tracelens.tui.app import Browser
        from tracelens.tui.registry import entry

        app = Browser(case, run=run, theme=theme, first=(entry(screen).name, given))
        if screenshot is not None:
            from tracelens.tui.picture import take_picture

            take_picture(app, size, screenshot)
        else:
            app.run()
