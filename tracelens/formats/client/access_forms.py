"""The forms of a gateway's text access log: a pattern each, and its columns in the shape of `gateway_rows.PASSED_SCHEMA`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from tracelens.formats.client.gateway_rows import PASSED_SCHEMA

_DATE: Final = r"(?P<at>\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4})"
_REQUEST: Final = r"\"(?P<method>[A-Z]{3,7}) (?P<path>\S+)(?: HTTP/[\d.]+)?\""
_NGINX: Final = (
    rf"^(?P<addr>\S+) - \S+ \[{_DATE}\] {_REQUEST} (?P<status>\d{{3}}) (?P<bytes>\d+)(?P<rest>.*)$"
)
_INGRESS: Final = (
    r"^ (?:\"[^\"]*\" ){2}\d+ (?P<rt>\d+\.\d+) \[[^\]]*\] \[[^\]]*\] (?P<upstream>\S+(?:, \S+)*)"
    r" (?:[\d-]+)(?:, [\d-]+)* (?P<urt>[\d.-]+(?:, [\d.-]+)*) (?P<ust>[\d-]+(?:, [\d-]+)*)(?: (?P<rid>[0-9a-f]{32}))?\s*$"
)
_ENVOY: Final = (
    rf"^\[(?P<at>\d{{4}}-\d\d-\d\dT[\d:.]+Z)\] {_REQUEST} (?P<status>\d{{1,3}}) (?P<flags>\S+)"
    r"(?: (?P<details>[a-z][\w{}.:|=-]*|-) [^\"]{1,200} \"[^\"]*\")?"
    r" (?P<received>\d+) (?P<bytes>\d+) (?P<ms>\d+|-) (?P<service>\d+|-)"
    r" \"[^\"]*\" \"[^\"]*\" \"(?P<rid>[^\"]*)\"(?: \"[^\"]*\" \"(?P<upstream>[^\"]*)\")?.*$"
)
_HAPROXY: Final = (
    r"^(?:.*? )?haproxy\[\d+\]: (?P<addr>\S+) \[(?P<at>\d{2}/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d\.\d{3})\] \S+ (?P<upstream>\S+)"
    r" (?P<tr>-?\d+)/(?P<tw>-?\d+)/(?P<tc>-?\d+)/(?P<th>-?\d+)/\+?(?P<ta>-?\d+) (?P<status>-?\d+) \+?(?P<bytes>\d+) \S+ \S+"
    r" (?P<flags>\S{4}) \S+ \S+ (?:\{(?P<captured>[^}]*)\} )?(?:\{[^}]*\} )?" + _REQUEST + r".*$"
)
_NUMBER: Final = r"^\d{1,9}(?:\.\d{1,9})?$"
_TRIES: Final = r"^[\d., :-]*$"
# What operators call nginx's variables in ``name=value`` pairs.
_PAIRS: Final = {
    "msec": r"msec",
    "rt": r"rt|request_time|req_time",
    "uht": r"uht|upstream_header_time",
    "urt": r"urt|upstream_response_time",
    "ust": r"us|ust|upstream_status",
    "rid": r"rid|request_id|req_id|reqid",
    "xrid": r"xrid|x_request_id|http_x_request_id",
    "upstream": r"ua|upstream|upstream_addr|uaddr",
}
_US: Final = 1_000_000
_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Form:
    """One form: its pattern (with the groups ``at``, ``path``, ``status``), how lines become columns, its name for people."""

    name: str
    pattern: re.Pattern[str]
    read: Callable[[pl.DataFrame], pl.DataFrame]
    variant: Callable[[Sequence[str]], str]
    is_local: bool = False


def _groups(lines: pl.DataFrame, pattern: str) -> pl.DataFrame:
    return lines.with_columns(pl.col("text").str.extract_groups(pattern).struct.unnest())


def _finished(columns: pl.DataFrame) -> pl.DataFrame:
    """Columns in the shape of `PASSED_SCHEMA`; those that the form lacks are NULL."""
    path = pl.col("path").str.replace(r"[?#].*$", "").str.slice(0, 200)
    known = columns.with_columns(path=path)
    return known.select(
        pl.col(name).cast(dtype, strict=False).alias(name)
        if name in known.columns
        else pl.lit(None, dtype).alias(name)
        for name, dtype in PASSED_SCHEMA.items()
    )


def _number(column: str) -> pl.Expr:
    """A number, NULL for a dash."""
    found = pl.col(column)
    return pl.when(found.str.contains(_NUMBER)).then(found).cast(pl.Float64, strict=False)


def _seconds(milliseconds: pl.Expr) -> pl.Expr:
    """Seconds to the microsecond: rounded, since Polars divides columns of one row in another way than longer ones."""
    return (milliseconds / _MS).round(6)


def _pair(name: str) -> pl.Expr:
    """The value of a ``name=value`` pair, with or without quotes."""
    return (
        pl.col("rest")
        .str.extract(rf"(?:^|[\s,])(?:{_PAIRS[name]})=(\"[^\"]*\"|[^\s\"]+)", 1)
        .str.strip_chars('"')
        .replace({"": None, "-": None})
    )


def _tries(column: str) -> pl.Expr:
    """Times of all tries as a list; a dash is NULL."""
    value = pl.col(column)
    parts = pl.when(value.str.contains(_TRIES)).then(value).str.replace_all(":", ",").str.split(",")
    return parts.list.eval(pl.element().str.strip_chars().cast(pl.Float64, strict=False))


def _headers() -> pl.Expr:
    """Time to the headers of the last try, from the start of the first: the lengths of those before it are added."""
    header, whole = pl.col("uht_tries"), pl.col("urt_tries")
    before = header.list.len() - 1
    earlier = whole.list.head(before)
    known = earlier.list.eval(pl.element().is_null().cast(pl.Int64)).list.sum() == 0
    return (
        pl.when(before == 0)
        .then(header.list.last())
        .when(known)
        .then(header.list.last() + earlier.list.sum())
    )


def _nginx(lines: pl.DataFrame) -> pl.DataFrame:
    """End of the request in whole seconds, unless ``msec=`` says it better; times from pairs, else from ingress-nginx."""
    found = _groups(lines, _NGINX).with_columns(_pair(name).alias(name) for name in _PAIRS)
    ingress = found["rest"].str.extract_groups(_INGRESS).struct.unnest()
    for name in ingress.columns:
        own = pl.col(name) if name in _PAIRS else pl.lit(None, pl.String)
        found = found.with_columns(ingress[name].alias("_ingress")).with_columns(
            pl.coalesce(own, "_ingress").alias(name)
        )
    found = found.with_columns(_tries("uht").alias("uht_tries"), _tries("urt").alias("urt_tries"))
    exact = (_number("msec") * _US).round(0).cast(pl.Int64, strict=False)
    end = pl.col("at").str.to_datetime("%d/%b/%Y:%H:%M:%S %z", strict=False).dt.epoch("us")
    return _finished(
        found.with_columns(
            end_us=pl.coalesce(exact, end),
            is_coarse=exact.is_null(),
            e2e_s=_number("rt"),
            headers_s=_headers(),
            client_id=pl.coalesce("xrid", "rid"),
            gateway_id="rid",
            attempt=pl.col("ust").str.split(",").list.len(),
            bytes_sent="bytes",
        )
    )


def _nginx_variant(lines: Sequence[str]) -> str:
    first = next((match for line in lines if (match := re.match(_NGINX, line))), None)
    rest = first["rest"] if first else ""
    if re.search(rf"(?:^|[\s,])(?:{_PAIRS['rt']}|{_PAIRS['uht']}|{_PAIRS['urt']})=", rest):
        return "nginx, upstream times"
    return "ingress-nginx" if re.match(_INGRESS, rest) else "combined, no times"


def _envoy(lines: pl.DataFrame) -> pl.DataFrame:
    """Start of the request in milliseconds; the upstream's service time ends with its headers."""
    found = _groups(lines, _ENVOY)
    start = pl.col("at").str.to_datetime("%Y-%m-%dT%H:%M:%S%.fZ", strict=False, time_unit="us").dt.epoch("us")
    rid = pl.col("rid").replace({"": None, "-": None})
    return _finished(
        found.with_columns(
            start_us=start,
            is_coarse=False,
            e2e_s=_seconds(_number("ms")),
            headers_s=_seconds(_number("service")),
            client_id=rid,
            gateway_id=rid,
            bytes_sent="bytes",
        )
    )


