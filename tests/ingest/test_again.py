"""The same files again: nothing changes; grown ones take their own place; an ingest is done wholly or not at all."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracelens
from tracelens.errors import CaseError, QueryError, UnknownFormat, UsageError
from tracelens.ingestion import IngestOptions, State, TimeOptions, ingest
from tracelens.store import CaseWriter, Store

Rows = Callable[[Path, str], list[dict[str, Any]]]
Tables = Callable[[Path], dict[str, list[tuple[Any, ...]]]]
IDS = "SELECT logged_id, line_no, source_id, run_id FROM request_event ORDER BY ALL"


def log(*ids: str) -> bytes:
    return "".join(f"INFO 11-29 12:00:00 [async_llm.py:1] Added request {one}.\n" for one in ids).encode()


def states(*args: Any) -> list[State]:
    return [one.state for one in ingest(*args).files]


def ids(case: Path, rows_of: Rows) -> list[tuple[Any, ...]]:
    return [(row["logged_id"], row["line_no"]) for row in rows_of(case, IDS)]


def litter(case: Path) -> list[str]:
    return sorted(path.name for path in case.parent.iterdir() if path != case)


def test_the_same_file_again_changes_nothing(case: Path, tmp_path: Path, everything: Tables) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(log("a", "b") + b"not understood\n")
    assert states([str(path)], case) == [State.READ]
    before, stamp = everything(case), case.stat().st_mtime_ns
    (tmp_path / "renamed.log").write_bytes(path.read_bytes())
    (tmp_path / "packed.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert (
        states([str(path), str(tmp_path / "renamed.log"), str(tmp_path / "packed.gz")], case)
        == [State.UNCHANGED] * 3
    )
    assert everything(case) == before
    assert case.stat().st_mtime_ns == stamp, "the case is not even written"
    (source,) = before["source"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() in source


def test_a_notebook_may_ingest_more_than_once(case: Path, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    assert [one.state for one in tracelens.ingest([tmp_path / "a.log"], case, run="x").files] == [State.READ]
    assert [one.state for one in tracelens.ingest([tmp_path / "a.log"], case=case, run="x").files] == [
        State.UNCHANGED
    ]
    with tracelens.open(case) as opened:
        assert opened.sql("SELECT run_id FROM source").rows == [("x",)]


def test_the_same_bytes_under_two_names_are_read_once(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(log("a", "b"))
    report = ingest([str(tmp_path / "a.log"), str(tmp_path / "b.log")], case)
    assert [(one.state, one.note) for one in report.files] == [
        (State.READ, ""),
        (State.UNCHANGED, f"the same bytes as {tmp_path / 'a.log'}"),
    ]
    assert ids(case, rows_of) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_grown_file_is_as_if_it_had_been_read_once(
    pack: Callable[[bytes], bytes], case: Path, tmp_path: Path, everything: Tables, rows_of: Rows
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(pack(log("a", "b")))
    ingest([str(path)], case)
    path.write_bytes(pack(log("a", "b", "c")))
    assert states([str(path)], case) == [State.REPLACED]
    assert ids(case, rows_of) == [("a", 1), ("b", 2), ("c", 3)]
    once = tmp_path / "once.duckdb"
    ingest([str(path)], once)
    assert everything(case) == everything(once)


def test_a_plain_file_that_grew_in_the_middle_of_a_line_is_replaced(
    case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log("a", "b")[:-12])
    ingest([str(path)], case)
    path.write_bytes(log("a", "b", "c"))
    assert states([str(path)], case) == [State.REPLACED]
    assert ids(case, rows_of) == [("a", 1), ("b", 2), ("c", 3)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_another_file_of_the_same_name_is_kept_beside_the_first(
    pack: Callable[[bytes], bytes], case: Path, tmp_path: Path, rows_of: Rows
) -> None:
    path = tmp_path / "server.log.1.gz"
    path.write_bytes(pack(log("a", "b")))
    ingest([str(path)], case)
    path.write_bytes(pack(log("x", "y", "z")))
    report = ingest([str(path)], case)
    assert [(one.state, one.note) for one in report.files] == [
        (State.READ, "another file of this name is in the case; both are kept")
    ]
    assert ids(case, rows_of) == [("a", 1), ("b", 2), ("x", 1), ("y", 2), ("z", 3)]


def test_two_runs_share_a_case_and_keep_apart(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log("a"))
    before = ingest([str(path)], case, IngestOptions(run="before"))
    after = ingest([str(path)], case, IngestOptions(run="after"))
    assert (before.run, after.run) == ("before", "after")
    assert [one.state for one in after.files] == [State.READ], "the same file may be in both"
    assert [(row["run_id"], row["source_id"]) for row in rows_of(case, IDS)] == [("before", 1), ("after", 2)]
    path.write_bytes(log("a", "b"))
    assert states([str(path)], case, IngestOptions(run="after")) == [State.REPLACED]
    assert [(row["run_id"], row["logged_id"]) for row in rows_of(case, IDS)] == [
        ("before", "a"),
        ("after", "a"),
        ("after", "b"),
    ]


def test_a_case_behind_a_link_is_written_where_it_lies(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    link = tmp_path / "link.duckdb"
    link.symlink_to(case)
    (tmp_path / "a.log").write_bytes(log("a"))
    ingest([str(tmp_path / "a.log")], link)
    assert link.is_symlink()
    assert ids(case, rows_of) == [("a", 1)]


def test_an_error_while_loading_leaves_the_case_as_it_was(
    begun_case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    (tmp_path / "b.log").write_bytes(log("b"))
    before = begun_case.read_bytes()
    loaded: list[str] = []
    load = CaseWriter.load

    def fails_at_the_second(self: CaseWriter, table: str, *args: Any) -> int:
        loaded.append(table)
        if len(loaded) == 2:
            raise KeyboardInterrupt
        return load(self, table, *args)

    monkeypatch.setattr(CaseWriter, "load", fails_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        ingest([str(tmp_path / "a.log"), str(tmp_path / "b.log")], begun_case)
    assert len(loaded) == 2
    assert begun_case.read_bytes() == before
    assert litter(begun_case) == []
    monkeypatch.undo()
    assert states([str(tmp_path / "a.log")], begun_case) == [State.READ], "the lock is free again"
    assert litter(begun_case) == []


def test_a_new_case_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    (tmp_path / "new").mkdir()

    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CaseWriter, "join", fails)
    with pytest.raises(OSError, match="No space left"):
        ingest([str(tmp_path / "a.log")], tmp_path / "new" / "case.duckdb")
    assert list((tmp_path / "new").iterdir()) == []


def test_readers_see_the_old_state_until_the_new_one_is_in_place(begun_case: Path) -> None:
    with CaseWriter(begun_case) as writer:
        writer.rows("INSERT INTO case_property VALUES ('seen', 'yes')")
        with Store(begun_case) as reader:
            assert reader.run("SELECT count(*) FROM case_property WHERE key = 'seen'").rows == [(0,)]
    with Store(begun_case) as reader:
        assert reader.run("SELECT count(*) FROM case_property WHERE key = 'seen'").rows == [(1,)]


def test_the_second_of_two_ingests_says_who_holds_the_case(case: Path, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    with CaseWriter(case):
        with pytest.raises(
            CaseError, match=rf"another ingest \(process {os.getpid()} on .+\) is writing this case"
        ) as caught:
            ingest([str(tmp_path / "a.log")], case)
        assert "wait for it to end" in caught.value.hint
        assert litter(case) == [".incident.duckdb.lock", ".incident.duckdb.partial"], "the first one's stay"
    assert litter(case) == []


def test_what_a_killed_ingest_left_behind_is_no_obstacle(case: Path, tmp_path: Path) -> None:
    (case.parent / ".incident.duckdb.lock").write_text("99999\n")
    (case.parent / ".incident.duckdb.partial").write_bytes(b"half a case")
    (tmp_path / "a.log").write_bytes(log("a"))
    assert states([str(tmp_path / "a.log")], case) == [State.READ]
    assert litter(case) == []


def test_a_lock_whose_entry_was_taken_away_is_no_lock(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening the entry and locking it, the holder may end and remove it: both would think they hold it."""
    entry = case.parent / ".incident.duckdb.lock"
    flock, tries = fcntl.flock, []

    def late(handle: int, operation: int) -> None:
        tries.append(handle)
        if len(tries) == 1:
            entry.unlink()
            entry.touch()
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with CaseWriter(case):
        assert len(tries) == 2
        assert entry.read_text() == f"{os.getpid()} on {socket.gethostname()}\n"


