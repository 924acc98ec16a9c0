"""How fast ``tracelens ingest`` reads each kind of file, beside programs that read the same bytes and do less with them."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
from pathlib import Path
from typing import Final

from contest import OUT, PYTHON, TRACELENS, Contender, Figure, Section, ingest, race, run, table, take_turns
from make_incident import write_dmon, write_incident
from make_server_log import DIALECTS, write_server_log

SEED: Final = 7
MB: Final = 1_000_000
TIMES: Final = 3
"""Runs of each contender; the medians are shown."""
INCIDENT_REQUESTS: Final = 30_000
"""Requests of the incident whose client streams and GPU rows are read: about 100 MB of streams."""
GPUS: Final = 8
DMON_ROWS: Final = 2_000_000
SIZES_MB: Final = (100, 1000)
MEMORY_BYTES: Final = 500 * MB

LINE_SCAN: Final = """
import duckdb, sys
scan = "SELECT count(*), max(length(line)) FROM read_csv(?, columns={'line': 'VARCHAR'}, delim='\\x1f', quote='', escape='', \\
        header=false, auto_detect=false, strict_mode=false, null_padding=false)"
print(duckdb.execute(scan, [sys.argv[1]]).fetchone()[0])
"""
READ_JSON: Final = """
import duckdb, sys
columns = {"request_id": "VARCHAR", "response_id": "VARCHAR", "trace_id": "VARCHAR", "model": "VARCHAR", "stream": "BOOLEAN",
           "max_tokens": "BIGINT", "sent_at": "DOUBLE", "headers_at": "DOUBLE", "first_byte_at": "DOUBLE",
           "first_content_at": "DOUBLE", "finished_at": "DOUBLE", "status": "INTEGER", "prompt_tokens": "BIGINT",
           "completion_tokens": "BIGINT", "finish_reason": "VARCHAR", "error": "VARCHAR", "chunk_kind": "VARCHAR",
           "chunk_at": "DOUBLE[]"}
read = "CREATE TABLE kept AS SELECT * FROM read_json(?, columns=?, format='newline_delimited')"
duckdb.execute(read, [sys.argv[1], columns])
"""
READ_NDJSON: Final = "import polars, sys; polars.read_ndjson(sys.argv[1])"
FOUND: Final = """
SELECT
    (SELECT line_count FROM source) AS lines,
    (SELECT count(*) FROM ingest_issue) AS lines_not_understood,
    (SELECT count(*) FROM request_event WHERE event = 'received') AS requests,
    (SELECT count(*) FROM request_event WHERE event = 'aborted') AS aborts,
    (SELECT count(*) FROM access_line) AS access_lines,
    (SELECT count(*) FROM engine_sample) AS stats_lines,
    (SELECT count(*) FROM log_event WHERE kind = 'traceback') AS tracebacks,
    (SELECT count(*) FROM log_event WHERE kind = 'warning') AS warnings
"""
NOTE: Final = (
    f"Medians of {TIMES} runs each, in turns, each in a fresh process; the file is in the page cache."
)


def server_log(size_mb: float) -> Section:
    """A vLLM server log, beside DuckDB's scan of its lines, grep and lnav."""
    log, case = OUT / "server.log", OUT / "server.duckdb"
    written = write_server_log(log, int(size_mb * MB), SEED)
    readers = [
        ingest("tracelens ingest", [log], case),
        Contender("DuckDB, lines counted", (PYTHON, "-c", LINE_SCAN, log)),
        Contender("grep, lines counted", ("grep", "-c", "", log)),
        *_lnav(log),
    ]
    take_turns(readers, TIMES)
    found = json.loads(run([*TRACELENS, "sql", FOUND, "-c", case, "--format", "json"], OUT).output)[0]
    written["lines_not_understood"] = 0
    size, share = log.stat().st_size, case.stat().st_size / log.stat().st_size
    text = [
        f"## A vLLM server log of {size / MB:,.0f} MB, {written['lines']:,} lines", "", NOTE, "", *race(readers, size), "",
        "tracelens parses every line, places it in time, joins and stores; DuckDB reads the lines as one column and counts them;",
        "lnav matches one regular expression per line and counts the messages.", "",
        *table(
            ("kind", "in the log", "found"),
            [(kind.replace("_", " "), f"{written[kind]:,}", f"{count:,}") for kind, count in found.items()],
        ), "",
        f"The case takes {case.stat().st_size / MB:,.0f} MB, {share:.0%} of the log.",
    ]  # fmt: skip
    wall = {one.name.partition(",")[0]: one.seconds for one in readers}
    figures = [
        Figure("server log, times DuckDB's line scan", wall["tracelens ingest"] / wall["DuckDB"], 4, "x"),
        Figure("case size, share of the server log", share, 0.1, "%"),
    ]
    if "lnav" in wall:
        figures.insert(
            1, Figure("server log, times lnav's count", wall["tracelens ingest"] / wall["lnav"], 1, "x")
        )
    return Section("\n".join(text), figures)


