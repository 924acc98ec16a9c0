"""What a vLLM server takes for settings that nobody set, by version: assumptions, and named as such.

Versions read: 0.2.7 to 0.33.0, the OpenAI server (not the offline ``LLM`` class, which takes larger values).
Where a default depends on something unknown, such as the size of the GPU, the smaller value is given and the
basis says so.  Memory is in GiB as torch reports it: a "80 GB" card has about 79.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Version = tuple[int, int, int]

V0, V1 = "V0", "V1"
FIRST: Final[Version] = (0, 2, 0)
NEWEST: Final[Version] = (0, 33, 0)
_END: Final[Version] = (1_000_000, 0, 0)
_NO_V0_SINCE: Final[Version] = (0, 11, 1)
_V1_IS_DEFAULT: Final[Version] = (0, 8, 0)
_FIRST_V1: Final[Version] = (0, 6, 4)
# V0 turns chunked prefill on by itself for models longer than this, where the model can.
_LONG_MODEL_LEN: Final = 32_768


@dataclass(frozen=True, slots=True)
class Default:
    """One row of the table: what an engine takes for `key` in ``[since, until)``.

    `tiers` are (GPU memory in GiB from which on, value), the smallest first; `small` names GPUs that
    count as the smallest whatever their memory.  `per_rank` multiplies by the world size.
    """

    key: str
    engine: str
    since: Version
    until: Version
    tiers: tuple[tuple[int, str], ...]
    small: tuple[str, ...] = ()
    platform: str = "gpu"
    per_rank: bool = False
    note: str = ""


def _one(value: str) -> tuple[tuple[int, str], ...]:
    return ((0, value),)


_SEATS = ((0, "256"), (70, "1024"))
_BUDGET = ((0, "2048"), (70, "8192"))
# GPUs that count as small, and the most memory that one of them has, in GiB.
_SMALL: Final = {"A100": 80.0, "GB10": 128.0}
_A100 = ("A100",)

TABLE: Final = (
    Default("max_num_seqs", V0, FIRST, _END, _one("256"), platform=""),
    Default("max_num_seqs", V1, _FIRST_V1, (0, 8, 0), _one("256")),
    Default("max_num_seqs", V1, (0, 8, 0), (0, 10, 0), _SEATS),
    Default("max_num_seqs", V1, (0, 10, 0), (0, 33, 0), _SEATS, small=_A100),
    Default("max_num_seqs", V1, (0, 33, 0), _END, _SEATS, small=("A100", "GB10")),
    Default("max_num_seqs", V1, (0, 9, 0), _END, _one("128"), platform="cpu", per_rank=True),
    Default("max_num_batched_tokens", V1, _FIRST_V1, (0, 8, 0), _one("2048")),
    Default("max_num_batched_tokens", V1, (0, 8, 0), (0, 10, 0), _BUDGET),
    Default("max_num_batched_tokens", V1, (0, 10, 0), (0, 33, 0), _BUDGET, small=_A100),
    Default("max_num_batched_tokens", V1, (0, 33, 0), _END, (*_BUDGET, (160, "16384")), small=("A100", "GB10")),
    Default("max_num_batched_tokens", V1, (0, 9, 0), _END, _one("2048"), platform="cpu", per_rank=True),
    Default("enable_prefix_caching", V0, FIRST, _END, _one("False"), platform=""),
    Default("enable_prefix_caching", V1, _FIRST_V1, _END, _one("True"), platform="", note="some models cannot"),
    Default("enable_chunked_prefill", V1, _FIRST_V1, _END, _one("True"), platform="", note="some models cannot"),
    Default("gpu_memory_utilization", V0, FIRST, _END, _one("0.9")),
    Default("gpu_memory_utilization", V1, _FIRST_V1, (0, 10, 0), _one("0.9")),
    Default("gpu_memory_utilization", V1, (0, 10, 0), (0, 32, 0), _one("0.9"), note="0.92 in later ones"),
    Default("gpu_memory_utilization", V1, (0, 32, 0), _END, _one("0.92")),
    Default("block_size", V0, FIRST, _END, _one("16")),
    Default("block_size", V1, _FIRST_V1, _END, _one("16"), note="more with some attention backends"),
    Default("block_size", V0, (0, 9, 0), _END, _one("128"), platform="cpu"),
    Default("block_size", V1, (0, 9, 0), _END, _one("128"), platform="cpu"),
)  # fmt: skip
"""Defaults by version.  V0's token budget and chunked prefill depend on other settings: `_v0_scheduler`."""

# V0's token budget with chunked prefill on.  0.6.5 was not read: the smaller of its neighbours.
_V0_CHUNK: Final = (((0, 6, 6), "2048"), (FIRST, "512"))
_V0_WHOLE = 2048


@dataclass(frozen=True, slots=True)
class Server:
    """What is known of a server that its defaults depend on; None is unknown."""

    version: Version
    engine: str
    platform: str
    world_size: int
    gpu_memory_gib: float | None
    gpu_name: str | None
    max_model_len: int | None
    chunked_prefill: str | None


def version_of(text: str | None) -> Version | None:
    """Read a release's number: ``0.8.5.post1`` is (0, 8, 5); None for builds from source (``0.1.dev20051+g48``)."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})(?!\d)", text or "")
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def defaults(stated: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(key, value, basis) of the settings that a server did not state.

    `stated` maps settings to values as `settings` gives them; ``None`` counts as not stated.  ``gpu_memory_gib``,
    ``gpu_name`` and ``platform`` make the answer sharper.  Without ``vllm_version``, ``vllm_version_below`` (from
    the look of the log: no ``[`` before the file name means below 0.8.0) or ``engine_version`` = ``V0`` narrow it:
    then only what all those versions share is given.  Otherwise nothing is.
    """
    known = {key: value for key, value in stated.items() if value not in ("None", "", None)}
    version = version_of(known.get("vllm_version"))
    if version is not None:
        return _at(version, known) if version >= FIRST else []
    below = version_of(known.get("vllm_version_below"))
    if below is None and known.get("engine_version") == V0:
        below = _NO_V0_SINCE
    return _shared(below, known) if below and "vllm_version" not in known else []


