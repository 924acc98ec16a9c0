"""Notes on the host's CPUs: environment variables, cgroup limits and core counts, one ``key=value`` a line.

    OMP_NUM_THREADS=
    nproc(node)=128
    cpu.max=400000 100000

People write such a file by hand or with ``env; nproc; cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.stat``, and paste it with or
without the commands; then the quota stands on a line of its own, without its name.  Only the keys of
`KEYS` become settings: an environment holds secrets, so nothing else of it is kept.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import Chunk, Claim, Clock, Format, Head, Parsed, Side, issues_of, no_stamps
from tracelens.formats.gpu.env_report import is_report

KEYS: Final = {
    "OMP_NUM_THREADS": "omp_num_threads",
    "nproc": "host_cpu_count",
    "nproc(node)": "host_cpu_count",
    "CPU(s)": "host_cpu_count",
    "cpu.max": "cpu_quota_cores",
    "cpu.cfs_quota_us": "cpu_cfs_quota_us",
    "cpu.cfs_period_us": "cpu_cfs_period_us",
    "nr_periods": "cgroup_period_count",
    "nr_throttled": "cgroup_throttled_count",
}
"""Name in the file (environment, nproc, lscpu, cgroup 2 and 1) and the setting it becomes."""

_LINE: Final = (
    r"^\s*(?:export )?(?:/\S*/)?(?P<name>[A-Za-z_][\w.]*(?:\([a-z]+\))?)(?: *[=:] *|\s+)(?P<given>\S.*?)?\s*$"
)
_KNOWN: Final = re.compile(
    rf"^\s*(?:export )?(?:/\S*/)?({'|'.join(re.escape(name) for name in KEYS)})(?:\s*[=:]\s*(?:-?\d[\d ]*|max \d+)?| +-?\d+)\s*$"
)
_PRINTED: Final = re.compile(
    r"^\s*(?:((?:max|\d{1,12}) \d{4,7})|(?:\S*[$#>] *)?cat(?: /sys/fs/cgroup/\S*)+|\S*[$#>] *nproc)\s*$"
)
"""The one line of ``cpu.max`` as ``cat`` prints it, and the commands above such lines."""
_STAT: Final = re.compile(r"^\s*(?:\w+_usec|nr_\w+|throttled_time) \d+\s*$")
_PAIR: Final = re.compile(r"^\s*(?:export )?[\w./()-]+ *[=:]")
_NOTE: Final = re.compile(r"^\s*(?:#.*)?$")
_MIN_SHARE: Final = 0.5
"""Share of the lines that must be pairs: a script or a log that sets a variable is no such file."""

_NUMBER: Final = r"^\d{1,12}$"
_QUOTA: Final = r"^(\d{1,12}) (\d{1,12})$"


def sniff(head: Head) -> Claim | None:
    """Claim a short list of pairs with at least one key that is known; reports on a pod or a machine are other formats'."""
    if "Containers:" in head.lines or is_report(head.lines):
        return None
    said = [line for line in (*head.lines, *head.sampled) if not _NOTE.match(line)]
    known = sum(1 for line in said if _KNOWN.match(line) or ("cpu.max" in line and _PRINTED.match(line)))
    pairs = sum(1 for line in said if any(form.match(line) for form in (_KNOWN, _PAIR, _PRINTED, _STAT)))
    return Claim("pairs", Clock.NONE) if known and pairs >= max(1, _MIN_SHARE * len(said)) else None


def parse(chunk: Chunk) -> Parsed:
    """Known keys as rows of `server_setting`; a known key with a value that cannot be read is an issue."""
    text = pl.col("text")
    split = chunk.lines.with_columns(text.str.extract_groups(_LINE).struct.unnest())
    quota = text.str.extract(_PRINTED.pattern, 1)
    name = pl.when(quota.is_null()).then("name").otherwise(pl.lit("cpu.max"))
    split = split.with_columns(name=name, given=pl.coalesce(quota, "given"))
    key = pl.col("name").replace_strict(KEYS, default=None, return_dtype=pl.String)
    rows = split.with_columns(key=key, value=_value()).filter(pl.col("key").is_not_null())
    unread = rows.filter(pl.col("value").is_null() & ~_says_none())
    own = [text.str.contains(form.pattern) for form in (_NOTE, _PAIR, _PRINTED, _STAT)]
    foreign = split.filter(~pl.any_horizontal(own) & key.is_null())
    issues = pl.concat(
        [issues_of(unread, "value not readable"), issues_of(foreign, "no pair of key and value")]
    ).sort("line_no")
    settings = rows.join(unread, on="line_no", how="anti").select(
        "line_no", "key", "value", basis=pl.lit("stated")
    )
    tables = {"server_setting": settings} if settings.height else {}
    return Parsed(tables, issues, chunk.lines.height - issues.height, no_stamps())


def _value() -> pl.Expr:
    """A whole number as written; of ``cpu.max`` the cores (quota over period)."""
    given, name = pl.col("given"), pl.col("name")
    quota, period = (given.str.extract(_QUOTA, group).cast(pl.Float64, strict=False) for group in (1, 2))
    cores = pl.when(period > 0).then((quota / period).round(3)).cast(pl.String).str.replace(r"\.0$", "")
    return pl.when(name == "cpu.max").then(cores).when(given.str.contains(_NUMBER)).then(given)


def _says_none() -> pl.Expr:
    """No value (an empty variable), or no limit (``max``, -1)."""
    return pl.col("given").is_null() | pl.col("given").str.contains(r"^(?:max\b.*|-1|\"\")$")


FORMAT: Final = Format(
    name="host_env",
    title="host CPU notes (environment, cgroup)",
    side=Side.SERVER,
    fills=("server_setting",),
    sniff=sniff,
    parse=parse,
    versions="Linux cgroup 1 and 2, nproc, lscpu",
    complete="CPU limits of the container and threads of the process.",
    record="(nproc; env | grep THREADS; cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu.stat) > host_env.txt",
    sample="cgroup_stat.txt",
)
