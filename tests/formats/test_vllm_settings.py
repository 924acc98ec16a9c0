"""Configuration lines of vLLM 0.4 to 0.33: what they state, and what they must not give away.

Lines are copied from server logs (0.9.1 and 0.32.0 on CPU) and from public issue threads, or built in the form
that the named version's source has.
"""

from __future__ import annotations

import time

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelens.formats.server.vllm_settings import CONFIG_STARTS, settings, states_settings

INIT_0_6_3 = (
    "Initializing an LLM engine (v0.6.3.post1) with config: model='acme/qwen-test-14b', speculative_config=None, "
    "tokenizer='acme/qwen-test-14b', trust_remote_code=False, dtype=torch.bfloat16, max_seq_len=16384, "
    "load_format=LoadFormat.AUTO, tensor_parallel_size=2, pipeline_parallel_size=1, quantization=None, "
    "enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=acme/qwen-test-14b, "
    "num_scheduler_steps=1, chunked_prefill_enabled=True multi_step_stream_outputs=True, enable_prefix_caching=True, "
    "use_async_output_proc=True, mm_processor_kwargs=None)"
)
INIT_0_32 = (
    "Initializing a V1 LLM engine (v0.32.0) with config: model='/models/tiny-llama', speculative_config=None, "
    "dtype=torch.float32, max_seq_len=16384, tensor_parallel_size=1, pipeline_parallel_size=1, data_parallel_size=1, "
    "aux_output_config=AuxOutputConfig(enable_return_routed_experts=False, max_bytes=None), kv_cache_dtype=auto, "
    "device_config=cpu, structured_outputs_config=StructuredOutputsConfig(backend='auto', max_num_seqs=7), "
    "seed=0, served_model_name=tiny-llama, enable_prefix_caching=True, enable_chunked_prefill=True, "
    "compilation_config={'mode': <CompilationMode.NONE: 0>, 'model': 'no', 'seed': 9}, quantization=None"
)
NAMESPACE_0_7 = (
    "args: Namespace(subparser='serve', model_tag='/models/r1-distill-8b', host=None, port=8000, max_model_len=16384, "
    "max_num_seqs=None, tensor_parallel_size=1, gpu_memory_utilization=0.95, enforce_eager=False, "
    "allowed_origins=['*'], lora_modules=None, override_pooler_config=PoolerConfig(a='x, y)', b=(1, 2)), "
    "api_key='sk-very-secret', ssl_keyfile='/etc/k.pem', disable_log_requests=True)"
)
NON_DEFAULT_0_32 = (
    "non-default args: {'model_tag': '/models/tiny-llama', 'enable_log_deltas': False, 'host': '127.0.0.1', "
    "'model': '/models/tiny-llama', 'max_model_len': 16384, 'served_model_name': ['tiny-llama'], "
    "'otlp_traces_endpoint': 'http://user:pw@127.0.0.1:4317', 'max_num_seqs': 32, "
    "'speculative_config': {'method': 'mtp', 'num_speculative_tokens': 4, 'hf_token': 'hf_abc'}, "
    "'compilation_config': CompilationConfig(mode=<CompilationMode.NONE: 0>), 'hf_token': 'hf_secret'}"
)


def stated(*messages: str) -> dict[str, str]:
    frame = pl.DataFrame({"line_no": range(1, len(messages) + 1), "message": messages}, strict=False)
    found: dict[str, str] = {}
    for row in settings(frame.with_columns(pl.col("line_no").cast(pl.Int64))).iter_rows(named=True):
        found.setdefault(row["key"], row["value"])
    return found


