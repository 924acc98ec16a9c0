"""What Kubernetes says of a server's pod: ``kubectl describe pod``, ``get pod -o yaml`` or ``json``, and ``get events``.

    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Finished:     Tue, 25 Nov 2025 03:12:44 +0000

How a container ended, which probe ended it, the CPUs that it may use and the arguments that it was started with stand
nowhere else when its log just ends.  Events have ages, not times.  Of the environment only the number of threads is kept:
secrets stand there.  Written from the manual of kubectl 1.22 to 1.33 and from public reports.
"""

from __future__ import annotations

import re
from typing import Final

import polars as pl

from tracelens.formats.base import (
    Chunk,
    Claim,
    Clock,
    Format,
    Head,
    Parsed,
    Side,
    issues_of,
    no_issues,
    no_stamps,
)
from tracelens.formats.gpu import pod_documents

_PLACE: Final = r"^(?P<indent> *)(?P<name>[A-Za-z][\w ./-]*):(?: +(?P<given>\S.*?))? *$"
_EVENT: Final = r"^ *(?:(?P<type>Normal|Warning) +(?P<reason>[A-Z]\w+) +(?P<age>\S.*?)  +(?P<by>\S+)  +(?P<said>\S.*?)) *$"
_LISTED: Final = r"^ *(?:\S+ +)?(?:<unknown>|[\dsmhdy]+)(?: \(x\d+[^)]*\))? +(?P<type>Normal|Warning) +(?P<reason>[A-Z]\w+) +(?P<by>[a-z]+/\S+) +(?P<said>\S.*?) *$"
_LIST_HEADING: Final = r"^(?:NAMESPACE +)?LAST SEEN +TYPE +REASON +OBJECT +MESSAGE"
_EVENT_HEADING: Final = re.compile(r"^ +Type +Reason +Age +From +Message *$")
_INNER: Final = 4
"""Blanks in front of what a container has; its name has two, what is below a key of it six."""
_TIMES: Final = ("%a, %d %b %Y %H:%M:%S %z", "%Y-%m-%dT%H:%M:%S%#z")
_NO_DOCUMENT: Final = "not a whole JSON document"
_TOLD_TO: Final = ("0", "130", "143")
"""Exit codes of a process that ended well, or by SIGINT or SIGTERM."""
_ARGUMENT: Final = r"^ +(?:- )?--([a-z][a-z0-9-]*)(?:[= ](\S+))?$"
_VERSION: Final = r"vllm[^:\s]*:v?(\d+\.\d+\.\d+)"


def sniff(head: Head) -> Claim | None:
    """Claim a description with containers in it, a pod's own document, or a list of events."""
    text = set(head.lines)
    form = pod_documents.form_of(head.lines)
    if form is not None:
        return Claim(f"kubectl get -o {form}", Clock.UTC, {"listed": False, "document": form})
    if "Containers:" in text and any(line.startswith("Name: ") for line in head.lines):
        return Claim("kubectl describe pod", Clock.UTC, {"listed": False})
    if "Events:" in text and any(map(_EVENT_HEADING.match, head.lines)):
        return Claim("kubectl describe pod, its events alone", Clock.NONE, {"listed": False})
    if head.first.startswith(("LAST SEEN", "NAMESPACE ")) and head.first.split()[-5:-3] == ["SEEN", "TYPE"]:
        return Claim("kubectl get events", Clock.NONE, {"listed": True})
    return None


def parse(chunk: Chunk) -> Parsed:
    """Ends of containers and events as rows of `log_event`; limits, version and arguments as settings."""
    if chunk.claim.settings["listed"]:
        return _parse_list(chunk)
    if "document" in chunk.claim.settings:
        return _parse_document(chunk)
    lines = _placed(chunk.lines)
    ends = _ends(lines)
    events = pl.concat([ends, _events(_read(lines.filter(pl.col("section") == "Events"), _EVENT))])
    stamps = lines.filter(pl.col("name").is_in(["Started", "Finished", "Start Time"]))
    stamps = stamps.select("line_no", stamp=_instant(pl.col("given"))).drop_nulls("stamp")
    tables = {"log_event": events.sort("line_no"), "server_setting": _settings(lines)}
    return Parsed(tables, no_issues(), lines.height, stamps)


