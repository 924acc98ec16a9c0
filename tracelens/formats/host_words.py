"""What a host says beside its servers' logs: the kernel, systemd, shells, the C library, Slurm; one row per sentence.

A server that is killed from outside writes nothing itself.  These sentences are all that tells of it: they stand in the
kernel's log or the journal, or among the last lines of the server's own log where a shell wrote to the same file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl


@dataclass(frozen=True, slots=True)
class HostForm:
    """A sentence of a `writer` that is an event: the literal `contains` is looked for first, `pattern` (if any) must fit as well."""

    writer: str
    kind: str
    contains: str
    pattern: str = ""


_PROCESS: Final = "(?:VLLM|vllm|python|pt_main_thread|ray::(?:Ray|Worker|Engine|LLM|Serve)|sglang|text-generation|tritonserver)"
"""Names that a server's processes have in the kernel (15 characters)."""
_SERVICE: Final = r"(?:vllm|sglang|tgi|llm|inference|triton|text-generation)[\w@.-]*\.service: "
_SERVICE_DIED: Final = (
    _SERVICE
    + r"Main process exited, code=(?:killed, status=(?:4|6|7|8|9|11)/|dumped|exited, status=(?:[1-9]\d?|134|137|139)/)"
)
"""A server's service that ended by itself; one that ended by SIGTERM (15, or 143) was told to."""
_BY_SHELL: Final = r"^(?:\S+: line \d+: +\d+ +|\[\d+\][+-]? +(?:\d+ )?|\w+: )?"
"""A shell names the job that ended: ``run.sh: line 3:   12 Killed   python3 ...``, ``[1]+  Killed  vllm serve ...``."""


def _ended(how: str) -> str:
    return rf"{_BY_SHELL}(?i:{how})(?: \(core dumped\))?(?:\s{{2,}}\S.*)?$"


HOST_FORMS: Final[tuple[HostForm, ...]] = (
    HostForm("kernel", "gpu", "NVRM: Xid"),
    HostForm("kernel", "gpu", "SXid"),
    HostForm("kernel", "gpu", "fallen off the bus"),
    HostForm("kernel", "gpu", "RmInitAdapter failed"),
    HostForm("kernel", "gpu", "amdgpu", r"GPU reset begin|ring \S+ timeout|uncorrectable hardware errors"),
    HostForm("kernel", "gpu", "NVRM: ", r"(?i:uncorrect|double bit|row remap|GPU (?:is )?lost)"),
    HostForm("kernel", "dead", "Killed process", rf"Killed process \d+ \({_PROCESS}"),
    HostForm("kernel", "dead", " segfault at ", rf"\b{_PROCESS}\S*\[\d+\]:? segfault at"),
    HostForm("kernel", "dead", "general protection", rf"\b{_PROCESS}\S*\[\d+\]:? general protection"),
    HostForm("kernel", "error", "Killed process"),
    HostForm("kernel", "error", "invoked oom-killer"),
    HostForm("kernel", "error", "Hardware Error]"),
    HostForm("kernel", "error", "soft lockup"),
    HostForm("kernel", "error", "blocked for more than"),
    HostForm("kernel", "error", "rcu", r"detected (?:expedited )?stalls?"),
    HostForm("kernel", "error", " segfault at "),
    HostForm("kernel", "error", "general protection"),
    HostForm("kernel", "error", "I/O error"),
    HostForm("kernel", "error", "PCIe Bus Error", r"severity=Uncorrect"),
    HostForm("kernel", "warning", "PCIe Bus Error"),
    HostForm("kernel", "warning", "clock throttled"),
    HostForm("kernel", "warning", "EDAC", r"\b\d+ [CU]E "),
    HostForm("kernel", "warning", "nfs: server", r"not responding"),
    HostForm("kernel", "warning", "ink ", r"(?:NIC |: )[Ll]ink (?:is )?[Dd]own"),
    HostForm("systemd", "dead", "Main process exited, code=", _SERVICE_DIED),
    HostForm("systemd", "error", "Main process exited, code=", r"code=(?:killed|dumped)|status=[1-9]"),
    HostForm("systemd", "dead", "has been killed by the OOM killer", _SERVICE),
    HostForm("systemd", "error", "has been killed by the OOM killer"),
    HostForm("systemd", "dead", "Failed with result 'oom-kill'", _SERVICE),
    HostForm("systemd", "error", "Failed with result '"),
    HostForm("systemd", "warning", "Scheduled restart job"),
    HostForm("systemd", "stop", "Stopping ", r"^Stopping \S.{0,200}\.\.\.$"),
    HostForm("systemd", "stop", "Stopped ", r"^Stopped \S.{0,200}\.$"),
    HostForm("shell", "dead", "illed", _ended("killed")),
    HostForm("shell", "dead", "egmentation fault", _ended("segmentation fault")),
    HostForm("shell", "dead", "us error", _ended("bus error")),
    HostForm("shell", "dead", "borted", _ended("aborted")),
    HostForm("shell", "dead", "Illegal instruction", _ended("illegal instruction")),
    HostForm("shell", "stop", "erminated", _ended("terminated")),
    HostForm("shell", "dead", "command terminated with exit code ", r"code (?:134|137|139)$"),
    HostForm("shell", "dead", " exited with code ", r"^[\w.-]+ exited with code (?:134|137|139)$"),
    HostForm("shell", "dead", "Segfault encountered", r"^!+ Segfault"),
    HostForm("shell", "dead", "Fatal Python error: "),
    HostForm("shell", "dead", "terminate called ", r"^terminate called (?:after throwing|without an active)"),
    HostForm("shell", "dead", "*** SIG", r"^\*\*\* SIG(?:SEGV|ABRT|BUS|ILL|FPE) received"),
    HostForm("shell", "dead", "*** Process received signal ***"),
    HostForm(
        "shell",
        "dead",
        "()",
        r"^(?:free|malloc|munmap_chunk|malloc_consolidate|realloc)\(\): (?:in|un|cor|un)",
    ),
    HostForm("shell", "dead", "double free or corruption", r"^double free"),
    HostForm("Slurm", "dead", "slurmstepd: error: Detected ", r"oom[_-]kill"),
    HostForm(
        "Slurm", "dead", "srun: error: ", r"(?:Out Of Memory|Killed|Segmentation fault|Bus error|Aborted)\b"
    ),
)
"""Every sentence; the first that fits counts."""

