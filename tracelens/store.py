"""The one place that opens DuckDB: cases are written here, and read here, and nowhere else.

A case is written completely or not at all: `CaseWriter` works on a copy beside the case and puts it in the case's
place in one step at the end.  Whoever reads meanwhile sees the old state.  A case is read with no way out of it: read
only, no files, no network, no extensions, settings locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import duckdb

from tracelens import resources
from tracelens.errors import CaseError, QueryError, QueryTimeout

_T = TypeVar("_T")

WRITER_MEMORY: Final = "256MB"
"""DuckDB's memory while a case is written; the parser needs the rest of the budget."""

_READ_ONLY_SETTINGS: Final = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}


@dataclass(frozen=True, slots=True)
class Result:
    """Rows of a query.  `types` are DuckDB's names; `truncated` says that there were more than the limit asked for."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    truncated: bool = False

    def dicts(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def pl(self) -> Any:
        """The rows as a Polars frame, columns in the types that DuckDB gave them."""
        import polars as pl

        known = {
            "VARCHAR": pl.String, "BOOLEAN": pl.Boolean, "INTEGER": pl.Int32, "BIGINT": pl.Int64, "HUGEINT": pl.Int128,
            "FLOAT": pl.Float32, "DOUBLE": pl.Float64, "TIMESTAMP": pl.Datetime("us"), "DATE": pl.Date,
        }  # fmt: skip
        schema = {name: known.get(kind) for name, kind in zip(self.columns, self.types, strict=True)}
        return pl.DataFrame(self.rows, schema=schema, orient="row", infer_schema_length=None)


@dataclass(frozen=True, slots=True)
class Placement:
    """How the stamps of one source become UTC.  Everything a log leaves out is filled in here, once, and recorded.

    `years` and `days` are added to the placeholder date; `steps` are the line numbers at which a further one of
    `step_unit` begins (a log that runs past New Year, a time of day that runs past midnight), `back_steps` those at which
    one ends again (lines of two processes cross).  `zone` is an IANA
    name or None for UTC; `shift_s` is subtracted after that (fixed offsets, clocks with an unknown zero).
    """

    years: int = 0
    days: int = 0
    steps: tuple[int, ...] = ()
    back_steps: tuple[int, ...] = ()
    step_unit: str = "years"
    zone: str | None = None
    shift_s: float = 0.0


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of `source`, as ingest knows it before the facts are in."""

    run_id: str
    path: str
    format: str
    variant: str
    side: str
    sha256: str
    size_bytes: int
    line_count: int
    understood_count: int
    skipped_count: int
    clock: str
    time_basis: str


def ddl() -> Iterator[tuple[str, str]]:
    """Name and text of every DDL file, tables first, then views, each in the order of their names."""
    for folder in ("tables", "views"):
        for path in sorted((resources.schemas() / folder).glob("*.sql")):
            yield f"{folder}/{path.name}", path.read_text(encoding="utf-8")


@cache
def schema_version() -> str:
    """Hash of the DDL: two cases with the same one have the same tables and views."""
    return hashlib.sha256("\n".join(text for _, text in ddl()).encode()).hexdigest()[:12]


def apply_schema(connection: duckdb.DuckDBPyConnection) -> None:
    """Create every table and view in an empty database."""
    connection.begin()
    for name, text in ddl():
        try:
            connection.execute(text)
        except duckdb.Error as error:
            raise CaseError(f"schemas/{name}: {error}") from error
    connection.commit()


def memory_case() -> duckdb.DuckDBPyConnection:
    """An empty case in memory, for checks on views and queries.  It has no way out, like a case that is read."""
    connection = duckdb.connect(":memory:", config=dict(_READ_ONLY_SETTINGS))
    apply_schema(connection)
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


class Store:
    """A case opened for reading.  Every query runs on a cursor of its own, so threads may share a store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = _open_read_only(path)

    def run(
        self,
        sql: str,
        params: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        timeout_s: float | None = None,
    ) -> Result:
        """Run one query; one row more than `limit` is fetched, to know whether there were more.

        Raises `QueryError` with DuckDB's message, `QueryTimeout` when `timeout_s` has passed.
        """
        with self._cursor() as cursor:
            return _asked(cursor, sql, params, limit, timeout_s)

    @contextlib.contextmanager
    def sitting(self) -> Iterator[Sitting]:
        """Many queries on one cursor, on which views may be computed once for all of them."""
        with self._cursor() as cursor:
            yield Sitting(self.path, cursor)

    def close(self) -> None:
        """Close the case."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        try:
            yield cursor
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        finally:
            cursor.close()


