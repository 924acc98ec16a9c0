"""When the chunks of one streamed answer arrived, in the forms in which client logs have them.

Forms: a list of arrivals with a list of kinds beside it; a list of ``[t, kind]``, ``[t, kind, text]`` or ``[t, text]``; a
list of objects with ``t`` (or ``at``, ``ts``, ``time``, ``offset``), ``kind`` (or ``type``) and ``text`` (or ``content``); a
list of gaps.  Kinds are the letters of `client_stream.chunk_kind` or words for them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tracelens.formats.base import Clock
from tracelens.formats.client.client_keys import Place, snake, split_unit
from tracelens.formats.json_lines import number
from tracelens.formats.stamps import LARGEST, PER_SECOND, instant, instant_on, is_epoch, to_us, unit_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

UNSAID: Final = "?"
LETTERS: Final = "rctefukDE?"


def _letter(char: str) -> str:
    return char if char in LETTERS else UNSAID


_CONTENT: Final = re.compile("[ct]")
_TO_LETTERS: Final = {code: _letter(chr(code)) for code in range(128)}

WORDS: Final[Mapping[str, str]] = {
    "role": "r",
    **dict.fromkeys(("content", "text", "token", "delta", "tool", "tool_call", "tool_calls"), "c"),
    **dict.fromkeys(("reasoning", "reasoning_content", "thinking"), "t"),
    "empty": "e",
    **dict.fromkeys(("finish", "finish_reason", "stop"), "f"),
    "usage": "u",
    **dict.fromkeys(("keep_alive", "keepalive", "ping", "comment", "heartbeat"), "k"),
    **dict.fromkeys(("done", "[done]", "end"), "D"),
    "error": "E",
}
"""Words for kinds of chunks, in snake_case.  A tool call is content."""

_NUMBER_LIST: Final = pl.List(pl.Float64)
_TIME_KEYS: Final = ("t", "at", "ts", "time", "timestamp", "offset", "arrived_at", "received_at")
_KIND_KEYS: Final = ("kind", "type", "event")
_TEXT_KEYS: Final = ("text", "content", "delta", "token")


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of one stream: their times as the line has them, `kinds` (a letter each), the text if it has any.

    ``times[i] * scale_s`` is seconds: since the send where `clock` is None, else on that clock (UTC and LOCAL: since 1970).
    """

    times: list[Any]
    kinds: str
    scale_s: float
    clock: Clock | None
    text: str | None = None

    @property
    def kinds_known(self) -> bool:
        """Whether the line says what its chunks are."""
        return self.kinds.count(UNSAID) < len(self.kinds)

    @property
    def content_count(self) -> int:
        """Chunks with text, reasoning or a tool call; all of them where nobody said what they are."""
        return self.kinds.count("c") + self.kinds.count("t") if self.kinds_known else len(self.kinds)

    def first_role(self) -> int | None:
        """Place of the role-only chunk."""
        return _place(self.kinds.find("r"))

    def first_content(self) -> int | None:
        """Place of the first chunk with content."""
        if not self.kinds_known:
            return _place(self.kinds.find(UNSAID))
        found = _CONTENT.search(self.kinds)
        return None if found is None else found.start()

    def last_content(self, output_tokens: int | None) -> int | None:
        """Place of the last chunk with content.

        vLLM sends the last token with the finish message (measured on 0.9.1 and 0.32: without it, every stream is
        one token short), so that message counts when the others cannot have held all the tokens.
        """
        finish = self.kinds.rfind("f")
        if (
            finish >= 0
            and output_tokens is not None
            and self.content_count + self.kinds.count("e") < output_tokens
        ):
            return finish
        if not self.kinds_known:
            return _place(self.kinds.rfind(UNSAID))
        return _place(max(self.kinds.rfind("c"), self.kinds.rfind("t")))

    def seconds_at(self, place: int | None) -> float | None:
        """Time of one chunk in seconds, zero as the class says."""
        value = None if place is None else self.times[place]
        if value is None:
            return None
        return float(value) if self.scale_s == 1.0 else value * self.scale_s


def _place(found: int) -> int | None:
    return found if found >= 0 else None


def letter_of(kind: Any) -> str | None:
    """Return a kind's letter, None when it is not a word for one."""
    if not isinstance(kind, str):
        return None
    return kind if len(kind) == 1 and kind in LETTERS else WORDS.get(snake(kind))


def chunks_of(line: Mapping[str, Any], places: Mapping[str, Place], since_send: bool) -> Chunks | None:
    """Find the chunks of a line; `since_send`: times that are no epochs count from the send, not from the file's zero."""
    kinds = line[places["chunk_kinds"].key] if "chunk_kinds" in places else None
    for thing in ("chunk_instants", "chunk_offsets", "chunks"):
        place = places.get(thing)
        if place is None or not isinstance(line[place.key], list) or not line[place.key]:
            continue
        return _from_list(line[place.key], place.unit, kinds, since_send or thing == "chunk_offsets")
    return None