def _shared(below: Version, known: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Defaults that are the same in every version below one."""
    edges = {row.since for row in TABLE} | {since for since, _ in _V0_CHUNK} | {FIRST}
    versions = [edge for edge in edges if FIRST <= edge < below] or [FIRST]
    same = set.intersection(*({row[:2] for row in _unstated(version, known)} for version in versions))
    name = ".".join(map(str, below))
    return [
        (key, value, f"default of every version before {name}{why}; the version is not stated")
        for key, value, why in _unstated(FIRST, known)
        if (key, value) in same and key != "engine_version"
    ]


def _at(version: Version, known: Mapping[str, str]) -> list[tuple[str, str, str]]:
    name = known.get("vllm_version") or ".".join(map(str, version))
    late = "; later than 0.33.0, the last version that was read" if version > NEWEST else ""
    return [(key, value, f"default of {name}{why}{late}") for key, value, why in _unstated(version, known)]


def _unstated(version: Version, known: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """(key, value, what it hangs on) of settings that are not known."""
    server = _server(version, known)
    found = (*_engine(server), *_v0_scheduler(server), *_tabled(server))
    return [row for row in found if row[0] not in known]


def _server(version: Version, known: Mapping[str, str]) -> Server:
    platform = known.get("platform", known.get("device_config", "gpu"))
    ranks = (_int(known.get(f"{way}_parallel_size")) or 1 for way in ("tensor", "pipeline"))
    return Server(
        version=version,
        engine=known.get("engine_version") or (V1 if version >= _V1_IS_DEFAULT else V0),
        platform="gpu" if platform in ("cuda", "rocm") else platform,
        world_size=max(1, next(ranks) * next(ranks)),
        gpu_memory_gib=_float(known.get("gpu_memory_gib") or _memory_in_name(known.get("gpu_name"))),
        gpu_name=known.get("gpu_name"),
        max_model_len=_int(known.get("max_model_len")),
        chunked_prefill=known.get("enable_chunked_prefill"),
    )


def _engine(server: Server) -> Iterator[tuple[str, str, str]]:
    if server.version < _FIRST_V1 or server.version >= _NO_V0_SINCE:
        yield "engine_version", server.engine, ", which has no other engine"
    else:
        yield "engine_version", server.engine, "; VLLM_USE_V1 and unsupported features choose the other one"


def _tabled(server: Server) -> Iterator[tuple[str, str, str]]:
    for row in TABLE:
        if _holds(row, server):
            value, why = _tier(row, server)
            where = " on CPU" if server.platform == "cpu" else ""
            notes = "; ".join(filter(None, (why, row.note)))
            yield row.key, value, where + (f" ({notes})" if notes else "")


def _holds(row: Default, server: Server) -> bool:
    here = row.since <= server.version < row.until and row.engine == server.engine
    return here and row.platform in ("", server.platform)


def _tier(row: Default, server: Server) -> tuple[str, str]:
    smallest = row.tiers[0][1]
    if row.per_rank:
        return str(int(smallest) * server.world_size), ""
    if len(row.tiers) == 1:
        return smallest, ""
    if any(name in (server.gpu_name or "") for name in row.small):
        return smallest, f"{server.gpu_name} counts as small"
    spelled = ", ".join(f"{value} from {gib} GiB" for gib, value in row.tiers[1:])
    memory = server.gpu_memory_gib
    if memory is None:
        return smallest, f"GPU memory unknown: {smallest} below 70 GiB, {spelled}"
    if not server.gpu_name and row.tiers[1][0] <= memory <= max(
        (_SMALL[name] for name in row.small), default=0
    ):
        return smallest, f"GPU name unknown: {smallest} for {' and '.join(row.small)}, else {spelled}"
    return [value for gib, value in row.tiers if gib <= memory][-1], f"GPU of {memory:g} GiB"


def _v0_scheduler(server: Server) -> Iterator[tuple[str, str, str]]:
    """V0: the token budget follows chunked prefill, which follows the model's length."""
    if server.engine != V0:
        return
    length, chunked = server.max_model_len, server.chunked_prefill
    chunk = next(value for since, value in _V0_CHUNK if server.version >= since)
    if chunked == "True":
        yield "max_num_batched_tokens", chunk, " with chunked prefill"
    elif chunked is None and (length is None or length > _LONG_MODEL_LEN):
        long = f" (on by itself where max_model_len is above {_LONG_MODEL_LEN})"
        yield "enable_chunked_prefill", "False", long
        whole = f" if it chunks; without chunked prefill max_model_len, at least {_V0_WHOLE}"
        yield "max_num_batched_tokens", chunk, whole
    else:
        yield "enable_chunked_prefill", "False", ""
        unknown = " (max_model_len unknown: it is the larger of the two)" if length is None else ""
        yield "max_num_batched_tokens", str(max(length or 0, _V0_WHOLE)), f" without chunked prefill{unknown}"


def _memory_in_name(gpu_name: str | None) -> str | None:
    """80 of ``NVIDIA_H100_80GB_HBM3``: nominal, near enough to tell the tiers apart."""
    found = re.search(r"(\d{1,4})GB", gpu_name or "")
    return found[1] if found else None


def _int(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"\d{1,12}", text) else None


def _float(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?", text) else None