class Sitting:
    """A case asked many questions in a row."""

    def __init__(self, path: Path, cursor: duckdb.DuckDBPyConnection) -> None:
        self.path = path
        self._cursor = cursor

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> Result:
        """Rows of one query; raises `QueryError` with DuckDB's message."""
        try:
            return _asked(self._cursor, sql, params)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def keep(self, view: str) -> None:
        """Compute a view now; queries, and views above it, read what was computed.  It lies in memory, not in the case."""
        name = _quoted(view)
        self.run(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}")  # noqa: S608

    def views(self) -> list[str]:
        """The views of the case, those before that others are made of."""
        made = [name for _, text in ddl() for name in re.findall(r"^CREATE VIEW (\w+)", text, re.MULTILINE)]
        return list(dict.fromkeys(made))

    def runs_having(self, relation: str) -> set[str]:
        """Runs in which a table or view has a row."""
        return {str(row[0]) for row in self.run(f"SELECT DISTINCT run_id FROM {_quoted(relation)}").rows}  # noqa: S608


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _asked(
    cursor: duckdb.DuckDBPyConnection,
    sql: str,
    params: Mapping[str, Any] | None = None,
    limit: int | None = None,
    timeout_s: float | None = None,
) -> Result:
    """Rows of one query; one row more than `limit` is fetched, to know whether there were more."""

    def work() -> tuple[list[Any], list[tuple[Any, ...]]]:
        cursor.execute(sql, dict(params) if params else None)
        described = cursor.description or []
        return described, cursor.fetchall() if limit is None else cursor.fetchmany(limit + 1)

    described, rows = _interruptible(cursor, work, timeout_s)
    more = limit is not None and len(rows) > limit
    return Result(
        tuple(str(column[0]) for column in described),
        tuple(str(column[1]) for column in described),
        rows[:limit] if limit is not None else rows,
        more,
    )


