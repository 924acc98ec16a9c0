"""What GPU and host tools wrote."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.gpu import dcgmi_dmon, host_env, nvidia_dmon, nvidia_query, nvidia_smi_table

FORMATS: Final[tuple[Format, ...]] = (
    nvidia_dmon.FORMAT,
    nvidia_query.FORMAT,
    nvidia_smi_table.FORMAT,
    dcgmi_dmon.FORMAT,
    host_env.FORMAT,
)
