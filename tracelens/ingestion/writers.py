"""A log into which several programs wrote, line by line: each of them is a source of its own.

``docker compose logs`` and ``kubectl logs --prefix`` put the name of a service or a pod before every line; log collectors write it into
each of their JSON records, logcli among its labels.  Two servers read as one would be one engine with the loads of both in turns;
a gateway's lines beside a server's would be lines not understood.  The numbers of lines stay those of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from tracelens.formats.base import Head

_COLOURS: Final = r"^(?:\x1b\[[0-9;]*m)*"


@dataclass(frozen=True, slots=True)
class Form:
    """Where a line has its writer's name; `stands_before` the line, or is a part of it, which stays."""

    pattern: str
    stands_before: bool = True


_FORMS: Final = (
    # docker compose logs, docker service logs; kubectl logs --prefix
    Form(_COLOURS + r"([A-Za-z][\w.-]*(?:@[\w.-]+)?) *\| ?(?:\x1b\[[0-9;]*m)*"),
    Form(_COLOURS + r"\[(pod/[^\]\s]+)\] (?:\x1b\[[0-9;]*m)*"),
    # Fluent Bit, Vector, Promtail, gcloud and others: one record a line; logcli of Grafana Loki
    Form(r'^\{.*"(?:(?:k8s[._]|kubernetes[._])?pod(?:[._]?[nN]ame)?)": ?"([^"\\]+)"', stands_before=False),
    Form(r'^\S+ +\{[^{}]*\b(?:k8s_)?pod(?:_name)?="([^"\\]+)"[^{}]*\}', stands_before=False),
)
_MOST: Final = 0.8
"""The share of the lines that must have a name before them."""
_WRITERS: Final = 64
_LINES: Final = 2
"""Lines that a writer has at least: a word before a bar can be anything."""


@dataclass(frozen=True, slots=True)
class Writer:
    """One of several writers of a log: the lines that begin with its `name` in the place where `form` has it.

    With `others`, the names of those that are sources beside it, all lines that none of them wrote are its own too.
    """

    name: str
    form: Form
    others: tuple[str, ...] | None = None

    @property
    def label(self) -> str:
        """The name as it stands behind that of the file: ``pod/vllm-0/server`` is no folder."""
        return self.name.removeprefix("pod/").replace("/", ".")

    def own(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Of ``line_no, text`` those that are its own, without the name."""
        writer = pl.col("text").str.extract(self.form.pattern)
        mine = (writer == self.name).fill_null(value=False)
        wanted = mine if self.others is None else ~writer.is_in(self.others).fill_null(value=False)
        if not self.form.stands_before:
            return lines.filter(wanted)
        bare = pl.when(mine).then(pl.col("text").str.replace(self.form.pattern, "")).otherwise("text")
        return lines.filter(wanted).with_columns(bare.alias("text"))

    def head(self, head: Head) -> Head:
        """The part of a head that is its own."""
        return replace(head, lines=self._own(head.lines), sampled=self._own(head.sampled))

    def text(self, text: str) -> str:
        """The same of a text of whole lines."""
        return "".join(line + "\n" for line in self._own(text.split("\n")))

    def _own(self, texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(self.own(pl.DataFrame({"text": texts}, schema={"text": pl.String}))["text"])


def writers(head: Head) -> list[Writer]:
    """Those whose names stand before the lines, in the order in which they come; none where it is one, or where they are too many."""
    texts = pl.Series([line for line in (*head.lines, *head.sampled) if line.strip()], dtype=pl.String)
    for form in _FORMS:
        names = texts.str.extract(form.pattern).drop_nulls()
        if texts.len() and names.len() >= _MOST * texts.len():
            counts = Counter(names)
            found = [name for name, count in counts.items() if count >= _LINES]
            return [Writer(name, form) for name in found] if 1 < len(found) <= _WRITERS else []
    return []


def leftover(first: Writer, found: Sequence[Writer]) -> Writer:
    """The first of some writers, with all lines that none of the others wrote."""
    return replace(first, others=tuple(one.name for one in found if one.name != first.name))
