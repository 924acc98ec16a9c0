"""Names, ids, labels, settings, processes and paths that are made to act do not act in anything that a command or a screen shows."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from harm import LOGS

import tracelens
from tracelens.cli import cli, comparison
from tracelens.compare import Comparison, Difference
from tracelens.ingestion import IngestReport
from tracelens.named import named_queries
from tracelens.outcomes import Outcome
from tracelens.text.checks import as_markdown
from tracelens.text.findings import check_lines
from tracelens.text.rows import write_rows

EVIL = "\x1b[2J\x1b]52;c;cHduZWQ=\x07\x9b31m\u202egpj\u2066[red]R[/red][@click=app.quit]q[/]<img src=x onerror=alert(1)>|`t`\n=cmd()"
"""Clears the screen, writes the clipboard, turns the text round; markup of Rich, Textual, HTML and Markdown; a formula."""
SHELL = "$(touch pwned)`touch pwned`';touch pwned;#"
ACTING = set("\x1b\x9b\x07\x00\r\u202e\u2066\u2069\u200f")
RUN = "r" + EVIL
FIRST_ID = json.loads((LOGS / "client.jsonl").read_text().splitlines()[0])["response_id"]
SAMPLE_LOGS = Path(__file__).parents[2] / "sample_logs"


def client(number: int) -> Iterator[str]:
    for line in (LOGS / "client.jsonl").read_text().splitlines():
        row = json.loads(line)
        row.update(response_id=f"{row['response_id']} {EVIL}", label=EVIL, error=EVIL, trace_id=None)
        row["finished_at"] += number
        yield json.dumps(row)


def server() -> str:
    said = re.sub(r"[\n\r\x00]", " ", EVIL)
    lines = (
        (LOGS / "server.log")
        .read_text()
        .replace("/models/", f"/models/{SHELL.replace(chr(39), '')}{said.replace('|', '')}/")
    )
    stamp = "(APIServer pid=29049) ERROR 11-29 12:47:08 [serving.py:1] "
    return f"{lines}{stamp}{said}\n(EngineCore_0 pid=1) WARNING 11-29 12:47:09 [core.py:1] {said}\n"


def gpus() -> str:
    state = json.loads((SAMPLE_LOGS / "gpustat" / "gpustat.json").read_text())
    state["hostname"] = f"host{EVIL}"
    state["query_time"] = "2026-11-29T12:46:58.000000"
    for gpu in state["gpus"]:
        gpu["name"] = f"H100 {EVIL}"
        for process in gpu["processes"]:
            process.update(command=f"python {EVIL}", username=EVIL)
    return json.dumps(state, indent=1)


@pytest.fixture(scope="module")
def reports() -> list[IngestReport]:
    return []


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, reports: list[IngestReport]) -> Path:
    """Two runs of which every text was written by an enemy, in files whose names were too."""
    folder = tmp_path_factory.mktemp("acting")
    path = folder / "case.duckdb"
    for number in (0, 1):
        logs = folder / f"logs{number}" / (EVIL.replace("/", "_") + SHELL)
        logs.mkdir(parents=True)
        (logs / "client.jsonl").write_text("".join(f"{line}\n" for line in client(number)))
        (logs / "server.log").write_text(server())
        (logs / "gpu.json").write_text(gpus())
        reports.append(tracelens.ingest([logs], path, run=f"{RUN}{number}"))
        assert reports[-1].recognised
    return path


def run(case: Path, *args: object) -> Result:
    result = CliRunner().invoke(cli, [str(arg) for arg in args], env={"TRACELENS_CASE": str(case)})
    assert result.exit_code in (0, 1, 4), result.output
    return result


def acts(text: str) -> list[str]:
    """Lines in which something acts on a terminal, or which a line end of a log began."""
    return [line for line in text.split("\n") if set(line) & ACTING or line.startswith(("=cmd", "<img"))]


def test_nothing_acts_in_the_rows_of_any_named_query(case: Path) -> None:
    seen = 0
    with tracelens.open(case) as opened:
        for one in named_queries().values():
            found = opened.query(one.name, **({"run": f"{RUN}0"} if "run" in one.params else {}))
            for kind in ("table", "md"):
                out = io.StringIO()
                write_rows(found, kind, out)
                assert acts(out.getvalue()) == [], (one.name, kind)
                seen += "\\x1b" in out.getvalue()
            rows = out.getvalue().splitlines()
            assert len({row.replace("\\|", "").count("|") for row in rows}) == 1, one.name
    assert seen > 20


@pytest.mark.parametrize(
    "args",
    [("slowest", "--format", "table"), ("sources", "--format", "table"),
     ("sources", "--verify", "--format", "table"), ("show", FIRST_ID, "--run", f"{RUN}0", "--format", "table")],
    ids=lambda args: " ".join(args[:2])[:20],
)  # fmt: skip
def test_nothing_acts_in_what_a_command_shows_to_people(case: Path, args: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, args, env={"TRACELENS_CASE": str(case)})
    assert result.exit_code in (0, 1, 2), result.output
    assert acts(result.output) == []
    assert "\\x1b" in result.output


def test_no_finding_acts(case: Path) -> None:
    with tracelens.open(case) as opened:
        found = opened.check()
    for lines in (check_lines(found, 110), as_markdown(found)):
        text = "\n".join(lines)
        assert acts(text) == []
        assert "\\x1b" in text


def test_no_text_of_a_comparison_acts() -> None:
    said = Outcome("gpu.x", "x", EVIL, EVIL, "fired", "warning", "high", EVIL, EVIL, EVIL)
    differing = Difference("setting", EVIL, EVIL, EVIL, why=EVIL)
    found = Comparison(EVIL, EVIL, (differing,), EVIL, gone=(said,), new=(said,), kept=(said,))
    for lines in (comparison.as_text(found, 120), comparison.as_markdown(found)):
        text = "\n".join(lines)
        assert acts(text) == []
        assert text.count("\\x1b") > 8


def test_what_an_ingest_says_does_not_act(case: Path) -> None:
    again = next(case.parent.glob("logs0/*"))
    for args in (
        ("ingest", again, "-v"),
        ("ingest", again / f"no{EVIL.replace('/', '_')}"),
    ):
        result = CliRunner().invoke(cli, [str(arg) for arg in args], env={"TRACELENS_CASE": str(case)})
        assert result.output
        assert acts(result.output) == []


@pytest.mark.parametrize(
    "args",
    [("show", EVIL), ("slowest", "--run", EVIL), ("query", EVIL), ("query", "slowest", EVIL), ("sql", f"SELECT '{EVIL}' AS"), ("schema", EVIL), ("rules", "show", EVIL),
     ("formats", "show", EVIL), ("check", "--set", EVIL), ("check", "--slo", EVIL), ("ingest", "x", "--tz", EVIL), ("ingest", EVIL), ("report", "-o", EVIL),
     ("compare", EVIL, EVIL), ("export", "--format", "otlp", "-o", f"/{EVIL}/x"), ("browse", "--screen", EVIL), (EVIL,), ("sql", "--timeout", EVIL)],
    ids=lambda args: args[0][:8] if isinstance(args, tuple) else None,
)  # fmt: skip
def test_an_error_that_quotes_what_was_given_does_not_act(
    case: Path, args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, args, env={"TRACELENS_CASE": str(case)})
    assert result.exit_code in (2, 3)
    assert result.output.strip()
    assert not set(result.output) & ACTING


def test_no_cell_of_csv_computes(case: Path) -> None:
    asked = "SELECT '=1' || label AS a, label AS b, '@x' AS c FROM client_request"
    text = run(case, "sql", asked, "--format", "csv").stdout
    assert not re.search(r'(?:^|,)"?[=@+]', text, re.MULTILINE) or '"=cmd()' not in text


def test_the_script_for_next_time_runs_nothing_of_a_log(case: Path, tmp_path: Path) -> None:
    script = run(case, "sources", "--next-time", "--run", f"{RUN}0").stdout
    assert acts(script) == []
    (tmp_path / "next.sh").write_text(script)
    assert shutil.which("bash")
    subprocess.run(["bash", "-n", "next.sh"], cwd=tmp_path, check=True)
    code = [line for line in script.splitlines() if not line.lstrip().startswith("#")]
    assert "touch pwned" not in "\n".join(code)


def test_no_screen_acts(case: Path, tmp_path: Path) -> None:
    """Screens as pictures: what was written shows as text, in nothing but text."""
    seen = 0
    for name in ("request", "compare"):
        picture = tmp_path / f"{name}.svg"
        run(
            case,
            "browse",
            "--screen",
            name,
            "--run",
            f"{RUN}0",
            "--screenshot",
            picture,
            "--size",
            "200x60",
        )
        text = picture.read_text()
        assert not set(text) & ACTING, name
        drawn = ElementTree.fromstring(text)
        assert not list(drawn.iter("{http://www.w3.org/2000/svg}image"))
        assert not {key for part in drawn.iter() for key in part.attrib if key.startswith("on")}
        words = " ".join(part for part in drawn.itertext()).replace("\xa0", " ")
        seen += "[red]" in words
    assert seen == 2
