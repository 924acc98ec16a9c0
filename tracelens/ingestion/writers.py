"""A log into which several programs wrote, line by line: each of them is a source of its own.

``docker compose logs`` and ``kubectl logs --prefix`` put the name of a service or a pod before every line; log collectors write it into
each of their JSON records, logcli among its labels.  Two servers read as one would be one engine with the loads of both in turns;
a gateway's lines beside a server's would be lines not understood.  The numbers of lines stay those of the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from tracelens.formats.base import HEAD_LINES, Head

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

    def text(self, text: str) -> str:
        """The same of a text of whole lines."""
        lines = pl.DataFrame({"text": text.split("\n")}, schema={"text": pl.String})
        return "".join(line + "\n" for line in self.own(lines)["text"])


def form_of(head: Head) -> Form | None:
    """Where nearly all lines have a name, if they have."""
    texts = _texts(head)
    for form in _FORMS:
        if texts.len() and texts.str.contains(form.pattern).sum() >= _MOST * texts.len():
            return form
    return None


def are_several(head: Head) -> bool:
    """Whether the lines of a head have more than one name before them."""
    form = form_of(head)
    return form is not None and _texts(head).str.extract(form.pattern).drop_nulls().n_unique() > 1


def _texts(head: Head) -> pl.Series:
    return pl.Series([line for line in (*head.lines, *head.sampled) if line.strip()], dtype=pl.String)


def told_apart(chunks: Iterable[pl.DataFrame], form: Form) -> Iterator[tuple[Writer, Head]]:
    """Who wrote into a file, in the order in which they come, and the beginning of what each wrote; none where they are too many.

    `chunks` are ``line_no, text`` of the whole file: one program may have begun long after another.
    """
    counts: Counter[str] = Counter()
    first: dict[str, list[pl.DataFrame]] = {}
    for lines in chunks:
        named = lines.with_columns(name=pl.col("text").str.extract(form.pattern)).drop_nulls("name")
        for name, count in named["name"].value_counts().iter_rows():
            if counts[name] < HEAD_LINES:
                first.setdefault(name, []).append(
                    named.filter(pl.col("name") == name).head(HEAD_LINES - counts[name])
                )
            counts[name] += count
        if len(counts) > _WRITERS:
            return
    begun = sorted(first, key=lambda name: first[name][0]["line_no"][0])
    for name in begun:
        if counts[name] >= _LINES:
            writer = Writer(name, form)
            own = writer.own(pl.concat(first[name]))["text"]
            yield writer, Head(tuple(own), complete=counts[name] <= HEAD_LINES)


def leftover(first: Writer, found: Sequence[Writer]) -> Writer:
    """The first of some writers, with all lines that none of the others wrote."""
    return replace(first, others=tuple(one.name for one in found if one.name != first.name))
