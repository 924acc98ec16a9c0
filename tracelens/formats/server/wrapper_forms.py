"""The wrappers that are known, one row each; `wrappers` takes them off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_ISO: Final = r"(?P<outer>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?) ?(?P<zone>Z|[+-]\d\d:?\d\d)"
_BSD: Final = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_HOST_AND_TAG: Final = r"[\w.-]+ [^\s:\[]+(?:\[\d+\])?: "
_COLUMNS: Final = r"(?:[^\",]*,){0,8}"


@dataclass(frozen=True, slots=True)
class WrapperForm:
    """One wrapper: `pattern` is anchored at the line's start and ends where the inner line begins."""

    name: str
    pattern: str
    writer: str
    sample: str
    particular: bool = False
    """Its shape is proof enough; others count on a single line only where a log line stands behind them."""
    alone: bool = False
    """Never taken off a whole file, only off lines that show a log line behind it."""
    quoted: bool = False
    """The inner line stands in double quotes, its own ones doubled; further columns may follow."""
    outermost: bool = False
    """It never stands behind another wrapper."""
    escaped: bool = False
    """The same, with a backslash before its own quotes; further keys may follow."""


WRAPPERS: Final[tuple[WrapperForm, ...]] = (
    WrapperForm("cri", rf"^{_ISO} (?P<stream>stdout|stderr) (?P<partial>[FP])(?: |$)", "containerd and CRI-O files; P parts of records over 16 KiB are joined", "2025-10-21T12:34:56.789012345Z stdout F ", particular=True),
    WrapperForm("cloud logging", rf"^(?:DEFAULT|DEBUG|INFO|NOTICE|WARNING|ERROR|CRITICAL|ALERT|EMERGENCY) {_ISO} \[(?:resource|labels|jsonPayload)\.[^\]]*\] ", "Google Cloud's log explorer, copied as text", "INFO 2025-10-21T12:34:56.789012345Z [resource.labels.containerName: vllm] ", particular=True),
    WrapperForm("journald iso", rf"^{_ISO} {_HOST_AND_TAG}", "journalctl -o short-iso, short-iso-precise; rsyslog", "2025-10-21T12:34:56.789012+0000 gpu-node-3 vllm[4021]: "),
    WrapperForm("journald full", rf"^[A-Z][a-z]{{2}} (?P<outer>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (?:(?P<zone>UTC)|[A-Z]{{3,5}}) {_HOST_AND_TAG}", "journalctl -o short-full; its stamp counts where the zone is UTC", "Tue 2025-10-21 12:34:56 UTC gpu-node-3 vllm[4021]: "),
    WrapperForm("journald unix", rf"^(?P<epoch>\d{{10}}\.\d{{1,6}}) {_HOST_AND_TAG}", "journalctl -o short-unix", "1761050096.789012 gpu-node-3 vllm[4021]: "),
    WrapperForm("syslog 5424", rf"^(?:<\d{{1,3}}>)?1 {_ISO} \S+ \S+ \S+ \S+ (?:-|\[[^\]]*\]) ", "syslog as of RFC 5424", "<13>1 2025-10-21T12:34:56.789012Z gpu-node-3 vllm 4021 - - "),
    WrapperForm("csv of instants", rf"^\"?{_ISO}\"?,{_COLUMNS}\"", "Datadog, Loki and others, downloaded as CSV", '2025-10-21T12:34:56.789Z,gpu-1,"', particular=True, quoted=True),
    WrapperForm("csv of epochs", rf"^\"?(?P<epoch_ms>\d{{13}})\"?,{_COLUMNS}\"", "CloudWatch, Grafana, downloaded as CSV", '1761050096789,"', particular=True, quoted=True),
    WrapperForm("csv of wall clocks", rf"^\"?(?P<local>\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)\"?,{_COLUMNS}\"", "CloudWatch Logs Insights and others, downloaded as CSV", '2025-10-21 12:34:56.789,"', particular=True, quoted=True),
    WrapperForm("csv of Kibana", rf"^\"(?P<named>[A-Z][a-z]{{2}} \d\d?, \d{{4}} @ \d\d:\d\d:\d\d\.\d{{3}})\",{_COLUMNS}\"?", "Kibana, downloaded as CSV; its stamps are of the browser's zone", '"Nov 19, 2025 @ 20:16:00.096","', particular=True, outermost=True, quoted=True),
    WrapperForm("logfmt", rf"^(?:[a-z]+=\S+ )?(?:ts|time|timestamp)=\"?{_ISO}\"? (?:[a-z.]+=[^ ]* )*(?:msg|message|line|log)=\"", "logfmt, as Loki's agents and Go programs write it", 'ts=2025-10-21T12:34:56.789Z level=info msg="', particular=True, outermost=True, escaped=True),
    WrapperForm("loki", rf"^{_ISO} +\{{[^{{}}]*\}}\s+", "logcli of Grafana Loki", "2025-10-21T12:34:56Z {app=\"vllm\"} ", particular=True),
    WrapperForm("event", r"^EVENTS\t\S+\t(?P<epoch_ms>\d{13})\t\S+\t\d{13}\t", "aws logs filter-log-events --output text", "EVENTS\t3846\t1761050096789\tvllm/0\t1761050097000\t", particular=True),
    WrapperForm("model server", rf"^{_ISO} \[[A-Z]+ *\] \S+ \S+ - ", "TorchServe, SageMaker", "2025-10-21T12:34:56.789Z [INFO ] W-9000-vllm-stdout MODEL_LOG - ", particular=True),
    WrapperForm("log stream", rf"^{_ISO} (?:\| [^|]+\| |[a-z][\w./\[\]$@-]*:? )", "aws logs tail, Heroku, Azure ML", "2025-10-21T12:34:56.789+00:00 vllm/0/4021 "),
    WrapperForm("timestamps", rf"^{_ISO} ", "docker logs -t, kubectl logs --timestamps, CI logs", "2025-10-21T12:34:56.789012345Z "),
    WrapperForm("syslog", rf"^(?:<\d{{1,3}}>)?{_BSD} {_HOST_AND_TAG}", "journalctl, syslog", "Oct 21 12:34:56 gpu-node-3 vllm[4021]: "),
    WrapperForm("ts", rf"^{_BSD} ", "ts of moreutils", "Oct 21 12:34:56 "),
    WrapperForm("compose", r"^[\w.-]+ *\| ", "docker compose logs", "vllm-1  | "),
    WrapperForm("kubectl prefix", r"^\[pod/[^\]\s]+\] ", "kubectl logs --prefix", "[pod/vllm-0/server] ", particular=True),
    WrapperForm("outer time", r"^\[(?P<local>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)\] ", "supervisors, ts with a format", "[2024-07-08 15:17:34] "),
    WrapperForm("wall clock", r"^(?P<local>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)\s+", "supervisord, Grafana's download as text", "2025-10-21 12:34:56.789\t"),
    WrapperForm("rank", r"^(?:\d{1,4}: |\[\d+,\d+\]<std(?:out|err)>: ?|\[(?:default|rank)?\d+\]: ?)", "srun --label, mpirun --tag-output, torchrun", "[1,0]<stdout>:"),
    WrapperForm("bullet", r"^\s*[-*•>+] ", "logs pasted as a Markdown list or quotation", "- "),
    WrapperForm("numbered", r"^(?: *\d+\t| {2,}\d+ )", "cat -n, less -N", "    12\t"),
    WrapperForm("grep", r"^(?:[\w./~-]+:(?:\d+:)?|\d+[:-])", "grep over several files, grep -n", "server.log:12:", alone=True),
    WrapperForm("indent", r"^\s+", "an indented block", "    ", alone=True),
    WrapperForm("stern", r"^[a-z0-9][\w.-]*[\w] [a-z0-9][\w.-]*[\w] ", "stern", "vllm-0 vllm-container "),
)  # fmt: skip
"""Every wrapper, the more particular ones first."""
