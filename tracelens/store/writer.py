"""Writing a case, completely or not at all.

`CaseWriter` works on a copy beside the case and puts it in the case's place in one step at the end.  Whoever reads
meanwhile sees the old state.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import duckdb

from tracelens import resources
from tracelens.errors import CaseError
from tracelens.store.allowance import SILENT, WRITER_SETTINGS
from tracelens.store.blank import place_blank
from tracelens.store.holding import CaseLock
from tracelens.store.keeping import clocks_computed, keep_views, open_tables
from tracelens.store.parts import load_parts
from tracelens.store.placement import Placement, placed
from tracelens.store.reader import Store
from tracelens.store.schema import (
    fact_tables,
    run_script,
    stamp_columns,
)

_FULL: Final = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EROFS}


def _is_full(error: BaseException) -> bool:
    """Whether the disk refused: no space, a quota, a limit on a file's size, a fault of it."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    return isinstance(error, duckdb.IOException | duckdb.FatalException)


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
    options: str = "{}"


class CaseWriter:
    """A case being written.  Leaving the block without an exception puts it in place; with one, nothing changed.

    Takes the case's lock, unless its caller holds it already.  Raises `CaseError` where the disk is full.
    """

    def __init__(self, path: Path, lock: CaseLock | None = None) -> None:
        self.path = path
        self._given, self._lock = lock is not None, lock or CaseLock(path)
        self._partial = self._lock.folder / "case.duckdb"

    def __enter__(self) -> Self:
        if not self._given:
            self._lock.__enter__()
        try:
            with self._told():
                self._connection = self._open_copy()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._told():
                if kind is None:
                    keep_views(self._connection)
                    self._connection.execute("CHECKPOINT")
                self._connection.close()
                if kind is None:
                    self._partial.replace(self._lock.target)
                elif isinstance(error, duckdb.Error) and _is_full(error):
                    raise error
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._given:
            self._partial.unlink(missing_ok=True)
        else:
            self._lock.__exit__()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What the disk refuses, in words."""
        try:
            yield
        except (duckdb.Error, OSError) as error:
            if not _is_full(error):
                raise
            reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            raise CaseError(
                f"{self.path}: cannot be written, it is as it was before ({reason})",
                hint="free space on its disk, or choose a --case on another one",
            ) from error

    def _open_copy(self) -> duckdb.DuckDBPyConnection:
        target = self._lock.target
        known = target.exists()
        if known:
            Store(self.path).close()
            shutil.copyfile(target, self._partial)
        else:
            place_blank(self._partial)
        self._partial.chmod(0o600)
        connection = duckdb.connect(str(self._partial), config=dict(WRITER_SETTINGS))
        connection.execute(SILENT)
        if not known:
            connection.execute("INSERT INTO case_property VALUES ('created_ts', now()::VARCHAR)")
        open_tables(connection)
        if known:
            connection.execute("CHECKPOINT")
        return connection

    def keep_property(self, key: str, value: str) -> None:
        """Enter a property of the case, where it has none of that name yet."""
        self._connection.execute(
            "INSERT INTO case_property VALUES ($key, $value) ON CONFLICT DO NOTHING",
            {"key": key, "value": value},
        )

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
                   $clock AS clock, $time_basis AS time_basis, $options AS options
            """,
            {
                "source_id": source_id,
                **asdict(row),
            },
        )
        return int(source_id)

    def load(self, table: str, parts: Sequence[Path], source: tuple[str, int], placement: Placement) -> int:
        """Load one source's Parquet parts into a table, stamps placed on UTC; returns the number of rows."""
        return load_parts(self._connection, table, parts, source, placement)

    def span(self, source_id: int, ends: Sequence[tuple[int, datetime]], placement: Placement) -> None:
        """Enter a source's first and last instant, out of some (line number, stamp as written) that have them."""
        if not ends:
            return
        stamps = ", ".join(f"({line_no}, TIMESTAMP '{stamp}')" for line_no, stamp in ends)
        self._connection.execute(
            f"""
            UPDATE source SET first_ts = span.low, last_ts = span.high
            FROM (
                SELECT min(at_ts) AS low, max(at_ts) AS high
                FROM (SELECT {placed("stamp", placement)} AS at_ts FROM (VALUES {stamps}) AS written (line_no, stamp))
            ) AS span
            WHERE source_id = $id
            """,  # noqa: S608
            {"id": source_id},
        )

    def _count(self, table: str, source_id: int) -> int:
        return int(self.rows(f"SELECT count(*) FROM {table} WHERE source_id = $id", {"id": source_id})[0][0])  # noqa: S608

    def derive(self, run_id: str, source_id: int) -> dict[str, int]:
        """Enter what the scrapes of a source say of engine, GPUs and settings; returns the number of rows by table."""
        if not self.rows(
            "SELECT 1 FROM metric_sample WHERE source_id = $id AND scrape_index IS NOT NULL LIMIT 1",
            {"id": source_id},
        ):
            return {}
        for name in ("metrics_engine", "metrics_gpu"):
            run_script(self._connection, name, {"run": run_id, "source": source_id})
        tables = ("engine_sample", "gpu_sample", "server_setting")
        return {table: count for table in tables if (count := self._count(table, source_id))}

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

    def finish_sources(self, record_counts: Mapping[int, int]) -> None:
        """Enter what only the loaded facts tell: number of rows, first and last instant, where no line without a fact has others."""
        spans = [
            f"SELECT source_id, min({column}) AS low, max({column}) AS high FROM {table} "  # noqa: S608
            "INNER JOIN done USING (source_id) GROUP BY source_id"
            for table, column in stamp_columns(self._connection)
        ]
        self._connection.execute(
            f"""
            WITH done AS (SELECT unnest($sources) AS source_id, unnest($counts) AS record_count),
            span AS (SELECT source_id, min(low) AS low, max(high) AS high FROM ({" UNION ALL ".join(spans)}) GROUP BY source_id)
            UPDATE source
            SET record_count = found.record_count,
                first_ts = least(first_ts, found.low), last_ts = greatest(last_ts, found.high)
            FROM (FROM done LEFT JOIN span USING (source_id)) AS found
            WHERE source.source_id = found.source_id
            """,  # noqa: S608
            {"sources": list(record_counts), "counts": list(record_counts.values())},
        )

    def settle_zones(self, run_id: str) -> None:
        """Shift server logs of an assumed zone to the zone that the requests they share with other sources show."""
        text = (resources.loading() / "zone.sql").read_text(encoding="utf-8")
        for source_id, zone_s, said in self.rows(text, {"run": run_id}):
            for table, column in stamp_columns(self._connection):
                self._connection.execute(
                    f"UPDATE {table} SET {column} = {column} - to_seconds($zone) WHERE source_id = $id",  # noqa: S608
                    {"zone": zone_s, "id": source_id},
                )
            self._connection.execute(
                "UPDATE source SET first_ts = first_ts - to_seconds($zone), last_ts = last_ts - to_seconds($zone), "
                "time_basis = regexp_replace(time_basis, 'zone not in the log, UTC assumed[^;]*', $said) "
                "WHERE source_id = $id",
                {"zone": zone_s, "said": said, "id": source_id},
            )

    def join(self, run_id: str) -> None:
        """Join what the sources of a run say of the same requests (``loading/join.sql``)."""
        with clocks_computed(self._connection):
            run_script(self._connection, "join", {"run": run_id})
