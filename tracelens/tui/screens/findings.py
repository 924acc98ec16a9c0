"""Findings: what each rule says, what it was measured against, its lines, what to do in which order; and what was not decided."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll

from tracelens.marks import Mark
from tracelens.tui.file_lines import FileLines
from tracelens.tui.pane import Pane
from tracelens.tui.rows import Rows
from tracelens.tui.screens import findings_parts as parts
from tracelens.tui.view import View

if TYPE_CHECKING:
    from textual.widget import Widget

    from tracelens.check import Check, Evidence, Outcome


class Findings(View):
    """The rules of the run that is looked at; `given` is the rule to begin with."""

    NAME = "findings"
    filters = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("l", "lines", "its lines"),
        Binding("p", "plan", "plan"),
        Binding("u", "undecided", "not decided"),
    ]

    def __init__(self, given: str = "") -> None:
        super().__init__()
        self._given = given
        self._only = ""
        self.rows = Rows("the rules", parts.RULE_COLS, name="rules")
        self.detail = Pane("the finding", name="detail")
        self.lines = Rows("its lines", parts.EVIDENCE_COLS, name="evidence", auto=True, head=False)
        self.plan = Pane("the plan", name="plan", classes="ruled")
        self.gaps = Pane("what was not decided", name="gaps", classes="ruled")

    def title_text(self) -> str:
        """Its place in the way."""
        return f"Findings ({parts.OUTCOMES[self._only]})" if self._only else "Findings"

    def compose_body(self) -> Iterable[Widget]:
        """All rules in a list; the one under the cursor in full."""
        yield Container(
            self.rows,
            VerticalScroll(self.detail, self.lines, self.plan, self.gaps, can_focus=True, id="page"),
            id="both",
        )

    def load(self) -> None:
        """The check, computed once for all screens."""
        for part in (self.detail, self.plan, self.gaps, self.lines):
            part.waiting()
        self.check_case(self.rows, self._show)
        self.rows.focus(scroll_visible=False)

    def _show(self, check: Check) -> None:
        outcomes = [
            one for one in check.outcomes if one.run == self.run_id and self._only in ("", one.outcome)
        ]
        if not outcomes:
            self.rows.empty(f"no rule of this run: {parts.OUTCOMES.get(self._only, 'any')}", "f shows others")
            for part in (self.detail, self.plan, self.gaps, self.lines):
                part.empty("")
            return
        places = [place for place, one in enumerate(outcomes) if one.rule == self._given]
        rows = [{"outcome": one, "mark": self.browser.marks.on("finding", one.rule)} for one in outcomes]
        self.rows.set_rows(rows, cursor=places[0] if places else 0)
        self.plan.fill(lambda width, ink: parts.plan_lines(check, self.run_id, width, ink))
        self.gaps.fill(lambda width, ink: parts.gap_lines(check, self.run_id, width, ink))

    def on_rows_moved(self, message: Rows.Moved) -> None:
        """The rule under the cursor, in full."""
        check = self.browser.checked
        if message.rows is not self.rows or message.row is None or check is None:
            return
        one: Outcome = message.row["outcome"]
        if one.rule != self._given:
            self.query_one("#page").scroll_home(animate=False)
        self._given = one.rule
        mark = message.row["mark"]
        self.detail.fill(lambda width, ink: parts.outcome_lines(check, one, mark, width, ink))
        if one.evidence:
            self.lines.set_rows([{"evidence": line} for line in one.evidence])
        else:
            self.lines.empty("no line is named as evidence" if one.outcome == "fired" else "")
        self.show_keys()

    def on_rows_opened(self, message: Rows.Opened) -> None:
        """A line opens with those around it; a rule moves on to its page."""
        if message.rows is self.rows:
            self.query_one("#page").focus()
        else:
            line: Evidence = message.row["evidence"]
            self.app.push_screen(FileLines(line.source, line.line, line.text))

    # Keys -----------------------------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        """Choose rules by what they say."""
        from tracelens.tui.dialogs import Choice

        options = [("", "all rules"), *parts.OUTCOMES.items()]
        self.app.push_screen(Choice("Rules to show", options, self._only), self._take)

    def _take(self, only: str | None) -> None:
        if only is not None:
            self._only = only
            self.show_way()
            self.load()

    def action_lines(self) -> None:
        """Go to the lines behind the finding."""
        self.lines.focus()

    def action_plan(self) -> None:
        """Go to the plan."""
        self.plan.scroll_visible(animate=False, top=True)

    def action_undecided(self) -> None:
        """Go to what was not decided."""
        self.gaps.scroll_visible(animate=False, top=True)

    def action_show_sql(self) -> None:
        """The rule's own SELECT, with its parameters written out."""
        from tracelens.rulebook import rulebook

        row = self.rows.row
        rule = next((one for one in rulebook() if row is not None and one.name == row["outcome"].rule), None)
        if rule is None:
            self.notify("no rule stands under the cursor", severity="warning")
            return
        from tracelens.named import written_out

        self.browser.open("sql", f"-- tracelens rules show {rule.name}\n{written_out(rule.sql, rule.params)}")

    def marked(self) -> Mark | None:
        """The rule under the cursor."""
        row = self.rows.row
        return Mark("finding", self.run_id, row["outcome"].rule) if row is not None else None

    def marks_changed(self) -> None:
        """Draw the marks."""
        if self.browser.checked is not None:
            self._show(self.browser.checked)
        super().marks_changed()

    def copied_text(self) -> str:
        """The line under the cursor, else the finding in full with its lines."""
        if self.focused is self.lines:
            return self.lines.plain_text()
        evidence = [parts.evidence_text(row["evidence"]) for row in self.lines.all_rows()]
        return "\n".join([self.detail.plain_text(), *evidence])
