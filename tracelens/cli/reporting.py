"""``tracelens report``: the document that goes into a post-mortem."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracelens.cli.checking import rules_option
from tracelens.cli.configuration import rule_folders, settings, slo_of
from tracelens.cli.options import on_case, redact_option, run_option, slo_option
from tracelens.cli.output import document_kind, write_document
from tracelens.cli.reading import reading

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command()
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="File to write; its ending says what: .html (one file, no network), .md or .json.",
)
@redact_option
@click.option(
    "--set", "given", multiple=True, metavar="RULE.PARAM=VALUE", help="Another threshold, as in check."
)
@rules_option
@slo_option
@run_option
@on_case
def report(
    case_path: Path,
    target: Path,
    redact: bool,
    given: tuple[str, ...],
    rules: tuple[Path, ...],
    slo_text: str | None,
    run: str,
) -> None:
    """Write what `check` and the screens show into one document.

    \b
    Examples:
      tracelens report -o post-mortem.html
      tracelens report -o post-mortem.md --slo ttft=1s --redact
    """
    kind = document_kind(target)
    slo = slo_of(slo_text)
    values, _ = settings(given)
    from tracelens.report import gather, redacted

    with reading(case_path) as case:
        found = case.check(set=values, rules=rule_folders(rules), run=run)
        document = gather(case, found, slo)
    write_document(_text(redacted(document) if redact else document, kind), target)


def _text(document: Mapping[str, Any], kind: str) -> str:
    from tracelens.report import markdown, page

    if kind == ".html":
        return page(document)
    if kind == ".md":
        return markdown(document)
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"
