"""The sentence that names the cause: what it says of each kind of request, and what it does not."""

from __future__ import annotations

from typing import Any

from tracelens.tui.ink import DARK_INK
from tracelens.tui.screens.overview_parts import map_lines
from tracelens.tui.screens.request_lanes import Scene
from tracelens.tui.screens.request_why import why

SPAN_TIMES = {
    "network_in": 0.01,
    "tokenize": 0.01,
    "step_wait": 0.01,
    "queue": 0.01,
    "prefill": 0.05,
    "stream_out": 0.01,
}
"""What each stage usually takes, seconds."""


def stage(name: str, duration_s: float | None, ttft_s: float, basis: str = "") -> dict[str, Any]:
    share = None if duration_s is None or name == "decode" else duration_s / ttft_s
    return {
        "stage": name, "duration_s": duration_s, "share_of_ttft_ratio": share, "median_s": None, "times_median": None, "basis": basis,
    }  # fmt: skip


def scene(facts: dict[str, Any] | None = None, alike: bool = True, **times: float) -> Scene:
    """A request whose stages took as long as usual, but for those given."""
    taken = SPAN_TIMES | times
    ttft = sum(length for name, length in taken.items() if name != "decode")
    usual = SPAN_TIMES | {"decode": 1.0}
    peers = [
        {
            "stage": name, "median_s": usual[name], "excess_s": length - usual[name], "times_median": length / usual[name],
            "basis": "requests of 80 to 125 tokens in" if alike else "all requests of the run with a first token",
            "mean_input_tokens": 100.0, "mean_output_tokens": 40.0,
        }
        for name, length in taken.items()
    ]  # fmt: skip
    return Scene(
        facts={"input_tokens": 100, "whole_ttft_s": ttft, "whole_e2e_s": ttft + 1} | (facts or {}),
        stages=[stage(name, length, ttft) for name, length in taken.items()],
        peers=peers,
    )


def test_a_long_way_in_with_a_short_way_back_is_no_slow_network() -> None:
    said = why(scene(network_in=8.73))
    assert said.startswith(
        "8.73 s went by from the client's send to its arrival at the server, 99 % of its TTFT"
    )
    assert "rather waited for a connection" in said
    assert "the network, or a proxy on it" in why(scene(network_in=0.678, stream_out=0.153))


def test_a_long_prefill_is_laid_to_those_that_were_in_prefill_too() -> None:
    slow = scene(prefill=10.0, step_wait=5.0)
    slow.mates = [
        {"request_id": name, "excess_stage": "prefill", "prefill_ratio": share, "input_tokens": tokens}
        for name, share, tokens in (("a", 1.0, 60), ("long", 1.0, 6756), ("brief", 0.1, 9000))
    ]
    said = why(slow)
    assert "Its prefill took 10.00 s, 66 % of its TTFT (similar requests: 50 ms)" in said
    assert "For 100 % of that time long (6,756 tokens in) was in prefill, and 1 other beside it" in said
    assert said.index("long (6,756") < said.index("It waited 5.00 s for the engine's running step to end")


def test_what_lies_in_a_stage_that_is_not_told_is_not_told_either() -> None:
    slow = scene(prefill=10.0)
    slow.mates = [{"request_id": "x", "excess_stage": "decode", "prefill_ratio": 1.0, "input_tokens": 9}]
    assert "x (9 tokens" not in why(slow)


def test_a_stage_that_takes_its_usual_time_is_no_cause_however_long() -> None:
    said = why(scene(queue=0.3))
    assert "It waited 300 ms in the queue" in said
    assert "Its own prefill took 50 ms." in said


def test_a_prompt_much_longer_than_the_others_is_named_and_so_is_whose_median_it_is() -> None:
    said = why(scene({"input_tokens": 4106, "cached_input_tokens": 0}, alike=False, prefill=2.42))
    assert "(median of the run: 50 ms)" in said
    assert "Its prompt has 4,106 tokens, the mean of the others is 100" in said
    assert "0 of its 4,106 prompt tokens were in the prefix cache" in said


def test_a_long_decode_is_told_with_the_tokens_it_made() -> None:
    said = why(scene({"output_tokens": 400}, decode=9.0))
    assert "Its decode took 9.00 s for 400 tokens (similar requests: 1.00 s for 40)" in said


def test_unaccounted_time_names_the_stages_it_lies_in_and_what_would_tell() -> None:
    unknown = Scene(
        facts={"input_tokens": 9},
        stages=[
            stage("step_wait", None, 1.0, "in no vLLM metric; needs spans"),
            stage("unaccounted", 1.0, 1.0, "TTFT less the stages that are known; in it: front end and tokenize, step_wait, queue"),
        ],
    )  # fmt: skip
    said = why(unknown)
    assert "They lie in front end and tokenize, step_wait or queue; telling which needs spans" in said


def test_the_limit_is_the_commonest_until_the_first_token() -> None:
    slow = scene({"whole_ttft_s": 5.0, "whole_e2e_s": 10.0}, queue=4.0)
    lane = {"seat_highest_count": 2, "kv_cache_usage_highest_ratio": 0.98}
    slow.engine = [{"bound_by": limit, **lane} for limit in ["seats", "kv", "kv", None] + ["seats"] * 4]
    assert "The KV cache was up to 98 % full" in why(slow)


def test_what_the_slow_ones_take_longer_in_is_told_in_time_and_what_is_shorter_too() -> None:
    """Shares of it add up to more than one where another stage is shorter."""
    stages = {"queue": (0.127, 0.75), "prefill": (0.364, 0.284), "tokenize": (None, 0.2)}
    rows = [
        {
            "slice": name, "stage": one, "mean_s": means[place], "provenance": "observed", "slice_count": 4,
            "known_count": 0 if means[place] is None else 4, "slice_mean_s": 1.0,
            "excess_ratio": None if not place else ((means[1] or 0) - (means[0] or 0)) / 0.4,
        }
        for place, name in enumerate(("median", "slowest"))
        for one, means in stages.items()
    ]  # fmt: skip
    text = "\n".join(line.plain for line in map_lines(rows, 200, DARK_INK))
    assert (
        "the slowest 4 take longer in: queue (Q) 127 ms → 750 ms, tokenize (T) – (in 0 of 4) → 200 ms" in text
    )
    assert "; shorter in: prefill (P) 364 ms → 284 ms" in text