ONE_LINERS = [
    ("vLLM API server version 0.11.0+582e4e37.nv25.11", {"vllm_version": "0.11.0+582e4e37.nv25.11"}),
    ("vLLM API server version 0.4.0.post1   ", {"vllm_version": "0.4.0.post1"}),
    ("Pin memory is not supported on CPU.", {"platform": "cpu"}),  # vllm-project/vllm#12153
    # vllm-project/vllm#34399, #39240 and #20264, whose author set the numbers in bold type
    ("torch.compile takes 2222.52 s in total", {"compilation_s": "2222.52"}),
    ("torch.compile took 11.98 s in total", {"compilation_s": "11.98"}),
    (
        "Graph capturing finished in **17 secs**, took 0.48 GiB",
        {"graph_capture_s": "17", "graph_memory_gib": "0.48"},
    ),
    ("vLLM server version 0.20.2, serving model /m/x", {"vllm_version": "0.20.2", "model": "/m/x"}),
    (" ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0", {"vllm_version": "0.32.0"}),
    ("  █▄█▀ █     █     █     █  model   /models/tiny-llama", {"model": "/models/tiny-llama"}),
    (" ## ## #     #     ## ##  version 0.28.0", {"vllm_version": "0.28.0"}),
    (
        "Chunked prefill is enabled with max_num_batched_tokens=2048.",
        {"enable_chunked_prefill": "True", "max_num_batched_tokens": "2048"},
    ),
    ("Chunked prefill is enabled (EXPERIMENTAL).", {"enable_chunked_prefill": "True"}),
    ("Using max model len 16384", {"max_model_len": "16384"}),
    ("Asynchronous scheduling is enabled.", {"async_scheduling": "True"}),
    ("Asynchronous scheduling is disabled.", {"async_scheduling": "False"}),
    (
        "max_num_scheduled_tokens is set to 2016 based on the speculative decoding settings. This may lead to "
        "suboptimal performance. Consider increasing max_num_batched_tokens",
        {"max_num_scheduled_tokens": "2016"},
    ),
    (
        "GPU KV cache size: 1,048,576 tokens, Maximum concurrency for 131,072 tokens per request: 8.00x",
        {
            "kv_cache_device": "GPU",
            "kv_cache_tokens": "1048576",
            "max_model_len": "131072",
            "max_concurrency": "8.00",
        },
    ),
    ("GPU KV cache size: 772,736 tokens", {"kv_cache_device": "GPU", "kv_cache_tokens": "772736"}),
    ("GPU + host KV cache size: 10 tokens", {"kv_cache_device": "GPU + host", "kv_cache_tokens": "10"}),
    (
        "Maximum concurrency for 12288 tokens per request: 6.80x",
        {"max_model_len": "12288", "max_concurrency": "6.80"},
    ),
    (
        "# CUDA blocks: 5225, # CPU blocks: 2048",
        {"kv_cache_device": "CUDA", "gpu_blocks": "5225", "cpu_blocks": "2048"},
    ),
    (
        "Engine 000: vllm cache_config_info with initialization after num_gpu_blocks is: 4096",
        {"gpu_blocks": "4096"},
    ),
    (
        "Overriding num_gpu_blocks=16384 with num_gpu_blocks_override=192",
        {"num_gpu_blocks_override": "192"},
    ),
    ("Available KV cache memory: 33.75 GiB", {"kv_cache_memory_gib": "33.75"}),
    ("Automatically detected platform cpu.", {"platform": "cpu"}),
    (
        "the current vLLM instance can use total_gpu_memory (79.15GiB) x gpu_memory_utilization (0.90) = 71.24GiB",
        {"gpu_memory_gib": "79.15", "gpu_memory_utilization": "0.90"},
    ),
    ("Loading model weights took 30.7098 GB", {"model_memory_gib": "30.7098"}),
    (
        "Model loading took 15.1010 GiB and 40.100000 seconds",
        {"model_memory_gib": "15.1010", "model_load_s": "40.100000"},
    ),
    (
        "Model loading took 15.1010 GiB memory and 40.1 seconds",
        {"model_memory_gib": "15.1010", "model_load_s": "40.1"},
    ),
    ("Loading weights took 0.03 seconds", {"weights_load_s": "0.03"}),
    ("Graph capturing finished in 14 secs.", {"graph_capture_s": "14"}),
    (
        "Graph capturing finished in 27 secs, took 1.63 GiB",
        {"graph_capture_s": "27", "graph_memory_gib": "1.63"},
    ),
    (
        "init engine (profile, create kv cache, warmup model) took 101.22 s (compilation: 33.10 s)",
        {"startup_s": "101.22", "compilation_s": "33.10"},
    ),
    ("init engine (profile, create kv cache, warmup model) took 0.77 seconds", {"startup_s": "0.77"}),
    ("Using Torch SDPA backend.", {"attention_backend": "Torch SDPA"}),
    ("Using Flash Attention backend on V1 engine.", {"attention_backend": "Flash Attention"}),
    (
        "Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'TRITON_ATTN'].",
        {"attention_backend": "FLASH_ATTN"},
    ),
    (
        "Using CPU Unquantized MoE backend out of potential backends: ['CPU'].",
        {"moe_backend": "CPU Unquantized", "is_moe": "True"},
    ),
    (
        "Using default MoE config. Performance might be sub-optimal! Config file not found at /opt/venv/configs/"
        "E=256,N=256,device_name=NVIDIA_RTX_PRO_6000,dtype=fp8_w8a8,block_shape=[128,128].json",
        {"is_moe": "True", "num_experts": "256", "gpu_name": "NVIDIA_RTX_PRO_6000"},
    ),
    ("Resolved architecture: LlamaForCausalLM", {"architecture": "LlamaForCausalLM"}),
    ("Resolved architecture: Qwen3MoeForCausalLM", {"architecture": "Qwen3MoeForCausalLM", "is_moe": "True"}),
    (
        "resolved coordinator mode engine_count=1 model_is_moe=false coordinator_mode=None",
        {"is_moe": "False"},
    ),
    (
        'OpenAI server is ready to accept requests bind_address="0.0.0.0:8000" scheme="http" model="acme/d-8b"',
        {"model": "acme/d-8b"},
    ),
    (
        "Mamba cache mode is set to 'align' for Qwen3_5MoeForConditionalGeneration by default when prefix caching is "
        "enabled",
        {"mamba_cache_mode": "align"},
    ),
    (
        "rank 3 in world size 8 is assigned as DP rank 0, PP rank 0, TP rank 3, EP rank N/A",
        {"world_size": "8"},
    ),
    ("Using LBHNC KV cache layout.", {"kv_cache_layout": "LBHNC"}),
]


