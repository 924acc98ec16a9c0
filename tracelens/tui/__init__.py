"""The terminal UI: `tracelens browse`.

How a screen is made
--------------------
One module per screen in ``screens/``, one class below `view.View`, one line in `registry.SCREENS`.

* A screen computes nothing.  It asks named queries (``tracelens/queries/``; `tracelens query NAME` prints the same rows) and
  draws what they give, in the words of `tracelens.units`.  A number that no query has yet wants a new query.
* ``compose_body`` yields the parts: `pane.Pane` (text drawn anew for every width) and `rows.Rows` (a table of any length with a
  cursor).  ``load`` asks: ``self.query_case(part, "latency_percentiles", then, run=self.run_id)``.  The query runs in a thread and
  can be stopped with Esc; ``then`` gets the `Result` on the screen's own thread.  What fails, in SQL or in drawing, is shown in
  the part itself, so no part loads for ever.  ``self.check_case(part, then)`` gives the outcome of the rules, computed once.
* ``part.empty("...")`` says what is missing and what would record it.  No part stays blank.
* Drawing is a plain function ``(width, ink) -> lines``, each line a `rich.text.Text`; no markup strings, ever.  What a log says
  goes through `tracelens.text.terminal.clean`.  Styles come from `ink.Ink`, by meaning; letters and fills say the same.
* ``s``, ``y`` and ``e`` work by themselves: each part remembers what it asked, and knows its plain text.  A part that another
  screen opens from (Enter) handles `rows.Rows.Opened`.
* Plots are `screens.plots.Plot`, a `textual_plotext.PlotextPlot` (pyproject.toml's contract names it). Stage bars
  and one-line lanes are ours (`draw.py`).
* A screen's whole state are the arguments of its constructor, so a test, a link or ``--screen`` opens any of it directly.

`app.Browser` holds what all screens share: the case, the run, the check, the marks (`marked.py`), what is copied and exported
(`outbox.py`).  ``picture.py`` renders any screen without a
terminal; tests/tui does the same with a pilot.
"""
