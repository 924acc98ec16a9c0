"""The edge between commands and the shell: errors become messages and exit codes here, and nowhere else."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Final

import click

from tracelens.cli.output import note
from tracelens.cli.voice import DEBUG, asked_for
from tracelens.errors import TracelensError

INTERRUPTED: Final = 130
FAILED: Final = 3


class Edge(click.Group):
    """A group whose commands may raise `TracelensError`.  Lists its commands in the order of use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order in which they were added."""
        return list(self.commands)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and exit: 0 fine, 1 with findings, 2 usage, 3 failed, 130 interrupted."""
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            note("interrupted")
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run one command; what goes wrong in it is told in a sentence."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _silence()
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:  # noqa: BLE001 - the outermost edge: no traceback unless asked for
            if asked_for(DEBUG):
                traceback.print_exc()
            ctx.exit(_told(error))


def _told(error: Exception) -> int:
    """Print an error with its hint; returns the exit code."""
    if isinstance(error, TracelensError):
        note(f"error: {error}")
        if error.hint:
            note(f"hint: {error.hint}")
        return error.exit_code
    if isinstance(error, OSError):
        note(f"error: {error}")
        return FAILED
    note(f"error: {type(error).__name__}: {error}")
    note("hint: this is a fault of tracelens; please report it with what --debug shows")
    return FAILED


def _silence() -> None:
    """The reader has gone (head, a closed pager): nothing more to write, and nothing to complain about."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
