"""What GPU and host tools wrote."""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Format
from tracelens.formats.gpu import (
    dcgm_long,
    dcgmi_dmon,
    docker_stats,
    env_report,
    gpustat,
    host_env,
    kernel_log,
    nvidia_dmon,
    nvidia_pmon,
    nvidia_query,
    nvidia_smi_q,
    nvidia_smi_table,
    nvidia_smi_xml,
    nvitop,
    pod_description,
    sampled_table,
    sysstat,
    top_batch,
    vendor_tables,
    vmstat,
)

FORMATS: Final[tuple[Format, ...]] = (
    nvidia_dmon.FORMAT,
    nvidia_pmon.FORMAT,
    nvidia_query.FORMAT,
    nvidia_smi_table.FORMAT,
    nvidia_smi_q.FORMAT,
    nvidia_smi_xml.FORMAT,
    dcgmi_dmon.FORMAT,
    dcgm_long.FORMAT,
    gpustat.FORMAT,
    nvitop.FORMAT,
    vendor_tables.AMD_SMI,
    vendor_tables.ROCM_SMI,
    vendor_tables.NPU_SMI,
    vendor_tables.XPU_SMI,
    sampled_table.FORMAT,
    vmstat.FORMAT,
    top_batch.FORMAT,
    sysstat.FORMAT,
    docker_stats.FORMAT,
    host_env.FORMAT,
    env_report.FORMAT,
    kernel_log.FORMAT,
    pod_description.FORMAT,
)