def _haproxy(lines: pl.DataFrame) -> pl.DataFrame:
    """Start of the request in milliseconds of local time; TR + Tw + Tc + Tr ends with the headers, Ta is the whole."""
    found = _groups(lines, _HAPROXY)
    start = pl.col("at").str.to_datetime("%d/%b/%Y:%H:%M:%S%.3f", strict=False, time_unit="us").dt.epoch("us")
    parts = [pl.col(name).cast(pl.Int64, strict=False) for name in ("tr", "tw", "tc", "th")]
    reached = pl.min_horizontal(parts) >= 0
    whole = pl.col("ta").cast(pl.Int64, strict=False)
    return _finished(
        found.with_columns(
            start_us=start,
            is_coarse=False,
            e2e_s=pl.when(whole >= 0).then(_seconds(whole)),
            headers_s=pl.when(reached).then(_seconds(pl.sum_horizontal(parts))),
            bytes_sent="bytes",
        )
    )


FORMS: Final[tuple[Form, ...]] = (
    Form("nginx", re.compile(_NGINX), _nginx, _nginx_variant),
    Form("envoy", re.compile(_ENVOY), _envoy, lambda lines: "Envoy, default format"),
    Form("haproxy", re.compile(_HAPROXY), _haproxy, lambda lines: "HAProxy, HTTP log", is_local=True),
)