@pytest.mark.parametrize(("message", "expected"), ONE_LINERS, ids=[line[:40] for line, _ in ONE_LINERS])
def test_a_line_of_a_fixed_form_states_exactly_its_settings(message: str, expected: dict[str, str]) -> None:
    assert stated(message) == expected
    frame = pl.DataFrame({"message": [message]})
    assert frame.select(states_settings(pl.col("message"))).item()


def test_what_a_user_wrote_into_a_prompt_states_nothing() -> None:
    prompts = [f"Received request chatcmpl-1: prompt: 'x {start} 1', params: None" for start in CONFIG_STARTS]
    frame = pl.DataFrame({"message": prompts})
    assert not frame.select(states_settings(pl.col("message")).any()).item()
    assert stated(*prompts) == {}


def test_an_init_line_gives_its_outer_settings_under_vllms_own_names() -> None:
    old = stated(INIT_0_6_3)
    assert old["vllm_version"] == "0.6.3.post1"
    assert old["model"] == "acme/qwen-test-14b"
    assert old["max_model_len"] == old["max_seq_len"] == "16384"
    assert old["dtype"] == "torch.bfloat16"
    assert old["enable_chunked_prefill"] == "True"
    assert old["multi_step_stream_outputs"] == "True"
    assert old["mm_processor_kwargs"] == "None"
    assert "engine_version" not in old
    new = stated(INIT_0_32)
    assert new["engine_version"] == "V1"
    assert new["data_parallel_size"] == "1"
    assert new["model"] == "/models/tiny-llama"
    assert new["seed"] == "0"
    assert new["quantization"] == "None"
    assert "max_num_seqs" not in new
    assert "compilation_config" not in new


def test_a_source_build_states_its_version_as_written() -> None:
    line = "Initializing a V1 LLM engine (v0.1.dev20051+g487ecf187) with config: model='/m', tensor_parallel_size=2"
    assert stated(line)["vllm_version"] == "0.1.dev20051+g487ecf187"
    assert stated(line)["tensor_parallel_size"] == "2"


def test_a_namespace_gives_every_argument_and_no_secret() -> None:
    found = stated(NAMESPACE_0_7)
    assert found["max_num_seqs"] == "None"
    assert found["max_model_len"] == "16384"
    assert found["gpu_memory_utilization"] == "0.95"
    assert found["override_pooler_config"] == "PoolerConfig(a='x, y)', b=(1, 2))"
    assert found["disable_log_requests"] == "True"
    assert found["api_key"] == found["ssl_keyfile"] == "***"


def test_non_default_args_are_read_although_values_are_objects_and_hide_secrets_inside() -> None:
    found = stated(NON_DEFAULT_0_32)
    assert found["max_num_seqs"] == "32"
    assert found["enable_log_deltas"] == "False"
    assert found["served_model_name"] == "['tiny-llama']"
    assert found["compilation_config"] == "CompilationConfig(mode=<CompilationMode.NONE: 0>)"
    assert found["hf_token"] == "***"
    assert found["speculative_config"] == "{'method': 'mtp', 'num_speculative_tokens': 4, 'hf_token': ***}"
    assert found["otlp_traces_endpoint"] == "http://***@127.0.0.1:4317"


def test_basis_names_what_is_not_literally_stated() -> None:
    frame = pl.DataFrame({"line_no": [4], "message": ["Resolved architecture: Qwen3MoeForCausalLM"]})
    rows = settings(frame).rows()
    assert rows == [
        (4, "architecture", "Qwen3MoeForCausalLM", "stated"),
        (4, "is_moe", "True", "the architecture's name, Qwen3MoeForCausalLM"),
    ]


HOSTILE = [
    "non-default args: {" + "[" * 200_000,
    "non-default args: {'a': " + "'\\" * 100_000,
    "args: Namespace(" + "a='\\'" * 40_000,
    "args: Namespace(" + "a=1 " * 60_000,
    "args: Namespace(" + "a=1, " * 60_000 + ")",
    "Initializing a V1 LLM engine (v0.11.0) with config: " + 'a="' * 80_000,
    "Using default MoE config " + "E=1,N=" * 40_000,
    "Using configuration from " + "E=1,N=1" * 40_000,
    "Using " + " backend" * 30_000,
    "Using " + "a" * 250_000,
    "init engine (" + ") took 1 s (compilation: " * 10_000,
    "# " * 100_000,
    "█ " * 100_000 + " version",
]


@pytest.mark.parametrize("line", HOSTILE, ids=[line[:24] for line in HOSTILE])
def test_hostile_lines_cost_little_time(line: str) -> None:
    before = time.process_time()
    stated(line)
    pl.DataFrame({"message": [line]}).select(states_settings(pl.col("message")))
    assert time.process_time() - before < 1.0


@given(st.sampled_from(CONFIG_STARTS), st.text(alphabet="ab_='\"\\,()[]{}: 19.\n", max_size=60))
def test_no_text_after_a_known_beginning_raises(start: str, rest: str) -> None:
    assert all(isinstance(value, str) for value in stated(start + rest).values())
