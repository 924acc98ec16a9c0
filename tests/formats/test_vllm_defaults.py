"""What vLLM takes for settings that nobody set; expected values are those of the named version's source or server."""

from __future__ import annotations

import pytest

from tracelens.formats.server.vllm_defaults import defaults, version_of


def given_by(known: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value, _ in defaults(known)}


def why(known: dict[str, str], key: str) -> str:
    return next(basis for name, _, basis in defaults(known) if name == key)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.6.2", (0, 6, 2)),
        ("0.8.5.post1", (0, 8, 5)),
        ("0.9.1.dev3+g1234", (0, 9, 1)),
        ("0.11.0+582e4e37.nv25.11", (0, 11, 0)),
        ("v0.32.0", (0, 32, 0)),
        ("0.1.dev20051+g487ecf187", None),
        ("dev", None),
        ("", None),
        (None, None),
    ],
)
def test_a_version_is_read_where_it_is_a_release(
    text: str | None, number: tuple[int, int, int] | None
) -> None:
    assert version_of(text) == number


@pytest.mark.parametrize(
    ("known", "seats", "budget"),
    [
        # V0: 256 seats; the budget follows chunked prefill.
        ({"vllm_version": "0.4.1", "max_model_len": "32768"}, "256", "32768"),
        ({"vllm_version": "0.4.1", "max_model_len": "1024"}, "256", "2048"),
        ({"vllm_version": "0.6.2", "enable_chunked_prefill": "True"}, "256", "512"),
        ({"vllm_version": "0.6.6", "enable_chunked_prefill": "True"}, "256", "2048"),
        ({"vllm_version": "0.9.1", "engine_version": "V0", "max_model_len": "4096"}, "256", "4096"),
        # V1: by the memory of the GPU.
        ({"vllm_version": "0.7.3", "engine_version": "V1"}, "256", "2048"),
        ({"vllm_version": "0.8.5.post1"}, "256", "2048"),
        ({"vllm_version": "0.8.5.post1", "gpu_memory_gib": "79.15"}, "1024", "8192"),
        ({"vllm_version": "0.8.5.post1", "gpu_memory_gib": "39.4"}, "256", "2048"),
        ({"vllm_version": "0.11.0", "gpu_memory_gib": "79.2", "gpu_name": "NVIDIA_H100"}, "1024", "8192"),
        ({"vllm_version": "0.11.0", "gpu_memory_gib": "79.2", "gpu_name": "NVIDIA A100-SXM4"}, "256", "2048"),
        ({"vllm_version": "0.11.0", "gpu_memory_gib": "79.2"}, "256", "2048"),
        ({"vllm_version": "0.33.0", "gpu_memory_gib": "178", "gpu_name": "NVIDIA B200"}, "1024", "16384"),
        ({"vllm_version": "0.33.0", "gpu_memory_gib": "119", "gpu_name": "NVIDIA GB10"}, "256", "2048"),
        ({"vllm_version": "0.33.0", "gpu_memory_gib": "178"}, "1024", "16384"),
        ({"vllm_version": "0.33.0", "gpu_memory_gib": "119"}, "256", "2048"),
        ({"vllm_version": "0.12.0", "gpu_memory_gib": "119"}, "1024", "8192"),
        ({"vllm_version": "0.12.0", "gpu_name": "NVIDIA_H100_80GB_HBM3"}, "1024", "8192"),
        ({"vllm_version": "0.12.0", "gpu_name": "NVIDIA_A100-SXM4-80GB"}, "256", "2048"),
        # CPU: by the world size.
        ({"vllm_version": "0.32.0", "device_config": "cpu"}, "128", "2048"),
        ({"vllm_version": "0.32.0", "platform": "cpu", "tensor_parallel_size": "2"}, "256", "4096"),
    ],
)
def test_seats_and_token_budget_follow_version_engine_and_device(
    known: dict[str, str], seats: str, budget: str
) -> None:
    found = given_by(known)
    assert (found["max_num_seqs"], found["max_num_batched_tokens"]) == (seats, budget)


def test_stated_settings_have_no_default_but_none_counts_as_not_stated() -> None:
    known = {"vllm_version": "0.8.5.post1", "max_num_seqs": "None", "max_num_batched_tokens": "4096"}
    assert given_by(known)["max_num_seqs"] == "256"
    assert "max_num_batched_tokens" not in given_by(known)


def test_a_basis_says_what_the_value_hangs_on() -> None:
    assert why({"vllm_version": "0.8.5"}, "max_num_seqs") == (
        "default of 0.8.5 (GPU memory unknown: 256 below 70 GiB, 1024 from 70 GiB)"
    )
    assert why({"vllm_version": "0.32.0", "platform": "cpu"}, "max_num_seqs") == "default of 0.32.0 on CPU"
    assert "the last version that was read" in why({"vllm_version": "0.40.0"}, "max_num_seqs")


def test_prefix_caching_is_off_in_v0_and_on_in_v1() -> None:
    assert given_by({"vllm_version": "0.6.2"})["enable_prefix_caching"] == "False"
    assert given_by({"vllm_version": "0.11.0"})["enable_prefix_caching"] == "True"
    assert given_by({"vllm_version": "0.9.1", "engine_version": "V0"})["enable_prefix_caching"] == "False"


def test_block_size_and_memory_share_are_those_that_recorded_servers_reported() -> None:
    # vllm:cache_config_info of servers on CPU that set neither: 0.9.1 V0 and V1, 0.32.0.
    for known in (
        {"vllm_version": "0.9.1", "engine_version": "V0", "platform": "cpu"},
        {"vllm_version": "0.9.1", "engine_version": "V1", "platform": "cpu"},
        {"vllm_version": "0.32.0", "engine_version": "V1", "platform": "cpu"},
    ):
        assert given_by(known)["block_size"] == "128"
    assert given_by({"vllm_version": "0.9.1"})["gpu_memory_utilization"] == "0.9"
    assert given_by({"vllm_version": "0.32.0"})["gpu_memory_utilization"] == "0.92"


def test_the_engine_is_named_where_the_version_has_but_one_or_a_default() -> None:
    assert given_by({"vllm_version": "0.4.1"})["engine_version"] == "V0"
    assert given_by({"vllm_version": "0.7.3"})["engine_version"] == "V0"
    assert given_by({"vllm_version": "0.10.0"})["engine_version"] == "V1"
    assert why({"vllm_version": "0.28.0"}, "engine_version") == "default of 0.28.0, which has no other engine"


def test_without_a_version_there_is_no_default() -> None:
    assert defaults({}) == []
    assert defaults({"max_num_seqs": "None"}) == []
    assert defaults({"vllm_version": "0.1.dev20051+g487ecf187", "engine_version": "V0"}) == []


def test_a_bound_on_the_version_gives_what_all_below_it_share() -> None:
    old = {"vllm_version_below": "0.8.0", "max_num_seqs": "None", "max_model_len": "16384"}
    assert given_by(old)["max_num_seqs"] == "256"
    assert given_by(old)["gpu_memory_utilization"] == "0.9"
    assert given_by(old)["max_num_batched_tokens"] == "16384"
    assert why(old, "max_num_seqs") == "default of every version before 0.8.0; the version is not stated"
    chunked = old | {"enable_chunked_prefill": "True"}
    assert "max_num_batched_tokens" not in given_by(chunked)
    assert given_by({"engine_version": "V0"})["max_num_seqs"] == "256"