def _lnav(log: Path) -> list[Contender]:
    """Lnav with a format for vLLM's lines, where it is installed."""
    lnav = shutil.which("lnav")
    if lnav is None:
        return []
    home = OUT / "lnav"
    formats = home / "formats" / "vllm"
    formats.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).parent / "lnav" / "vllm_log.json", formats)
    counted = (lnav, "-I", home, "-n", "-c", ";SELECT count(*) FROM all_logs", log)
    return [Contender("lnav, messages counted", counted)]


def dialects(size_mb: float) -> Section:
    """The same server's log as other versions and collectors write it, and compressed."""
    readers, sizes = [], []
    for name in (*DIALECTS, "v1, gzip"):
        log = OUT / f"dialect-{name.replace(', ', '.')}.log"
        write_server_log(log, int(size_mb * MB), SEED, name.partition(",")[0])
        sizes.append(log.stat().st_size)
        if name.endswith("gzip"):
            log = _compressed(log)
        readers.append(ingest(name, [log], OUT / f"dialect-{name[:4]}.duckdb"))
    take_turns(readers, 3)
    rows = [
        (one.name, f"{one.seconds:.2f}", f"{one.cpu_s:.2f}", f"{size / MB / one.seconds:,.0f}", f"{one.peak_bytes / 2**20:,.0f} MiB")
        for one, size in zip(readers, sizes, strict=True)
    ]  # fmt: skip
    text = [
        f"## Dialects, {size_mb:,.0f} MB of text each", "", "Medians of 3 runs. `v0` is vLLM 0.6 with prompts in the log.", "",
        *table(("dialect", "seconds", "CPU s", "MB/s of text", "peak memory"), rows),
    ]  # fmt: skip
    plain = next(one for one in readers if one.name == "v1")
    return Section(
        "\n".join(text),
        [Figure("gzip log, times the plain one", readers[-1].seconds / plain.seconds, 1.25, "x")],
    )


def _compressed(log: Path) -> Path:
    packed = log.with_suffix(".log.gz")
    with log.open("rb") as plain, gzip.open(packed, "wb", compresslevel=6) as stream:
        shutil.copyfileobj(plain, stream)
    log.unlink()
    return packed


def client_streams() -> Section:
    """Client streams with the time of every chunk, beside typed JSON readers."""
    folder = OUT / "incident"
    folder.mkdir(exist_ok=True)
    written = write_incident(folder, INCIDENT_REQUESTS, SEED)
    log, case = folder / "client.jsonl", OUT / "client.duckdb"
    readers = [
        ingest("tracelens ingest", [log], case),
        Contender("DuckDB, typed read_json", (PYTHON, "-c", READ_JSON, log)),
        Contender("Polars, read_ndjson", (PYTHON, "-c", READ_NDJSON, log)),
    ]
    take_turns(readers, TIMES)
    size = log.stat().st_size
    whole = ingest("whole incident", sorted(folder.iterdir()), OUT / "incident.duckdb")
    take_turns([whole], 3)
    total = sum(path.stat().st_size for path in folder.iterdir())
    text = [
        f"## Client streams of {size / MB:,.0f} MB, {written['client.jsonl']:,} requests with the time of each chunk", "",
        NOTE, "", *race(readers, size), "",
        f"The case takes {case.stat().st_size / size:.0%} of the file. The whole incident ({total / MB:,.0f} MB: server log, spans, scrapes,",
        f"GPU rows, client streams of the same requests) takes {whole.seconds:.1f} s, {total / MB / whole.seconds:,.0f} MB/s, "
        f"{whole.peak_bytes / 2**20:,.0f} MiB.",
    ]  # fmt: skip
    return Section(
        "\n".join(text),
        [
            Figure(
                "client streams, times DuckDB's typed read_json",
                readers[0].seconds / readers[1].seconds,
                2,
                "x",
            )
        ],
    )


