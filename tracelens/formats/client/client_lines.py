"""Lines of a client log side by side: what each says of a thing, whatever key it has for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracelens.formats.client.client_keys import NESTED, Place, Plan, plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Line:
    """One object of the file with the meaning of its keys."""

    values: Mapping[str, Any]
    plan: Plan

    def raw(self, thing: str) -> Any:
        """Return the value of a thing, None when the line has no key for it."""
        place = self.plan.places.get(thing)
        return None if place is None else self.values[place.key]

    @property
    def places(self) -> Mapping[str, Place]:
        """Where each thing stands."""
        return self.plan.places


def flat(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Put the keys of inner objects (``usage``, ``timings``) beside those of the line, which win."""
    inner = [values[key] for key in NESTED if isinstance(values.get(key), dict)]
    if not inner:
        return values
    merged: dict[str, Any] = {}
    for each in inner:
        merged |= each
    details = merged.pop("prompt_tokens_details", None)
    if isinstance(details, dict) and "cached_tokens" in details:
        merged["cached_tokens"] = details["cached_tokens"]
    return merged | {
        key: value for key, value in values.items() if key not in NESTED or not isinstance(value, dict)
    }


def line_of(values: Mapping[str, Any]) -> Line:
    """Find out what the keys of a line's object mean."""
    merged = flat(values)
    return Line(merged, plan(tuple(merged)))


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines, and which of them (places in `lines`) have the same keys.

    Most files have one set of keys, so a thing of all lines is one look-up and a pass over one key.
    """

    line_nos: Sequence[int]
    lines: Sequence[Line]
    groups: Sequence[tuple[Plan, Sequence[int]]]

    def raw(self, thing: str) -> list[Any]:
        """What each line says of a thing; None where it has no key for it."""
        column: list[Any] = [None] * len(self.lines)
        for each, places in self._with(thing):
            key, lines = each.key, self.lines
            for at in places:
                column[at] = lines[at].values[key]
        return column

    def units(self, thing: str) -> list[str | None]:
        """The unit that each line's key for a thing ends in."""
        column: list[str | None] = [None] * len(self.lines)
        for each, places in self._with(thing):
            for at in places if each.unit else ():
                column[at] = each.unit
        return column

    def lacks(self, thing: str) -> bool:
        """Whether no line has a key for a thing."""
        return not self._with(thing)

    def has(self, thing: str) -> list[bool]:
        """Whether each line has a key for a thing."""
        column = [False] * len(self.lines)
        for _, places in self._with(thing):
            for at in places:
                column[at] = True
        return column

    def _with(self, thing: str) -> Iterable[tuple[Place, Sequence[int]]]:
        """The place of a thing in each group that has one."""
        return [(each.places[thing], places) for each, places in self.groups if thing in each.places]


def lines_of(objects: Iterable[tuple[int, Mapping[str, Any]]]) -> tuple[Lines, list[int]]:
    """The lines that are requests, and the numbers of those that are none."""
    line_nos: list[int] = []
    lines: list[Line] = []
    others: list[int] = []
    groups: dict[tuple[str, ...], tuple[Plan, list[int]]] = {}
    for line_no, values in objects:
        merged = flat(values)
        keys = tuple(merged)
        found = groups.get(keys)
        if found is None:
            found = groups[keys] = plan(keys), []
        if not found[0].is_telling:
            others.append(line_no)
            continue
        found[1].append(len(lines))
        line_nos.append(line_no)
        lines.append(Line(merged, found[0]))
    return Lines(line_nos, lines, list(groups.values())), others
