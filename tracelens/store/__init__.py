"""The one place that opens DuckDB: cases are written here, and read here, and nowhere else."""

from __future__ import annotations

from tracelens.store.blank import blank_case
from tracelens.store.holding import CaseLock
from tracelens.store.memory import Column, MemoryCase, Statement
from tracelens.store.narrowing import Narrow
from tracelens.store.parquet import write_parquet
from tracelens.store.placement import Fold, Placement
from tracelens.store.reader import Sitting, Store, sources_of
from tracelens.store.result import Result
from tracelens.store.schema import apply_schema, ddl, memory_case, schema_version
from tracelens.store.stopping import Stop
from tracelens.store.writer import CaseWriter, SourceRow

__all__ = [
    "CaseLock",
    "CaseWriter",
    "Column",
    "Fold",
    "MemoryCase",
    "Narrow",
    "Placement",
    "Result",
    "Sitting",
    "SourceRow",
    "Statement",
    "Stop",
    "Store",
    "apply_schema",
    "blank_case",
    "ddl",
    "memory_case",
    "schema_version",
    "sources_of",
    "write_parquet",
]