PASSED: Final = r"^(?:Starting|Started|Finished|Reloading|Reloaded) \S.{0,200}\.$|^[\w@.\\-]+\.(?:service|scope|slice|socket|timer): |^NVRM: "
"""Sentences of systemd and of the driver that are no event."""


def form_no(text: pl.Series) -> pl.Series:
    """The number of the form in `HOST_FORMS` that each line has; NULL for a line that is none."""
    numbers = pl.Series("form_no", [None], pl.Int32).new_from_index(0, text.len())
    few = text.to_frame("text").with_row_index("at").filter(pl.col("text").str.contains_any(_LITERALS))
    if not few.height:  # nearly every chunk: no pattern is made ready for it
        return numbers
    found = few.select(
        "at", form_no=pl.coalesce([pl.when(_fits(form)).then(at) for at, form in enumerate(HOST_FORMS)])
    )
    return numbers.scatter(found["at"], found["form_no"])


def kind_of(number: pl.Expr) -> pl.Expr:
    """The kind of event of a form's number."""
    return _looked_up(number, [form.kind for form in HOST_FORMS])


def level_of(number: pl.Expr) -> pl.Expr:
    """Its level: that of its kind."""
    return _looked_up(number, [_LEVELS.get(form.kind, "ERROR") for form in HOST_FORMS])


def writer_of(number: pl.Expr) -> pl.Expr:
    """Who says it: kernel, systemd, shell (the C library and Python's fault handler are heard there too) or Slurm."""
    return _looked_up(number, [form.writer for form in HOST_FORMS])


_LEVELS: Final = {"warning": "WARNING", "stop": "INFO"}


def _looked_up(number: pl.Expr, values: list[str]) -> pl.Expr:
    return number.replace_strict(list(range(len(values))), values, default=None, return_dtype=pl.String)


def _fits(form: HostForm) -> pl.Expr:
    text = pl.col("text")
    fits = text.str.contains(form.contains, literal=True)
    return fits & text.str.contains(form.pattern) if form.pattern else fits


_LITERALS: Final = sorted({form.contains for form in HOST_FORMS})