def _parse_document(chunk: Chunk) -> Parsed:
    texts = chunk.lines["text"].fill_null("").to_list()
    is_yaml = chunk.claim.settings["document"] == "yaml"
    values = list(pod_documents.yaml_values(texts)) if is_yaml else pod_documents.json_values(texts)
    if values is None:
        said = chunk.lines.filter(pl.col("text").str.contains(r"\S"))
        return Parsed({}, issues_of(said, _NO_DOCUMENT), chunk.lines.height - said.height, no_stamps())
    lines = pod_documents.described(values)
    told = {"line_no": pl.Int64, "reason": pl.String, "said": pl.String}
    evicted = pl.DataFrame(list(pod_documents.evictions(values)), schema=told, orient="row")
    events = pl.concat([_ends(lines), _events(evicted.with_columns(type=pl.lit("Warning")))])
    stamps = events.select("line_no", stamp="event_ts").drop_nulls("stamp")
    tables = {"log_event": events.sort("line_no"), "server_setting": _settings(lines)}
    return Parsed(tables, no_issues(), chunk.lines.height, stamps)


def _parse_list(chunk: Chunk) -> Parsed:
    rows = _read(chunk.lines, _LISTED)
    passed = pl.col("text").str.contains(_LIST_HEADING) | ~pl.col("text").str.contains(r"\S")
    foreign = rows.filter(pl.col("reason").is_null() & ~passed)
    issues = issues_of(foreign, "no row of the list of events")
    return Parsed({"log_event": _events(rows)}, issues, rows.height - issues.height, no_stamps())


