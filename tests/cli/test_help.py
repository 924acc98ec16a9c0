"""Help texts: every command shows how it is used, and each example is one that the command understands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tracelens.cli import cli


def commands(command: click.Command, *names: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command of the tree, with the words that call it."""
    yield names, command
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, *names, name)


TREE = dict(commands(cli))


def examples(names: tuple[str, ...]) -> list[str]:
    """The lines of a command's section of examples, as the help shows them on a narrow terminal too."""
    shown = CliRunner().invoke(cli, [*names, "--help"], terminal_width=60).output
    section = re.search(r"^  Examples:\n((?:    \S.*\n)+)", shown, re.MULTILINE)
    return [re.split(r"\s{2,}", line.strip())[0] for line in section[1].splitlines()] if section else []


def arguments(line: str) -> list[str]:
    """What tracelens is given in a line of a shell."""
    words = shlex.split(line)
    if "|" in words:
        words = words[words.index("|") + 1 :]
    if ">" in words:
        words = words[: words.index(">")]
    assert words[0] == "tracelens", line
    return words[1:]


def understood(args: list[str]) -> tuple[str, ...]:
    """The words of the command that a command line calls; click refuses what it does not understand."""
    command, names = cli, ()
    context = click.Context(cli, info_name="tracelens")
    while isinstance(command, click.Group):
        rest = command.make_parser(context).parse_args(list(args))[1]
        if not rest:
            return names
        name, inner, args = command.resolve_command(context, rest)
        command, names = inner, (*names, name)
        context = click.Context(inner, info_name=name, parent=context)
    with command.make_context(names[-1], args, parent=context.parent):
        return names


def test_the_tree_is_whole() -> None:
    assert len(TREE) >= 22
    assert ("rules", "show") in TREE


@pytest.mark.parametrize("names", TREE, ids=" ".join)
def test_every_command_has_examples_that_it_understands(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_rules").mkdir()
    (tmp_path / "question.sql").write_text("SELECT 1")
    lines = examples(names)
    assert lines
    for line in lines:
        assert understood(arguments(line))[: len(names)] == names, line


@pytest.mark.parametrize(
    "line", ["tracelens check --fail-onn info", "tracelens slowest --by luck", "tracelens frobnicate"]
)
def test_an_example_that_rots_would_be_found(line: str) -> None:
    with pytest.raises(click.UsageError):
        understood(arguments(line))


@pytest.mark.parametrize("names", TREE, ids=" ".join)
def test_every_option_and_command_says_what_it_is_for(names: tuple[str, ...]) -> None:
    command = TREE[names]
    assert command.help
    assert command.get_short_help_str(200)
    for param in command.params:
        assert not isinstance(param, click.Option) or param.help, param.name
    if not names:
        return
    assert {"--quiet", "--verbose", "--debug"} <= {text for param in command.params for text in param.opts}


def test_examples_of_reports_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: Path) -> None:
    """Those that only read the case, in a folder of their own; requests and runs of the examples are not in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACELENS_CASE", str(case))
    ran = 0
    for names in (("slowest",), ("query",), ("sql",), ("schema",), ("formats", "show"), ("rules", "list")):
        (tmp_path / "my_rules").mkdir(exist_ok=True)
        (tmp_path / "question.sql").write_text("SELECT 1")
        for line in examples(names):
            if "run=" not in line and "--run" not in line and "|" not in line:
                result = CliRunner().invoke(cli, arguments(line))
                assert result.exit_code == 0, (line, result.output)
                ran += 1
    assert ran >= 10