def dmon() -> Section:
    """Rows of nvidia-smi dmon: eight GPUs, one second, for days."""
    log = OUT / "dmon.log"
    write_dmon(log, DMON_ROWS, GPUS, SEED)
    reader = ingest("tracelens ingest", [log], OUT / "dmon.duckdb")
    scan = Contender("DuckDB, lines counted", (PYTHON, "-c", LINE_SCAN, log))
    take_turns([reader, scan], 3)
    rate = DMON_ROWS / reader.seconds
    text = [
        f"## {DMON_ROWS:,} rows of nvidia-smi dmon, {log.stat().st_size / MB:,.0f} MB", "", "Medians of 3 runs.", "",
        *race([reader, scan], log.stat().st_size), "", f"{rate / 1e6:.2f} million rows a second, the whole command.",
    ]  # fmt: skip
    return Section("\n".join(text), [Figure("dmon, million rows a second", rate / 1e6, 1, "", at_least=True)])


def growth(sizes_mb: tuple[float, ...] = SIZES_MB) -> Section:
    """One run per size: whether time grows with the size and memory stays.  The logs are kept: ten gigabytes take ten minutes to write."""
    case, runs = OUT / "growth.duckdb", []
    for size in sizes_mb:
        log = OUT / f"growth-{size:.0f}.log"
        if not log.exists() or log.stat().st_size < size * MB:
            write_server_log(log, int(size * MB), SEED)
        one = ingest(f"{size:,.0f} MB", [log], case)
        take_turns([one], 1)
        runs.append(one)
    heads = ("server log", "seconds", "MB/s", "peak memory")
    rows = [
        (one.name, f"{one.seconds:.1f}", f"{size / one.seconds:,.0f}", f"{one.peak_bytes / 2**20:,.0f} MiB")
        for one, size in zip(runs, sizes_mb, strict=True)
    ]
    exponent = math.log(runs[-1].seconds / runs[0].seconds) / math.log(sizes_mb[-1] / sizes_mb[0])
    text = [
        "## As a log grows",
        "",
        *table(heads, rows),
        "",
        f"Time grows with the size to the power {exponent:.2f}.",
    ]
    highest = max(one.peak_bytes for one in runs)
    return Section(
        "\n".join(text),
        [
            Figure(
                f"peak memory of an ingest up to {sizes_mb[-1]:,.0f} MB",
                highest / MB,
                MEMORY_BYTES / MB,
                "MB",
            ),
            Figure("time over size, exponent", exponent, 1.05),
        ],
    )


def cores() -> Section:
    """The same ingest held to one core and to two."""
    log = OUT / "server.log"
    if shutil.which("taskset") is None or (os.cpu_count() or 1) < 2:
        return Section("## A second core\n\nNot measured: one core, or no taskset.")
    one, two = (
        ingest(f"{count} cores", [log], OUT / f"cores-{count}.duckdb", "taskset", "-c", cpus)
        for count, cpus in ((1, "0"), (2, "0,1"))
    )
    take_turns([one, two], 3)
    gain = one.seconds / two.seconds
    text = f"## A second core\n\nThe server log above: {one.seconds:.2f} s on one core, {two.seconds:.2f} s on two, {gain:.2f} times as fast."
    return Section(text, [Figure("gain by a second core", gain, 1.7, "x", at_least=True)])
