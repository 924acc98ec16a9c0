"""Messages that are events of a server's life, whatever line they stand in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class EventForm:
    """A message that is an event of the server's life; found by a literal anywhere in it, first row wins."""

    kind: str
    contains: str
    versions: str = "all"


EVENT_FORMS: Final[tuple[EventForm, ...]] = (
    EventForm("dead", "EngineCore encountered a fatal error", "V1"),
    EventForm("dead", "EngineCore encountered an issue", "V1"),
    EventForm("dead", "EngineCore failed to start", "V1"),
    EventForm("dead", "EngineCore hit an exception", "0.7 to 0.8.1"),
    EventForm("dead", "Engine core initialization failed", "V1"),
    EventForm("dead", "Engine process failed to start", "V0 0.5.5+"),
    EventForm("dead", "MQLLMEngine is already dead", "V0 0.6+"),
    EventForm("dead", "Got fatal signal from worker process", "0.7 to 0.8"),
    EventForm("dead", "Shard process was signaled to shutdown", "TGI"),
    EventForm("dead", "EngineDeadError", "V1"),
    EventForm("dead", "AsyncEngineDeadError", "V0"),
    EventForm("dead", "died unexpectedly", "V1"),
    EventForm("dead", "AsyncLLM output_handler failed", "V1"),
    EventForm("dead", "Engine background task failed", "V0"),
    EventForm("dead", "Engine iteration timed out", "V0"),
    EventForm("dead", "Scheduler hit an exception", "SGLang"),
    EventForm("dead", "Received sigquit from a child process", "SGLang"),
    EventForm(
        "dead", "atchdog thread terminated with exception", "PyTorch, a collective that failed or timed out"
    ),
    EventForm("dead", "we are taking the entire process down", "PyTorch, after such a collective"),
    EventForm("oom", "OutOfMemoryError"),
    EventForm("oom", "CUDA out of memory"),
    EventForm("oom", "killed due to memory pressure (OOM)", "Ray, for the memory of the host"),
    EventForm("stall", "No available shared memory broadcast block found", "0.8.2+, INFO from 0.11"),
    EventForm("stall", "No available block found in", "0.6.6"),
    EventForm("stall", "RPC call to execute_model timed out", "V1"),
    EventForm(
        "stall", "Watchdog caught collective operation timeout", "PyTorch, after 10 minutes by default"
    ),
    EventForm("preemption", " is preempted by PreemptionMode", "V0"),
    EventForm("compile", "JIT compilation during inference", "0.21+"),
    EventForm("compile", "autotuning during inference", "0.25+"),
    EventForm("compile", "torch.compile takes", "V1"),
    EventForm("compile", "Graph capturing finished"),
    EventForm("notice", "in WAITING_FOR_REMOTE_KVS state", "V1 at DEBUG, each step that a request waits"),
    EventForm("notice", "GC took ", "0.11.1+ with VLLM_GC_DEBUG"),
    EventForm("notice", "seconds to fall asleep", "0.8+"),
    EventForm("notice", "to wake up tags", "0.8+"),
    EventForm("error", "Dumping input data for", "V1 0.9+, with the configuration of the engine that died"),
    EventForm("start", "vLLM API server version", "0.4.1 to 0.14"),
    EventForm("start", "vLLM server version", "0.16+"),
    EventForm("start", "LLM engine (v"),
    EventForm("start", "Started server process"),
    EventForm("ready", "Application startup complete"),
    EventForm("ready", "init engine (profile", "0.6.6+"),
    EventForm("stop", "[shutdown]", "0.23+"),
    EventForm("stop", "Shutting down"),
    EventForm("stop", "Finished server process"),
    EventForm("stop", "SIGTERM"),
    EventForm("stop", "Gracefully stopping"),
    EventForm("notice", "P2P DISABLED", "launch scripts, [nvlink] in front"),
    EventForm("notice", "No CUDA runtime is found", "torch"),
    EventForm("notice", "Waiting for output from MQLLMEngine", "V0 0.6+ at DEBUG, every 10 s without output"),
    EventForm("notice", "Compiling FSM index", "V0 up to 0.6 with outlines, a progress bar"),
    EventForm("notice", "detokenize_incrementally", "written by hand into many builds"),
    EventForm("notice", "okenization took", "written by hand into many builds"),
)
