"""The document that goes into a post-mortem: one `Report`, written as HTML, Markdown or JSON.

`gather` asks the named queries and the rules and puts what they say into one mapping (the JSON document, described by
``schemas/report.schema.json``); `redact` replaces names in it; `page` and `markdown` only show it.  Nothing is computed here.
"""

from __future__ import annotations

from tracelens.report.gather import gather
from tracelens.report.markdown import markdown
from tracelens.report.page import comparison_page, page
from tracelens.report.redact import redacted

__all__ = ["comparison_page", "gather", "markdown", "page", "redacted"]