def test_what_is_no_case_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    mine = tmp_path / "thesis.txt"
    mine.write_text("all my work")
    with pytest.raises(CaseError, match="not a tracelens case"):
        ingest([str(tmp_path / "a.log")], mine)
    assert mine.read_text() == "all my work"
    with pytest.raises(CaseError, match="there is no folder"):
        ingest([str(tmp_path / "a.log")], tmp_path / "nowhere" / "case.duckdb")


def test_options_that_make_no_sense_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(log("a"))
    for zone in ("Mars/Olympus", "+25:00", "../etc/passwd", "+2", "'; DROP TABLE source; --"):
        with pytest.raises(UsageError, match="is no time zone"):
            ingest([str(tmp_path / "a.log")], tmp_path / "c.duckdb", IngestOptions(time=TimeOptions(tz=zone)))
    with pytest.raises(UnknownFormat):
        ingest([str(tmp_path / "a.log")], tmp_path / "c.duckdb", IngestOptions(format="no_such"))
    assert not (tmp_path / "c.duckdb").exists()


def test_a_format_can_be_forced_but_not_onto_anything(case: Path, tmp_path: Path) -> None:
    prose = "".join(f"Dear all, {n}\n" for n in range(60))
    path = tmp_path / "mail.txt"
    path.write_text(prose + log("a").decode())
    assert states([str(path)], case) == [State.UNKNOWN]
    report = ingest([str(path)], case, IngestOptions(format="vllm_log"))
    assert [(one.state, one.format, one.lines, one.understood, one.skipped) for one in report.files] == [
        (State.READ, "vllm_log", 61, 1, 60)
    ]
    assert states([str(path)], case, IngestOptions(run="other", format="nvidia_dmon")) == [State.UNKNOWN]


def test_every_row_of_a_forgotten_source_is_gone(case: Path, tmp_path: Path, rows_of: Rows) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(
        log("a") + b"what is this\n"
        b"INFO 11-29 12:00:01 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: "
        b"2.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.1%, Prefix cache hit rate: 0.0%\n"
        b'INFO:     10.0.0.7:1 - "GET /health HTTP/1.1" 200 OK\nWARNING 11-29 12:00:02 [x.py:1] hot\n'
    )
    ingest([str(path)], case)
    with CaseWriter(case) as writer:
        writer.drop_source(1)
    left = rows_of(
        case,
        "SELECT (SELECT count(*) FROM request_event) + (SELECT count(*) FROM engine_sample) + (SELECT count(*)"
        " FROM access_line) + (SELECT count(*) FROM log_event) + (SELECT count(*) FROM ingest_issue)"
        " + (SELECT count(*) FROM source) AS count",
    )
    assert left == [{"count": 0}]
    with pytest.raises(QueryError), Store(case) as store:
        store.run("DELETE FROM source")