def _placed(lines: pl.DataFrame) -> pl.DataFrame:
    """Add each line's key and value and where it stands: ``section`` (Containers), ``container``, ``block`` (Last State)."""
    split = lines.with_columns(pl.col("text").str.extract_groups(_PLACE).struct.unnest())
    depth = pl.col("indent").str.len_bytes()
    begins = depth == 0
    filled = split.with_columns(
        depth=depth,
        section=pl.when(begins).then("name").forward_fill(),
        container=pl.when(begins).then(pl.lit("")).when(depth == _INNER // 2).then("name").forward_fill(),
        block=pl.when(depth < _INNER).then(pl.lit("")).when(depth == _INNER).then("name").forward_fill(),
        block_line=pl.when(depth <= _INNER).then("line_no").forward_fill(),
    )
    return filled.with_columns(pl.col("section").fill_null(""), pl.col("container").fill_null(""))


def _instant(text: pl.Expr) -> pl.Expr:
    stamp = pl.coalesce(text.str.to_datetime(form, strict=False, time_unit="us") for form in _TIMES)
    return stamp.dt.convert_time_zone("UTC").dt.replace_time_zone(None)


def _ends(lines: pl.DataFrame) -> pl.DataFrame:
    """The ends of containers, each at the line of its state."""
    inner = lines.filter((pl.col("section") == "Containers") & pl.col("block").is_in(["State", "Last State"]))

    def given(name: str) -> pl.Expr:
        return pl.col("given").filter(pl.col("name") == name).first()

    states = inner.group_by("block_line", maintain_order=True).agg(
        pl.col("line_no").max().alias("last_line_no"),
        container=pl.col("container").first(),
        state=pl.col("given").filter(pl.col("name").is_in(["State", "Last State"])).first(),
        reason=given("Reason"),
        code=given("Exit Code"),
        finished=given("Finished"),
    )
    ended = states.filter((pl.col("state") == "Terminated") & pl.col("code").is_not_null())
    is_ordered = pl.col("code").is_in(_TOLD_TO) & ~pl.col("reason").fill_null("").str.starts_with("OOM")
    return _rows(
        ended.rename({"block_line": "line_no"}),
        kind=pl.when(is_ordered).then(pl.lit("stop")).otherwise(pl.lit("dead")),
        message=pl.format(
            "Container {} terminated: {}, exit code {}",
            "container",
            pl.col("reason").fill_null("no reason"),
            "code",
        ),
        event_ts=_instant(pl.col("finished")),
    )


def _read(lines: pl.DataFrame, pattern: str) -> pl.DataFrame:
    return lines.select("line_no", "text", pl.col("text").str.extract_groups(pattern).struct.unnest())


def _events(rows: pl.DataFrame) -> pl.DataFrame:
    said, reason = pl.col("said"), pl.col("reason")
    kind = (
        pl.when((reason == "Killing") & said.str.contains(r"failed (?:liveness|startup) probe"))
        .then(pl.lit("dead"))
        .when(reason.is_in(["Killing", "Preempted"]))
        .then(pl.lit("stop"))
        .when(reason.is_in(["Evicted", "OOMKilling", "SystemOOM"]))
        .then(pl.lit("dead"))
        .when(pl.col("type") == "Warning")
        .then(pl.lit("warning"))
    )
    known = rows.with_columns(kind=kind, last_line_no="line_no").drop_nulls("kind")
    return _rows(
        known,
        kind=pl.col("kind"),
        message=pl.format("{}: {}", reason, said),
        event_ts=pl.lit(None, pl.Datetime("us")),
    )


def _rows(frame: pl.DataFrame, kind: pl.Expr, message: pl.Expr, event_ts: pl.Expr) -> pl.DataFrame:
    level = {"dead": "ERROR", "warning": "WARNING", "stop": "INFO"}
    return frame.select(
        pl.col("line_no").cast(pl.Int64),
        pl.col("last_line_no").cast(pl.Int64),
        event_ts=event_ts,
        error_s=pl.when(event_ts.is_not_null()).then(1.0),
        level=kind.replace_strict(level, default=None, return_dtype=pl.String),
        kind=kind,
        process=pl.lit("kubelet"),
        origin=pl.lit(None, pl.String),
        message=message,
    )


def _settings(lines: pl.DataFrame) -> pl.DataFrame:
    """What the container with the GPU was given: CPUs, threads, version, arguments; of the only one, where none has a GPU."""
    inner = lines.filter((pl.col("section") == "Containers") & (pl.col("container") != ""))
    has_gpu = inner.filter((pl.col("block") == "Limits") & pl.col("name").str.contains(r"\.com/(?:gpu|mig)"))
    names = has_gpu["container"].unique().to_list() or inner["container"].unique().to_list()
    own = inner.filter(pl.col("container") == names[0]) if len(names) == 1 else inner.clear()
    name, block, given = pl.col("name"), pl.col("block"), pl.col("given")
    cores = given.str.strip_suffix("m").cast(pl.Float64, strict=False) / pl.when(
        given.str.ends_with("m")
    ).then(1000).otherwise(1)
    stated = own.select(
        "line_no",
        cpu_quota_cores=pl.when((block == "Limits") & (name == "cpu")).then(
            cores.round(3).cast(pl.String).str.strip_suffix(".0")
        ),
        omp_num_threads=pl.when((block == "Environment") & (name == "OMP_NUM_THREADS")).then(
            given.str.extract(r"^(\d{1,6})$")
        ),
        vllm_version=pl.when(block == "Image").then(given.str.extract(_VERSION)),
    ).unpivot(index="line_no", variable_name="key", value_name="value")
    both = pl.concat([stated, _arguments(own)]).drop_nulls("value")
    return both.select("line_no", "key", "value", basis=pl.lit("stated")).sort("line_no")


def _arguments(own: pl.DataFrame) -> pl.DataFrame:
    """Arguments with a value, on their own line or the next one; ingest takes the values of secrets off."""
    texts = own.filter(pl.col("block").is_in(["Args", "Command"]))
    flag, inline = pl.col("text").str.extract(_ARGUMENT, 1), pl.col("text").str.extract(_ARGUMENT, 2)
    below = pl.col("text").str.strip_chars().shift(-1)
    value = inline.fill_null(pl.when(~below.str.starts_with("-")).then(below.str.extract(r"^(\S+)$")))
    return texts.select("line_no", key=flag.str.replace_all("-", "_"), value=value).drop_nulls("key")


FORMAT: Final = Format(
    name="pod_description",
    title="kubectl describe pod, get pod -o yaml or json, get events",
    side=Side.SERVER,
    fills=("log_event", "server_setting"),
    sniff=sniff,
    parse=parse,
    whole=True,
    versions="kubectl 1.22 to 1.33",
    complete="How containers ended, probes, evictions and warnings; CPU limit, arguments and version of the container with the GPU. "
    "Ages of events are no times; events as documents, probes and counts of restarts are passed over.",
    record="kubectl describe pod POD > pod.txt; kubectl get pod POD -o yaml > pod.yaml; kubectl get events --sort-by=.lastTimestamp > events.txt",
    sample="oom_killed.txt",
)
