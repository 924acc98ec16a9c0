"""What a vLLM server says about its own configuration, line by line.

Input are messages without their log header.  Keys are vLLM's own names (``max_num_seqs``), whatever a line
calls them; values are text as written, without quotes and thousands commas.  A value ``None`` means that
nobody set it: `defaults` then tells what the version takes.
Sources: vLLM 0.2.7 to 0.33.0; each form below names the versions that write it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from tracelens.formats.server.python_text import arguments, entries
from tracelens.formats.server.vllm_defaults import defaults

__all__ = ["CONFIG_STARTS", "SETTING_SCHEMA", "defaults", "settings", "states_settings"]

SETTING_SCHEMA: Final = {"line_no": pl.Int64, "key": pl.String, "value": pl.String, "basis": pl.String}

MAX_SHORT_CHARS: Final = 4_096
"""Characters that are looked at of a message of a fixed form (the longest names a file of a MoE kernel)."""

Pairs = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Saying:
    """A message of one fixed form: its named groups are settings, `implied` are settings that it proves."""

    start: str
    pattern: re.Pattern[str]
    implied: Mapping[str, str] = field(default_factory=dict)
    unless: re.Pattern[str] | None = None


def _saying(start: str, rest: str, unless: str = "", **implied: str) -> Saying:
    whole = re.compile(re.escape(start) + rest)
    return Saying(start, whole, implied, re.compile(unless) if unless else None)


_N = r"[\d,]+"
_THOUSANDS = re.compile(_N)
_X = r"\d+(?:\.\d+)?"

SAYINGS: Final = (
    # Version and model.
    _saying("vLLM API server version ", r"(?P<vllm_version>\S+)"),  # 0.4.0-0.14
    _saying("vLLM server version ", r"(?P<vllm_version>[^\s,]+)(?:, serving model (?P<model>\S.*))?"),  # 0.16-
    _saying("OpenAI server is ready to accept requests ", r'.{0,400}?\bmodel="(?P<model>[^"]+)"'),  # Rust, 0.22-
    _saying("Resolved architecture: ", r"(?P<architecture>\w+)"),  # 0.10.1-
    # The scheduler.
    _saying(
        "Chunked prefill is enabled",
        r"(?: with max_num_batched_tokens=(?P<max_num_batched_tokens>\d+))?",  # number 0.5.3-
        enable_chunked_prefill="True",
    ),
    _saying("max_num_scheduled_tokens is set to ", r"(?P<max_num_scheduled_tokens>\d+)"),  # 0.21-
    _saying("Setting max_num_seqs to ", r"(?P<max_num_seqs>\d+) for "),  # DEBUG
    _saying("Setting max_num_batched_tokens to ", r"(?P<max_num_batched_tokens>\d+) for "),  # DEBUG
    _saying("Using max model len ", r"(?P<max_model_len>\d+)"),  # 0.9.2-
    _saying("Asynchronous scheduling is enabled", "", async_scheduling="True"),  # 0.14-0.26
    _saying("Asynchronous scheduling is disabled", "", async_scheduling="False"),
    _saying("Mamba cache mode is set to ", r"'(?P<mamba_cache_mode>\w+)'"),  # 0.20-
    # The KV cache.
    _saying("Available KV cache memory: ", rf"(?P<kv_cache_memory_gib>{_X}) GiB"),  # 0.9.1-
    _saying("Explicitly set (", rf"(?P<kv_cache_memory_gib>{_X})/{_X}\) GiB for KV cache"),  # CPU, 0.32
    _saying(
        "Maximum concurrency for ",  # 0.6.3-0.27; later part of the size line
        rf"(?P<max_model_len>{_N}) tokens per request: (?P<max_concurrency>{_X})x",
    ),
    _saying("# ", r"(?P<kv_cache_device>\w+) blocks: (?P<gpu_blocks>\d+)(?:, # CPU blocks: (?P<cpu_blocks>\d+))?"),  # V0
    _saying("Overriding num_gpu_blocks=", r"\d+ with num_gpu_blocks_override=(?P<num_gpu_blocks_override>\d+)"),
    _saying("vllm cache_config_info", r" with initialization after num_gpu_blocks is: (?P<gpu_blocks>\d+)"),  # 0.9.0-
    # Platform, memory, parallel layout.
    _saying("Automatically detected platform ", r"(?P<platform>\w+)\."),
    _saying("Pin memory is not supported on CPU", "", platform="cpu"),
    _saying(
        "the current vLLM instance can use total_gpu_memory (",  # V0 0.6.6-0.9
        rf"(?P<gpu_memory_gib>{_X})GiB\) x gpu_memory_utilization \((?P<gpu_memory_utilization>{_X})\)",
    ),
    _saying("rank ", r"\d+ in world size (?P<world_size>\d+) is assigned as "),  # V1
    _saying("Loading model weights took ", rf"(?P<model_memory_gib>{_X}) G"),  # V0: prints GB, counts GiB
    _saying("Model loading took ", rf"(?P<model_memory_gib>{_X}) Gi?B(?: memory)? and (?P<model_load_s>{_X}) s"),  # 0.8-
    _saying("Loading weights took ", rf"(?P<weights_load_s>{_X}) s"),
    # Start-up and kernels.
    _saying("Graph capturing finished in ", rf"(?P<graph_capture_s>{_X}) secs(?:, took (?P<graph_memory_gib>{_X}) G)?"),
    _saying("torch.compile ", rf"(?:takes|took) (?P<compilation_s>{_X}) s in total"),  # 0.6.5-
    _saying("init engine (", rf"[^)]*\) took (?P<startup_s>{_X}) s(?:.*?\(compilation: (?P<compilation_s>{_X}) s)?"),
    _saying("Enforce eager set", "", enforce_eager="True"),
    _saying("Using ", r"(?P<kv_cache_layout>\w+) KV cache layout"),
    _saying(
        "Using ",
        r"(?P<attention_backend>[\w. ]+?)(?: attention)? backend(?: on V1 engine)?(?: out of .*)?\.?$",
        unless=r"\b(?:MoE|moe|linear|GEMM|distributed|executor|allreduce|all2all|compil\w*|sampl\w*)\b",
    ),
    # Mixture of experts: no line says so, these lines are written only where there are experts.
    _saying("Using ", r"(?P<moe_backend>.{1,80}?) MoE backend", is_moe="True"),
    _saying("Using default MoE config", r"(?:.*?E=(?P<num_experts>\d+),N=\d+(?:,device_name=(?P<gpu_name>\w+))?)?", is_moe="True"),
    _saying(
        "Using configuration from ",
        r"(?:.*?E=(?P<num_experts>\d+),N=\d+(?:,device_name=(?P<gpu_name>\w+))?)?.* for MoE layer",
        is_moe="True",
    ),
    _saying(
        "[EP Rank ",  # 0.10.2-
        r"[^]]*\] Expert parallelism is enabled\.(?:.*?experts: \d+/(?P<num_experts>\d+))?",
        is_moe="True",
        enable_expert_parallel="True",
    ),
    _saying("resolved coordinator mode ", r".{0,80}?model_is_moe=(?P<is_moe>true|false)"),  # Rust
)  # fmt: skip
"""Forms that are whole in one message."""

_INIT_START: Final = "Initializing a"
_ARGS_START: Final = "args: Namespace("
_NON_DEFAULT_START: Final = "non-default args: {"

CONFIG_STARTS: Final = tuple(
    dict.fromkeys((_INIT_START, _ARGS_START, _NON_DEFAULT_START, *(said.start for said in SAYINGS)))
)
"""Literal beginnings of the messages that state settings; `states_settings` knows three forms more."""

# Names that an init line has for what the arguments call otherwise.
_RENAMED: Final = {"max_seq_len": "max_model_len", "chunked_prefill_enabled": "enable_chunked_prefill"}
# An init line's nested configurations say little that a post-mortem asks for, in up to 15,000 characters.
_SKIPPED: Final = ("compilation_config", "kernel_config", "observability_config", "structured_outputs_config")

_INIT = re.compile(r"Initializing an? (?:(V[01]) )?LLM engine(?: \(v([^)\s]+)\))? with config: ")
# Without classes of Unicode, of which thirty take longer to make ready than a chunk to search.
_KV_SIZE_SHAPE = r"[A-Za-z][0-9A-Za-z_+ ]{0,30} KV cache size: [0-9,]+ tokens"
_KV_SIZE = re.compile(
    rf"(?P<kv_cache_device>[A-Za-z][\w+ ]{{0,30}}) KV cache size: (?P<kv_cache_tokens>{_N}) tokens"
    rf"(?:, Maximum concurrency for (?P<max_model_len>{_N}) tokens per request: (?P<max_concurrency>{_X})x)?"
)  # V1; one line 0.28-, other devices than GPU 0.30-
_BLOCKS_SHAPE = r"Engine [0-9]+: vllm cache_config_info"
_ENGINE_PREFIX = re.compile(r"Engine \d+: ")
_LOGO_SHAPE = r"[ \t]*[▀▄█▌▐#][ \t▀▄█▌▐#]*[ \t](?:version|model) +\S"
_LOGO = re.compile(r"[ \t]*[▀▄█▌▐#][ \t▀▄█▌▐#]*[ \t](version|model) +(\S.*)")  # the banner, 0.16-

_STATES = (
    "^(?:" + "|".join(map(re.escape, CONFIG_STARTS)) + f"|{_KV_SIZE_SHAPE}|{_BLOCKS_SHAPE}|{_LOGO_SHAPE})"
)

# Names of architectures with experts (`Resolved architecture`); no match proves nothing.
_MOE_NAME = re.compile(
    r"Moe|MoE|Mixtral|Deepseek(?:V2|V3|V4)|GptOss|Grok|Dbrx|Jamba|Llama4|MiniMax|Kimi|Bailing|Phimoe|Arctic|Qwen3Next"
)


def states_settings(message: pl.Expr) -> pl.Expr:
    """Whether a message (no header) has the beginning of a form that `settings` reads."""
    return message.str.contains(_STATES)


def settings(messages: pl.DataFrame) -> pl.DataFrame:
    """Find the settings in messages (``line_no`` Int64, ``message`` String, header stripped).

    One row (``line_no, key, value, basis``) per setting; the first one of a key wins within a line.  `basis` is
    ``stated``, or says what it was concluded from.  Secrets are masked.
    """
    rows = [
        (line_no, key, value, basis)
        for line_no, message in messages.select("line_no", "message").iter_rows()
        for key, (value, basis) in _of_message(message or "").items()
    ]
    return pl.DataFrame(rows, schema=SETTING_SCHEMA, orient="row")


def _of_message(message: str) -> dict[str, tuple[str, str]]:
    stripped = message.rstrip()  # some files are padded to a fixed width
    for start, reader in _READERS:
        if stripped.startswith(start):
            pairs = reader(stripped)
            break
    else:
        pairs = _short(stripped)
    found: dict[str, tuple[str, str]] = {}
    for key, value in pairs:
        found.setdefault(key, (value, "stated"))
    return found | _experts(found)


def _short(message: str) -> Pairs:
    if found := _LOGO.match(message):
        yield ("vllm_version" if found[1] == "version" else "model"), found[2]
    yield from _groups(_KV_SIZE.match(message))
    # Whoever quotes a log in Markdown sets the number in bold type that the report is about.
    bare = _ENGINE_PREFIX.sub("", message[:MAX_SHORT_CHARS], count=1).replace("**", "")
    for said in SAYINGS:
        if bare.startswith(said.start) and not (said.unless and said.unless.search(bare)):
            match = said.pattern.match(bare)
            yield from _groups(match)
            yield from said.implied.items() if match else ()


def _groups(match: re.Match[str] | None) -> Pairs:
    for key, value in (match.groupdict() if match else {}).items():
        if value is not None:
            yield key, _plain(value)


def _plain(value: str) -> str:
    """Numbers without thousands commas, Rust's booleans as Python writes them."""
    if value in ("true", "false"):
        return value.capitalize()
    return value.replace(",", "") if _THOUSANDS.fullmatch(value) else value


def _namespace(message: str) -> Pairs:
    yield from arguments(message[len(_ARGS_START) :], closes=True)


def _non_default(message: str) -> Pairs:
    yield from entries(message[len(_NON_DEFAULT_START) :])


def _init(message: str) -> Pairs:
    found = _INIT.match(message)
    if not found:
        return
    engine, version = found.groups()
    if version:
        yield "vllm_version", version
    if engine:
        yield "engine_version", engine
    for key, value in arguments(message[found.end() :]):
        if key not in _SKIPPED:
            yield key, value
        if key in _RENAMED:
            yield _RENAMED[key], value


def _experts(found: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    name = found.get("architecture", ("", ""))[0]
    if _MOE_NAME.search(name):
        return {"is_moe": ("True", f"the architecture's name, {name}")}
    return {}


_READERS: Final[tuple[tuple[str, Callable[[str], Pairs]], ...]] = (
    (_ARGS_START, _namespace),
    (_NON_DEFAULT_START, _non_default),
    (_INIT_START, _init),
)
