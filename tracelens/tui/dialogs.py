"""What asks for a word or a choice: a line at the bottom, a list, a page of keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tracelens.errors import TracelensError
from tracelens.text.terminal import clean


class Prompt(ModalScreen[str | None]):
    """One line of text; `check` raises `TracelensError` for what will not do, and the line stays."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "back")]

    def __init__(
        self, title: str, hint: str = "", text: str = "", check: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(classes="prompt")
        self._title = title
        self._hint = hint
        self._text = text
        self._check = check

    def compose(self) -> ComposeResult:
        """Title, line, and what may be written."""
        with Vertical(id="box"):
            yield Static(Text(self._title, style="bold"), markup=False, classes="title")
            yield Input(self._text, select_on_focus=True)
            yield Static(Text(self._hint), markup=False, classes="hint")

    def on_mount(self) -> None:
        """Notices would stand on the line that is written."""
        self.app.clear_notifications()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line, unless it will not do."""
        try:
            if self._check is not None:
                self._check(event.value)
        except TracelensError as error:
            self.query_one(".hint", Static).update(Text(clean(f"{error} {error.hint}")))
            return
        self.dismiss(event.value)


class Choice(ModalScreen[str | None]):
    """One of several; each has a value and a line that says what it is."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "back")]

    def __init__(self, title: str, options: Sequence[tuple[str, str]], chosen: str = "") -> None:
        super().__init__(classes="choice")
        self._title = title
        self._options = options
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """Title and list."""
        with Vertical(id="box"):
            yield Static(Text(self._title, style="bold"), markup=False, classes="title")
            yield OptionList(
                *(Option(Text(clean(text), no_wrap=True)) for _, text in self._options), markup=False
            )
            yield Static(Text("⏎ take it   esc back"), markup=False, classes="hint")

    def on_mount(self) -> None:
        """Put the cursor on what is chosen now."""
        values = [value for value, _ in self._options]
        chosen = self.query_one(OptionList)
        chosen.highlighted = values.index(self._chosen) if self._chosen in values else 0

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take it."""
        self.dismiss(self._options[event.option_index][0])


class Help(ModalScreen[None]):
    """Every key of the screen below."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,enter", "dismiss(None)", "back")]

    def __init__(self, title: str, lines: Sequence[Text]) -> None:
        super().__init__(classes="help")
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        """The keys, in a list that scrolls."""
        with Vertical(id="box"):
            yield Static(Text(self._title, style="bold"), markup=False, classes="title")
            with VerticalScroll():
                yield Static(Text("\n").join(self._lines), markup=False)
            yield Static(Text("↑ ↓ scroll   esc back"), markup=False, classes="hint")

    def on_click(self, _: events.Click) -> None:
        """Close."""
        self.dismiss(None)