def _interruptible(cursor: duckdb.DuckDBPyConnection, work: Callable[[], _T], timeout_s: float | None) -> _T:
    """Run `work` in a thread of its own, so that Ctrl-C and the time limit reach DuckDB while it computes."""
    outcome: Future[_T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed over to the caller, whatever it is
            outcome.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        return outcome.result(timeout_s)
    except FutureTimeout as error:
        raise QueryTimeout(
            f"stopped after {timeout_s:g} s", hint="raise --timeout, or ask for less"
        ) from error
    finally:
        if thread.is_alive():
            cursor.interrupt()
            thread.join()


def _open_read_only(path: Path) -> duckdb.DuckDBPyConnection:
    if not path.exists():
        raise CaseError(
            f"{path}: no such case", hint="make one with: tracelens ingest FILES... --case " + str(path)
        )
    try:
        connection = duckdb.connect(str(path), read_only=True, config=dict(_READ_ONLY_SETTINGS))
    except duckdb.Error as error:
        raise CaseError(f"{path}: not a tracelens case ({_first_line(error)})") from error
    try:
        _check_version(connection, path)
        connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _check_version(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        row = connection.execute("SELECT value FROM case_property WHERE key = 'schema_version'").fetchone()
    except duckdb.Error as error:
        raise CaseError(f"{path}: a DuckDB file, but not a tracelens case") from error
    if row is None or row[0] != schema_version():
        raise CaseError(
            f"{path}: made by a tracelens with other tables (schema {row[0] if row else 'unknown'}, this is {schema_version()})",
            hint="ingest the sources again into a new case; logs are the truth, cases are cheap",
        )


class CaseWriter:
    """A case being written.  Leaving the block without an exception puts it in place; with one, nothing changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = path.resolve()
        """Where the case lies; `path` may be a link to it, and stays one."""
        self._partial = self._target.with_name(f".{self._target.name}.partial")
        self._lock_path = self._target.with_name(f".{self._target.name}.lock")

    def __enter__(self) -> Self:
        self._lock = self._take_lock()
        try:
            self._connection = self._open_copy()
        except BaseException:
            self._drop_partial()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._connection.execute("CHECKPOINT")
            self._connection.close()
            if kind is None:
                self._partial.replace(self._target)
        finally:
            self._drop_partial()

    def _take_lock(self) -> int:
        """Hold the folder entry ``.NAME.lock``: two ingests into one case never mix."""
        try:
            handle = os.open(self._lock_path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise CaseError(f"{self.path}: cannot write there ({error.strerror})") from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
            os.close(handle)
            raise CaseError(
                f"{self.path}: another ingest{f' (process {holder})' if holder else ''} is writing this case",
                hint="wait for it to end, or choose another --case",
            ) from error
        if not self._lock_path.exists() or os.fstat(handle).st_ino != self._lock_path.stat().st_ino:
            os.close(handle)  # whoever held it took the entry away in between
            return self._take_lock()
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        return handle

    def _open_copy(self) -> duckdb.DuckDBPyConnection:
        self._partial.unlink(missing_ok=True)
        known = self._target.exists()
        if known:
            Store(self.path).close()
            shutil.copyfile(self._target, self._partial)
        connection = duckdb.connect(str(self._partial), config={"memory_limit": WRITER_MEMORY})
        self._partial.chmod(0o600)
        connection.execute("SET preserve_insertion_order = false")
        if not known:
            apply_schema(connection)
            connection.execute(
                "INSERT INTO case_property VALUES ('schema_version', $v), ('created_ts', now()::VARCHAR)",
                {"v": schema_version()},
            )
        return connection

    def _drop_partial(self) -> None:
        self._partial.unlink(missing_ok=True)
        self._partial.with_name(self._partial.name + ".wal").unlink(missing_ok=True)
        self._lock_path.unlink(missing_ok=True)
        os.close(self._lock)

    def rows(self, sql: str, params: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Rows of a query on the case being written."""
        return self._connection.execute(sql, dict(params) if params else None).fetchall()

    def sources(self, run_id: str) -> list[dict[str, Any]]:
        """The sources that a run has already."""
        cursor = self._connection.execute("SELECT * FROM source WHERE run_id = $run", {"run": run_id})
        columns = [column[0] for column in cursor.description or []]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]

    def drop_source(self, source_id: int) -> None:
        """Take out a source and every fact it gave."""
        for table in fact_tables(self._connection):
            self._connection.execute(f"DELETE FROM {table} WHERE source_id = $id", {"id": source_id})  # noqa: S608
        self._connection.execute("DELETE FROM source WHERE source_id = $id", {"id": source_id})

    def add_source(self, row: SourceRow) -> int:
        """Enter a source; returns its number."""
        (source_id,) = self._connection.execute(
            "SELECT coalesce(max(source_id), 0) + 1 FROM source"
        ).fetchall()[0]
        self._connection.execute(
            """
            INSERT INTO source BY NAME
            SELECT $source_id AS source_id, $run_id AS run_id, $path AS path, $format AS format, $variant AS variant,
                   $side AS side, $sha256 AS sha256, $size_bytes AS size_bytes, $line_count AS line_count,
                   $understood_count AS understood_count, $skipped_count AS skipped_count, 0 AS record_count,
                   $clock AS clock, $time_basis AS time_basis
            """,
            {
                "source_id": source_id,
                **asdict(row),
            },
        )
        return int(source_id)

    def load(self, table: str, parts: Sequence[Path], source: tuple[str, int], placement: Placement) -> int:
        """Load one source's Parquet parts into a table, stamps placed on UTC; returns the number of rows.

        A file ``loading/TABLE.sql`` shapes the rows of ``part`` first, where a table needs that.
        """
        run_id, source_id = source
        if not parts:
            return 0
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW part AS {self._placed(table, parts, placement)}"
        )
        special = resources.loading() / f"{table}.sql"
        shape = special.read_text(encoding="utf-8") if special.exists() else "SELECT * FROM part"
        before = self._count(table, source_id)
        self._connection.execute(
            f"INSERT INTO {table} BY NAME SELECT $run AS run_id, $source AS source_id, * FROM ({shape})",  # noqa: S608
            {"run": run_id, "source": source_id},
        )
        return self._count(table, source_id) - before

    def _count(self, table: str, source_id: int) -> int:
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE source_id = $id", {"id": source_id})[0][0])  # noqa: S608

    def _placed(self, table: str, parts: Sequence[Path], placement: Placement) -> str:
        """Rows of the parts, stamps on UTC; columns that a format does not write are there, and NULL."""
        files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in parts)
        scan = f"read_parquet([{files}], union_by_name = true)"
        written = dict(self.rows(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {scan})"))  # noqa: S608
        replaced = ", ".join(
            f"{_place(name, placement)} AS {name}" for name, kind in written.items() if kind == "TIMESTAMP"
        )
        columns = self.rows(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = $table", {"table": table}
        )
        missing = "".join(
            f", NULL AS {name}" for (name,) in columns if name not in {*written, "run_id", "source_id"}
        )
        return f"SELECT * {f'REPLACE ({replaced})' if replaced else ''}{missing} FROM {scan}"  # noqa: S608

    def stated_settings(self, source_id: int) -> dict[str, str]:
        """Settings that a source states; the last line that states one holds."""
        return dict(
            self.rows(
                "SELECT key, arg_max(value, line_no) FROM server_setting WHERE source_id = $id AND value IS NOT NULL GROUP BY key",
                {"id": source_id},
            )
        )

    def add_defaults(self, source_id: int, defaults: Sequence[tuple[str, str, str]]) -> int:
        """Enter settings that a version's defaults give, on the line that states the version; returns how many."""
        for key, value, basis in defaults:
            self._connection.execute(
                """
                INSERT INTO server_setting
                SELECT run_id, source_id, coalesce((
                    SELECT min(line_no) FROM server_setting WHERE source_id = $id AND key = 'vllm_version'
                ), 1), $key, $value, $basis
                FROM source WHERE source_id = $id
                """,
                {"id": source_id, "key": key, "value": value, "basis": basis},
            )
        return len(defaults)

    def finish_source(self, source_id: int, record_count: int) -> None:
        """Enter what only the loaded facts tell: number of rows, first and last instant."""
        spans = [
            f"SELECT min({column}) AS low, max({column}) AS high FROM {table} WHERE source_id = $id"  # noqa: S608
            for table, column in _stamp_columns(self._connection)
        ]
        self._connection.execute(
            f"""
            UPDATE source SET record_count = $records, first_ts = span.low, last_ts = span.high
            FROM (SELECT min(low) AS low, max(high) AS high FROM ({" UNION ALL ".join(spans)})) AS span
            WHERE source_id = $id
            """,  # noqa: S608
            {"id": source_id, "records": record_count},
        )

    def settle_zones(self, run_id: str) -> None:
        """Shift server logs of an assumed zone to the zone that the requests they share with other sources show."""
        text = (resources.loading() / "zone.sql").read_text(encoding="utf-8")
        for source_id, zone_s, said in self.rows(text, {"run": run_id}):
            for table, column in _stamp_columns(self._connection):
                self._connection.execute(
                    f"UPDATE {table} SET {column} = {column} - to_seconds($zone) WHERE source_id = $id",  # noqa: S608
                    {"zone": zone_s, "id": source_id},
                )
            self._connection.execute(
                "UPDATE source SET time_basis = regexp_replace(time_basis, 'zone not in the log, UTC assumed[^;]*', $said) "
                "WHERE source_id = $id",
                {"said": said, "id": source_id},
            )

    def run_script(self, name: str, params: Mapping[str, Any] | None = None) -> None:
        """Run one of the SQL files of ``loading/``, statement by statement; each gets the parameters it names."""
        _run_script(self._connection, name, params or {})


def _run_script(connection: duckdb.DuckDBPyConnection, name: str, params: Mapping[str, Any]) -> None:
    text = (resources.loading() / f"{name}.sql").read_text(encoding="utf-8")
    for statement in connection.extract_statements(text):
        wanted = {key: value for key, value in params.items() if key in statement.named_parameters}
        connection.execute(statement, wanted or None)


def _place(column: str, placement: Placement) -> str:
    """SQL for one stamp column: placeholder date to real date, wall clock to UTC."""
    text = column
    passed = ""
    if placement.steps:
        passed = f" + {_passed(placement.steps)} - {_passed(placement.back_steps)}"
    for unit, amount in (("years", placement.years), ("days", placement.days)):
        steps = passed if placement.step_unit == unit else ""
        if amount or steps:
            text = f"({text} + to_{unit}(({amount}{steps})::INTEGER))"
    if placement.zone:
        text = f"timezone('UTC', timezone('{placement.zone}', {text}))"
    if placement.shift_s:
        text = f"({text} - to_microseconds({round(placement.shift_s * 1e6)}))"
    return text


def _passed(lines: tuple[int, ...]) -> str:
    return f"len(list_filter({list(lines)}::BIGINT[], lambda s: s <= line_no))"


def fact_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Tables whose rows name a source, except `source` itself."""
    found = connection.execute(
        "SELECT table_name FROM duckdb_columns() WHERE column_name = 'source_id' AND table_name <> 'source' "
        "AND table_name IN (SELECT table_name FROM duckdb_tables() WHERE NOT temporary) ORDER BY ALL"
    ).fetchall()
    return [row[0] for row in found]


def _stamp_columns(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    tables = fact_tables(connection)
    found = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE data_type = 'TIMESTAMP' ORDER BY ALL"
    ).fetchall()
    return [(table, column) for table, column in found if table in tables]


def _statement(run: Callable[[str, Mapping[str, Any]], Result], sql: str) -> Statement:
    parsed = json.loads(run("SELECT json_serialize_sql($sql)", {"sql": sql}).rows[0][0])
    if parsed["error"]:
        raise QueryError(parsed["error_message"])
    if len(parsed["statements"]) != 1:
        raise QueryError(f"{len(parsed['statements'])} statements instead of one SELECT")
    nodes = list(_nodes(parsed))
    named = {entry["key"] for node in nodes for entry in node.get("cte_map", {}).get("map", ())}
    tables = {node["table_name"] for node in nodes if node.get("type") == "BASE_TABLE"}
    params = {str(node["identifier"]) for node in nodes if node.get("type") == "VALUE_PARAMETER"}
    return Statement(frozenset(tables - named), frozenset(params))


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Every object of a parsed statement."""
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _nodes(part)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a SELECT refers to: relations (its own CTEs left out) and named parameters."""

    relations: frozenset[str]
    params: frozenset[str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table or view: DuckDB's name of its type, and whether each row must have it."""

    type: str
    required: bool


class MemoryCase:
    """A case in memory that is filled by hand.  What is done inside `trial` is undone at its end."""

    def __init__(self) -> None:
        self._connection = memory_case()
        self._columns: dict[str, dict[str, Column]] = {}
        self._reads: dict[str, frozenset[str]] = {}
        described = self.run(
            "SELECT table_name, column_name, data_type, NOT is_nullable FROM duckdb_columns() "
            "WHERE NOT internal ORDER BY table_name, column_index"
        )
        for name, column, kind, required in described.rows:
            self._columns.setdefault(name, {})[column] = Column(kind, required)

    @contextlib.contextmanager
    def trial(self) -> Iterator[Self]:
        """A transaction that is rolled back, so that one case in memory serves many checks."""
        self._connection.begin()
        try:
            yield self
        finally:
            self._connection.rollback()

    def columns(self, name: str) -> Mapping[str, Column]:
        """Columns of a table or view, in order; empty where there is none of that name."""
        return self._columns.get(name, {})

    def freeze(self, view: str) -> None:
        """Put an empty table of the same columns in the place of a view; a table stays as it is."""
        if self.run(
            "SELECT 1 FROM duckdb_views() WHERE NOT internal AND view_name = $name", {"name": view}
        ).rows:
            self._execute(f'CREATE TABLE "_frozen" AS SELECT * FROM "{view}" LIMIT 0')  # noqa: S608
            self._execute(f'DROP VIEW "{view}"; ALTER TABLE "_frozen" RENAME TO "{view}"')

    def insert(self, table: str, *rows: Mapping[str, Any]) -> None:
        """Insert rows; columns that one leaves out are NULL."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        if names:
            columns = ", ".join(map(_quoted, names))
            places = ", ".join(f"({', '.join('?' for _ in names)})" for _ in rows)
            values = [row.get(name) for row in rows for name in names]
            self._execute(f"INSERT INTO {_quoted(table)} ({columns}) VALUES {places}", values)  # noqa: S608

    def statement(self, sql: str) -> Statement:
        """What a SELECT refers to; raises `QueryError` where the text is anything but one SELECT."""
        return _statement(self.run, sql)

    def below(self, relations: Iterable[str]) -> frozenset[str]:
        """Relations, and all that the views among them are made of."""
        found: set[str] = set()
        left = list(relations)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self._views_reads().get(name, ())
        return frozenset(found)

    def _views_reads(self) -> Mapping[str, frozenset[str]]:
        if not self._reads:
            views = self.run("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal").rows
            self._reads = {name: self.statement(sql.partition(" AS ")[2]).relations for name, sql in views}
        return self._reads

    def run_script(self, name: str, params: Mapping[str, Any]) -> None:
        """Run one of the SQL files of ``loading/``, as `CaseWriter.run_script` does."""
        try:
            _run_script(self._connection, name, params)
        except duckdb.Error as error:
            raise QueryError(f"loading/{name}.sql: {error}") from error

    def run(self, sql: str, params: Mapping[str, Any] | None = None) -> Result:
        """Rows of one query; raises `QueryError` with DuckDB's message."""
        cursor = self._execute(sql, dict(params) if params else None)
        described = cursor.description or []
        names, types = (tuple(str(column[at]) for column in described) for at in (0, 1))
        return Result(names, types, cursor.fetchall())

    def _execute(self, sql: str, params: Any = None) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(sql, params)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
