"""``promtool tsdb dump``: every value of a Prometheus database, one a line, with all its labels and a time.

The metric's name is a label (``__name__``) or a bare string between the braces; the time is in milliseconds since 1970.
Series stand behind each other, each in the order of time.  Written from Prometheus 2.30 to 3.
"""

from __future__ import annotations

from typing import Final

from tracelens.formats.base import Claim, Format, Head, Side
from tracelens.formats.metrics import exposition
from tracelens.formats.metrics.series import NAME_LABEL


def sniff(head: Head) -> Claim | None:
    """Claim a file of values whose names stand between the braces."""
    seen = exposition.look_at(head)
    named = [sample for sample in seen.samples if sample.startswith(("{" + NAME_LABEL, '{"'))]
    if not named or len(named) * 2 < seen.line_count:
        return None
    return exposition.claim_of(seen, "promtool tsdb dump")


FORMAT: Final = Format(
    name="promtool_dump",
    title="promtool tsdb dump",
    side=Side.SERVER,
    fills=("metric_sample",),
    sniff=sniff,
    parse=exposition.parse,
    carried={"metric_sample": "sample_ts"},
    versions="Prometheus 2.30 to 3",
    complete="Made from Prometheus' source; values invented.",
    record="promtool tsdb dump --match='{__name__=~\"vllm.*\"}' DATA_FOLDER > metrics_dump.txt",
    sample="tsdb_dump.txt",
)
