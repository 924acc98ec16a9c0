"""What all screens have in common: questions in threads, the keys that work everywhere, the way back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType

from tracelens.named import spelled
from tracelens.tui.asking import Asking
from tracelens.tui.chrome import Crumbs, Keys
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.marks import Mark


class View(Asking):
    """A screen of the case.  Below it: `compose_body` (its parts), `load` (what they ask), `title_text`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", key_display="/"),
        Binding("f", "filter", "filter"),
        Binding("o", "order", "order"),
        Binding("s", "show_sql", "SQL"),
        Binding("y", "copy", "copy"),
        Binding("e", "export", "export"),
        Binding("m", "mark", "mark"),
        Binding("a", "annotate", "note"),
        Binding("f5", "reload", "read again", show=False),
    ]
    AUTO_FOCUS = ""
    filters: ClassVar[bool] = False
    """Whether ``f`` does anything here."""
    orders: ClassVar[bool] = False
    """Whether ``o`` does anything here."""
    moves: ClassVar[tuple[tuple[str, str], ...]] = (
        ("↑ ↓  PgUp PgDn  Home End", "move the cursor; ← → show further columns"),
    )
    """Keys that move about in it, for the page of keys."""
    opens_first: ClassVar[bool] = False
    """Whether the keys to other screens come before those of search, copy and export in the last line."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (130, "-wide")]  # noqa: RUF012 - as Textual declares it
    NAME: ClassVar[str] = ""
    """Its name in `registry.SCREENS`."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded = False

    # Below: what a screen is made of --------------------------------------------------------------------------------

    def compose_body(self) -> Iterable[Widget]:
        """The parts, from top to bottom."""
        raise NotImplementedError

    def load(self) -> None:
        """Ask for everything; called when it is opened, when the run changes and by F5."""
        raise NotImplementedError

    def title_text(self) -> str:
        """Its place in the way at the top."""
        raise NotImplementedError

    def marked(self) -> Mark | None:
        """What ``m`` marks here: a request or a finding; None where there is nothing to mark."""
        return None

    # Around: what every screen does the same way --------------------------------------------------------------------

    @property
    def run_id(self) -> str:
        """The run that is looked at."""
        return self.browser.run_id

    def compose(self) -> ComposeResult:
        """First line, parts, last line."""
        yield Crumbs()
        yield from self.compose_body()
        yield Keys()

    def on_screen_resume(self) -> None:
        """Ask for what it shows when it is first in front; draw the way and the keys, which may have changed."""
        if self.app.screen is not self:
            return
        if not self._loaded:
            self._loaded = True
            self.load()
        self.show_way()
        self.call_after_refresh(self.show_keys)

    def on_descendant_focus(self) -> None:
        """Another part, other keys."""
        self.show_keys()

    def show_way(self) -> None:
        """Draw the first line again."""
        self.query_one(Crumbs).show(self.browser.way(), self.browser.span)

    def show_keys(self) -> None:
        """Draw the last line again."""
        found = self.query(Keys)
        if found:
            found.first().show(self.keys())

    def all_answered(self) -> None:
        """What there is now may have other keys."""
        self.show_keys()

    def keys(self) -> tuple[tuple[str, str], ...]:
        """Keys that work now, with what each does: those of the focused part first, then the screen's, then everywhere's."""
        shown: dict[str, str] = {}
        own = {one.action for one in type(self).__dict__.get("BINDINGS", []) if isinstance(one, Binding)}
        ranked = sorted(self.active_bindings.items(), key=lambda pair: self._rank_of(pair[1], own))
        for key, active in ranked:
            if active.binding.show and active.enabled and active.binding.description:
                shown.setdefault(active.binding.description, self.app.get_key_display(active.binding) or key)
        return tuple((key, label) for label, key in shown.items())

    def _rank_of(self, active: ActiveBinding, own: set[str]) -> int:
        """Keys of the focused part first, then the screen's own, those of all screens, the app's."""
        if active.node is self.app:
            action = active.binding.action
            if self.opens_first and action == "choose_run":
                return 1
            return 2 if self.opens_first and action.startswith("open_screen") else 4
        if active.node is not self:
            return 0
        return 1 if active.binding.action in own else 3

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do nothing here are not shown."""
        can = {
            "filter": self.filters,
            "order": self.orders,
            "mark": self.marked() is not None if self.is_mounted else False,
            "annotate": self.marked() is not None if self.is_mounted else False,
        }
        return can.get(action, True)

    # Keys ---------------------------------------------------------------------------------------------------------------

    def main_part(self) -> Pane | Rows | None:
        """The part that ``s``, ``y`` and ``e`` are about: the focused one, else the first that asked."""
        if isinstance(self.focused, Pane | Rows) and self.focused.asked is not None:
            return self.focused
        parts = [part for part in self.query("Pane, Rows") if isinstance(part, Pane | Rows)]
        return next((part for part in parts if part.asked is not None), parts[0] if parts else None)

    def action_reload(self) -> None:
        """Read everything again."""
        self.load()

    def action_search(self) -> None:
        """Look for a request by its id or a part of it."""
        self.browser.search()

    def action_filter(self) -> None:
        """Choose rows; screens with ``filters`` do."""

    def action_order(self) -> None:
        """Order rows; screens with ``orders`` do."""

    def action_show_sql(self) -> None:
        """The query behind the focused part, in the SQL screen."""
        part = self.main_part()
        if part is None or part.asked is None:
            self.notify("no query stands behind this part", severity="warning")
            return
        text = spelled(part.asked.name, part.asked.params)
        self.browser.open("sql", part.asked.narrow.around(text) if part.asked.narrow is not None else text)

    def copied_text(self) -> str:
        """What ``y`` copies: the focused row, or the text of the focused part."""
        part = self.main_part()
        return part.plain_text() if part is not None else ""

    def action_copy(self) -> None:
        """Copy to the clipboard, through ssh and tmux too, and into a file."""
        self.browser.outbox.copy(self.copied_text())

    def action_export(self) -> None:
        """Write what the focused part asked, or a picture of the screen, into a file."""
        part = self.main_part()
        self.browser.outbox.export(part.asked if part is not None else None, self.NAME)

    def action_mark(self) -> None:
        """Mark this request or finding, or take the mark away."""
        mark = self.marked()
        if mark is not None:
            self.browser.marks.toggle(mark)

    def action_annotate(self) -> None:
        """Note something on this request or finding."""
        mark = self.marked()
        if mark is not None:
            self.browser.marks.annotate(mark)

    def marks_changed(self) -> None:
        """A mark was made or taken away; screens that show marks draw them again."""
        self.show_keys()

    def redraw(self) -> None:
        """Draw everything again, for another theme."""
        self.show_way()
        self.show_keys()
        for part in self.query("Pane, Rows"):
            part.redraw()  # type: ignore[attr-defined]
