"""A table of any length with a cursor: rows come in pages, as they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from tracelens.tui.cols import ARROWS, Col, Placed, Row, heading, layout, row_line
from tracelens.tui.ink import Ink, ink_of
from tracelens.tui.pane import Asked, message, trouble

PAGE: Final = 200
_PAGES_KEPT: Final = 12
_FAR: Final = 10_000  # lines, more than a page has


class Rows(ScrollView, can_focus=True):
    """Rows of one query.  Asks for a page by `Needed`, says that a row was opened by `Opened`."""

    DEFAULT_CSS = """
    Rows { height: 1fr; overflow-x: hidden; }
    Rows.-auto { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "up", show=False),
        Binding("down,j", "step(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown,space", "page(1)", "page down", show=False),
        Binding("home", "to(0)", "first", show=False),
        Binding("end", "to(-1)", "last", show=False),
        Binding("left", "shift(-1)", "columns left", show=False),
        Binding("right", "shift(1)", "columns right", show=False),
        Binding("enter", "open", "open"),
    ]

    class Needed(Message):
        """Rows from `offset` on are in view and not there."""

        def __init__(self, rows: Rows, offset: int, limit: int) -> None:
            super().__init__()
            self.rows = rows
            self.offset = offset
            self.limit = limit

    class Opened(Message):
        """The row under the cursor was opened."""

        def __init__(self, rows: Rows, row: Row) -> None:
            super().__init__()
            self.rows = rows
            self.row = row

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, rows: Rows, row: Row | None) -> None:
            super().__init__()
            self.rows = rows
            self.row = row

    def __init__(
        self, reads: str, cols: Sequence[Col], *, name: str = "", auto: bool = False, head: bool = True
    ) -> None:
        super().__init__(id=name or None, classes="-auto" if auto else None)
        self.asked: Asked | None = None
        self.reads = reads
        self.cols = tuple(cols)
        self.count = 0
        self.cursor = 0
        self.ordered_by = ""
        self._has_head = head
        self._first_col = 1
        self._pages: dict[int, list[Row]] = {}
        self._wanted: int | None = None
        self._say: tuple[list[str], str] | None = ([f"reading {reads} …"], "dim")

    # What it shows -----------------------------------------------------------------------------------------------

    def waiting(self) -> None:
        """Say that it is being read."""
        self._told([f"reading {self.reads} …"], "dim")

    def stopped(self) -> None:
        """Say that it was stopped by the user."""
        self._told([f"{self.reads}: stopped (F5 reads it again)"], "dim")

    def fail(self, error: BaseException) -> None:
        """Show an error in place."""
        self._told(trouble(error), "bad")

    def empty(self, *sentences: str) -> None:
        """Say what is missing."""
        self._told(list(sentences), "dim")

    def _told(self, lines: list[str], style: str) -> None:
        self._say = (lines, style)
        self._pages, self._wanted, self.count = {}, None, 0
        self._resized()

    def set_rows(self, rows: Sequence[Row], *, cursor: int = 0) -> None:
        """Show rows that are all there."""
        self.begin(len(rows), cursor=cursor)
        for page in range(0, len(rows), PAGE):
            self.give(page, rows[page : page + PAGE])

    def begin(self, count: int, *, cursor: int = 0) -> None:
        """Show `count` rows, which come in pages."""
        self._say = None
        self._pages, self._wanted, self.count = {}, None, count
        self.cursor = max(min(cursor, count - 1), 0)
        self._resized()
        if not self.has_class("-auto"):
            self._into_view()

    def give(self, offset: int, rows: Sequence[Row]) -> None:
        """A page of rows, asked for by `Needed`."""
        page = offset // PAGE
        self._wanted = None
        self._pages.pop(page, None)
        self._pages[page] = list(rows)
        if self.count > PAGE * _PAGES_KEPT:
            for old in list(self._pages)[: len(self._pages) - _PAGES_KEPT]:
                del self._pages[old]
        self.refresh()
        if self.cursor // PAGE == page:
            self.post_message(self.Moved(self, self.row))

    @property
    def row(self) -> Row | None:
        """The row under the cursor, where it is there."""
        return self._row(self.cursor)

    def all_rows(self) -> list[Row]:
        """The rows that are there."""
        return [row for page in sorted(self._pages) for row in self._pages[page]]

    def _row(self, index: int) -> Row | None:
        page = self._pages.get(index // PAGE, [])
        place = index % PAGE
        return page[place] if 0 <= index < self.count and place < len(page) else None

    def _resized(self) -> None:
        height = max(self.count, 1 if self._say is None else len(self._say[0]) + 1) + self._has_head
        self.virtual_size = Size(self.size.width, height)
        self.refresh(layout=self.has_class("-auto"))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """All rows, where the height is not given by the screen."""
        return self.virtual_size.height

    # Keys ----------------------------------------------------------------------------------------------------------

    def action_step(self, by: int) -> None:
        """Move the cursor by rows."""
        self._go(self.cursor + by, by)

    def action_page(self, by: int) -> None:
        """Move the cursor by a screenful."""
        height = (self._page() or self).size.height
        self._go(self.cursor + by * max(height - 2, 1), by * height)

    def action_to(self, index: int) -> None:
        """Move the cursor to the first or the last row."""
        self._go(self.count - 1 if index < 0 else index, -_FAR if index == 0 else _FAR)

    def _go(self, index: int, lines: int) -> None:
        """Move the cursor; where it stands at the end of the list already, the page that the list is a part of scrolls."""
        page, index = self._page(), max(0, min(index, self.count - 1))
        if page is not None and index == self.cursor:
            page.scroll_relative(y=lines, animate=False)
        else:
            self.move(index)

    def _page(self) -> Widget | None:
        return self.parent if self.has_class("-auto") and isinstance(self.parent, Widget) else None

    def action_shift(self, by: int) -> None:
        """Show columns further to the right, or to the left; the first one stays."""
        self._first_col = max(1, min(self._first_col + by, len(self.cols) - 1))
        self.refresh()

    def action_open(self) -> None:
        """Open the row under the cursor."""
        row = self.row
        if row is not None:
            self.post_message(self.Opened(self, row))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the row that was clicked; a second click opens it."""
        place = event.get_content_offset(self)
        index = -1 if place is None else int(self.scroll_offset.y) + place.y - self._has_head
        if 0 <= index < self.count:
            again = index == self.cursor
            self.move(index)
            if again:
                self.action_open()

    def move(self, index: int) -> None:
        """Put the cursor on a row."""
        if not self.count:
            return
        self.cursor = max(0, min(index, self.count - 1))
        self._into_view()
        self.refresh()
        self.post_message(self.Moved(self, self.row))

    def _into_view(self) -> None:
        height = max(self.size.height - self._has_head, 1)
        top = int(self.scroll_offset.y)
        if self.cursor < top or self.cursor >= top + height:
            target = self.cursor if self.cursor < top else self.cursor - height + 1
            self.scroll_to(y=target, animate=False, force=True)
        page = self._page()
        if page is not None and self.has_focus:
            place = self.virtual_region.y + self.gutter.top + self.cursor + self._has_head
            page.scroll_to_region(Region(0, place, 1, 1), animate=False)

    # Drawing -------------------------------------------------------------------------------------------------------

    def on_resize(self, _: events.Resize) -> None:
        """Another height shows other rows."""
        self._resized()
        if not self.has_class("-auto"):
            self._into_view()

    def render_line(self, y: int) -> Strip:
        """One line of the table, or of what there is to say in its place."""
        ink = ink_of(self.app.current_theme)
        width = self.scrollable_content_region.width
        if self._say is not None:
            lines = message(self._say[0], width, getattr(ink, self._say[1]))
            return self._strip(lines[y] if y < len(lines) else Text(""), width)
        if self._has_head and y == 0:
            return self._strip(self._heading(width, ink), width)
        index = int(self.scroll_offset.y) + y - self._has_head
        if index >= self.count:
            return self._strip(Text(""), width)
        return self._strip(self._line(index, width, ink), width)

    def _line(self, index: int, width: int, ink: Ink) -> Text:
        row = self._row(index)
        here = index == self.cursor
        if row is None:
            self._want(index)
            return Text("  …", style=ink.dim)
        line = row_line(row, self._layout(width), ink, marked=here)
        if here:
            line.pad_right(max(width - line.cell_len, 0))
            line.stylize_before(ink.cursor if self.has_focus else ink.faint_cursor)
        return line

    def _heading(self, width: int, ink: Ink) -> Text:
        """The titles, and arrows where ← and → show further columns."""
        placed = self._layout(width)
        line = heading(placed, self.ordered_by, ink)
        before, after = self._first_col > 1, placed[-1][0] is not self.cols[-1]
        if before or after:
            line.truncate(width - ARROWS, pad=True)
            line.append(f" {'←' if before else ' '}{'→' if after else ' '}", style=ink.link)
        return line

    def _layout(self, width: int) -> list[Placed]:
        return layout(self.cols, self._first_col, width)

    def _want(self, index: int) -> None:
        page = index // PAGE
        if page != self._wanted:
            self._wanted = page
            self.post_message(self.Needed(self, page * PAGE, PAGE))

    def _strip(self, line: Text, width: int) -> Strip:
        base = self.rich_style
        segments = [
            Segment(text, base + style if isinstance(style, Style) else base)
            for text, style, _ in line.render(self.app.console)
        ]
        return Strip(segments).crop_extend(0, width, base)

    def redraw(self) -> None:
        """Draw again, for another theme."""
        self.refresh()

    def plain_text(self) -> str:
        """The row under the cursor, as text: column by column."""
        row = self.row
        if row is None:
            return "\n".join(self._say[0]) if self._say else ""
        ink = ink_of(self.app.current_theme)
        return "\n".join(f"{col.title}: {col.draw(row, ink).plain.strip()}" for col in self.cols)