def _from_list(entries: list[Any], unit: str | None, kinds: Any, since_send: bool) -> Chunks | None:
    text = None
    if isinstance(entries[0], list):
        entries, kinds, text = _from_pairs(entries)
    elif isinstance(entries[0], dict):
        entries, unit, kinds, text = _from_objects(entries, unit)
    times, unit, clock = _numbers(entries, unit)
    first = next((value for value in times if value is not None), None)
    if first is None or abs(first) > LARGEST:
        return None
    unit = unit_of(first, unit)
    if not is_epoch(to_us(first, unit)):
        own = None if since_send else Clock.RELATIVE
        return Chunks(times, _letters(kinds, len(times)), 1.0 / PER_SECOND[unit], own, text)
    return Chunks(times, _letters(kinds, len(times)), 1.0 / PER_SECOND[unit], clock, text)


def _numbers(entries: list[Any], unit: str | None) -> tuple[list[Any], str | None, Clock]:
    """Return times as numbers, ISO texts as microseconds; and what both count from.

    Where a number begins the list the rest is left as it is: `number_lists` looks at all lists at once.
    """
    if type(entries[0]) in (float, int):
        return entries, unit, Clock.UTC
    if isinstance(entries[0], str) and number(entries[0]) is None:
        stamp = instant(entries[0])
        clock = stamp[1] if stamp is not None else Clock.UTC
        return [instant_on(clock, entry) for entry in entries], "us", clock
    return [number(entry) for entry in entries], unit, Clock.UTC


def _letters(kinds: Any, chunk_count: int) -> str:
    """One letter per chunk; nothing is known when there are more or fewer kinds than chunks."""
    if not isinstance(kinds, str | list) or len(kinds) != chunk_count:
        return UNSAID * chunk_count
    if isinstance(kinds, str):
        return kinds.translate(_TO_LETTERS) if kinds.isascii() else "".join(map(_letter, kinds))
    return "".join(letter_of(kind) or UNSAID for kind in kinds)


def number_lists(lists: Sequence[list[Any] | None]) -> pl.Series:
    """Lists of times as numbers; what is none is NULL.

    Polars refuses what is no number but takes true for 1 and false for 0: where one of these is a time, the entries are
    looked at one by one.
    """
    try:
        found = pl.Series(lists, dtype=_NUMBER_LIST, strict=True)
    except (TypeError, OverflowError):
        return _looked_at(lists)
    return _looked_at(lists) if found.explode().is_in([0.0, 1.0]).any() else found


def _looked_at(lists: Sequence[list[Any] | None]) -> pl.Series:
    known = [None if each is None else list(map(number, each)) for each in lists]
    return pl.Series(known, dtype=_NUMBER_LIST, strict=True)


def _from_pairs(entries: list[Any]) -> tuple[list[Any], list[str], str | None]:
    """``[t, kind, text]``, ``[t, kind]`` or ``[t, text]``: two entries are kinds where most are words for one."""
    rows = [entry if isinstance(entry, list) and entry else [None] for entry in entries]
    second = [row[1] if len(row) > 1 else None for row in rows]
    has_kinds = sum(letter_of(value) is not None for value in second) * 2 >= len(rows)
    at = 2 if has_kinds else 1
    texts = [row[at] if len(row) > at and isinstance(row[at], str) else None for row in rows]
    return ([row[0] for row in rows], *_described(second if has_kinds else [None] * len(rows), texts))


def _from_objects(
    entries: list[Any], unit: str | None
) -> tuple[list[Any], str | None, list[str], str | None]:
    rows = [
        {snake(key): value for key, value in entry.items()} if isinstance(entry, dict) else {}
        for entry in entries
    ]
    time_key = next((key for key in rows[0] if split_unit(key)[0] in _TIME_KEYS), "")
    stated = split_unit(time_key)[1] or unit
    kinds = [next((row[key] for key in _KIND_KEYS if key in row), None) for row in rows]
    texts = [next((row[key] for key in _TEXT_KEYS if isinstance(row.get(key), str)), None) for row in rows]
    return ([row.get(time_key) for row in rows], stated, *_described(kinds, texts))


def _described(kinds: list[Any], texts: list[str | None]) -> tuple[list[str], str | None]:
    """Letters and the joined text.  A chunk whose content is an empty text is empty."""
    letters = [_with_text(letter_of(kind), text) for kind, text in zip(kinds, texts, strict=True)]
    said = [text for letter, text in zip(letters, texts, strict=True) if text and letter in "ct"]
    return letters, "".join(said) or None


def _with_text(letter: str | None, text: str | None) -> str:
    if text is None:
        return letter or UNSAID
    if letter is None:
        return "c" if text else "e"
    return "e" if letter in "ct" and not text else letter
