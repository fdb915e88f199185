"""What each field of Inspect AI's log means for a run's signatures: data, without code.

A field or an argument that is not in these tables is signed, and a deviation, until somebody
decides. A test compares the tables with the classes of the installed Inspect AI.
Docs/reference/signatures.md shows them.
"""

from __future__ import annotations

from collections.abc import Mapping

SIGNED = "signed"  # a deviation, unless the benchmark declares the value official
SYSTEM = "system"  # signed, as a part of the system that is evaluated
UNSIGNED = "unsigned"  # changes no reply, or is checked in another way
Facts = Mapping[str, tuple[str, str]]
"""Name of a field -> its treatment, and the reason."""

_LIMIT = (SIGNED, "a question can be stopped before its answer")
_SAMPLING = (SIGNED, "changes replies")
_REASONING = (SIGNED, "changes how a model reasons")
_TOOLS = (SIGNED, "changes how a model calls tools")
_STEERED = (SIGNED, "others than the model decide on its calls")
_SELECTION = (UNSIGNED, "the field `asked` has the number and a digest of the questions")
_FAILURE = (UNSIGNED, "failed questions are counted, and named as a deviation")
_SPEED = (UNSIGNED, "only how many questions or calls run at once")
_WAIT = (UNSIGNED, "a call that takes too long fails, and failed questions are counted")
_LOGGED = (UNSIGNED, "only what is logged or shown")
_IDENTITY = (UNSIGNED, "only names the run")
_RESCORED = (UNSIGNED, "answers are scored again when a log is read")
_MODEL = (UNSIGNED, "the system that is evaluated, which a result names")
_TASK = (UNSIGNED, "the task signs what it makes of its arguments: data, prompt, method")
_SOLVER = (
    UNSIGNED,
    "a solver that is not the setting's own makes the result of an agent: the field `solver`",
)
_PROBABILITIES = (UNSIGNED, "the same reply, with its probabilities")

GENERATE_CONFIG: Facts = {
    **dict.fromkeys(("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout"), _WAIT),
    **dict.fromkeys(("max_connections", "adaptive_connections", "batch"), _SPEED),
    **dict.fromkeys(
        ("temperature", "top_p", "top_k", "max_tokens", "stop_seqs", "best_of", "seed"), _SAMPLING
    ),
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "logit_bias"), _SAMPLING),
    "num_choices": (SIGNED, "only the first of several replies is read"),
    **dict.fromkeys(("logprobs", "top_logprobs", "prompt_logprobs"), _PROBABILITIES),
    "system_message": (SIGNED, "changes the prompt"),
    **dict.fromkeys(("parallel_tool_calls", "internal_tools"), _TOOLS),
    "max_tool_output": (UNSIGNED, "the settings' tools return their whole result"),
    **dict.fromkeys(
        ("cache", "cache_prompt"), (UNSIGNED, "a cached reply was a reply to the same request")
    ),
    "fallback_models": (SIGNED, "another model can answer"),
    "fail_on_refusal": (UNSIGNED, "a refused question has no answer either way"),
    **dict.fromkeys(
        ("effort", "reasoning_effort", "reasoning_mode", "reasoning_tokens"), _REASONING
    ),
    "reasoning_summary": (UNSIGNED, "a summary beside the reply"),
    "reasoning_history": (SIGNED, "changes what a model sees of its earlier replies"),
    **dict.fromkeys(
        ("verbosity", "response_schema", "modalities"), (SIGNED, "changes the form of replies")
    ),
    **dict.fromkeys(
        ("extra_headers", "extra_body"), (SIGNED, "can send any option; only a digest is shown")
    ),
}
EVAL_CONFIG: Facts = {
    **dict.fromkeys(("limit", "sample_id", "sample_shuffle"), _SELECTION),
    "epochs": (UNSIGNED, "a deviation of its own: each question was asked several times"),
    "epochs_reducer": _RESCORED,
    **dict.fromkeys(("approval", "review", "sentinel", "acp_server"), _STEERED),
    **dict.fromkeys(
        ("fail_on_error", "continue_on_fail", "retry_on_error", "score_on_error"), _FAILURE
    ),
    **dict.fromkeys(
        ("message_limit", "token_limit", "token_limit_type", "turn_limit", "time_limit"), _LIMIT
    ),
    **dict.fromkeys(("working_limit", "cost_limit"), _LIMIT),
    **dict.fromkeys(
        ("max_samples", "max_tasks", "max_subprocesses", "max_sandboxes", "max_dataset_memory"),
        _SPEED,
    ),
    **dict.fromkeys(
        ("sandbox_cleanup", "sandbox_prebuilt"), (UNSIGNED, "the settings run nothing in a sandbox")
    ),
    **dict.fromkeys(
        ("log_samples", "log_realtime", "log_images", "log_model_api", "log_buffer"), _LOGGED
    ),
    **dict.fromkeys(("log_shared", "score_display", "notification"), _LOGGED),
}
EVAL_SPEC: Facts = {
    **dict.fromkeys(
        ("eval_set_id", "eval_id", "run_id", "created", "task_id", "tags", "shards"), _IDENTITY
    ),
    "task": (UNSIGNED, "must be a task of the benchmark"),
    **dict.fromkeys(
        ("task_file", "task_registry_name", "task_display_name", "task_description"), _IDENTITY
    ),
    **dict.fromkeys(("task_version", "task_attribs", "revision", "packages"), _IDENTITY),
    **dict.fromkeys(("task_args", "task_args_passed"), _TASK),
    **dict.fromkeys(("solver", "solver_args", "solver_args_passed"), _SOLVER),
    "dataset": _SELECTION,
    "sandbox": (UNSIGNED, "the settings run nothing in a sandbox"),
    **dict.fromkeys(("model", "model_base_url"), _MODEL),
    "model_generate_config": (UNSIGNED, "as the options of generation, which replace it"),
    "model_args": (SIGNED, "see the arguments of providers"),
    "model_roles": (SIGNED, "other models can take part"),
    "config": (UNSIGNED, "see the options of a run"),
    "metadata": (UNSIGNED, "must agree with the signatures"),
    **dict.fromkeys(("scorers", "metrics", "headline_metric"), _RESCORED),
    "viewer": _LOGGED,
}
EVAL_PLAN: Facts = {
    "name": _IDENTITY,
    **dict.fromkeys(("steps", "finish"), _SOLVER),
    "config": (UNSIGNED, "see the options of generation"),
}
EVAL_PLAN_STEP: Facts = {
    "solver": _SOLVER,
    **dict.fromkeys(("params", "params_passed"), _TASK),
}
CLASSES: Mapping[str, tuple[str, Facts]] = {
    "GenerateConfig": ("Options of generation", GENERATE_CONFIG),
    "EvalConfig": ("Options of a run", EVAL_CONFIG),
    "EvalSpec": ("The run", EVAL_SPEC),
    "EvalPlan": ("Its plan", EVAL_PLAN),
    "EvalPlanStep": ("A step of the plan", EVAL_PLAN_STEP),
}
"""Class of Inspect's log -> a title, and the treatment of its fields."""

_DEVICES = (UNSIGNED, "where the same computation runs, and in how many parts")
_SERVER = (UNSIGNED, "how the server is reached or started")
_SECRET = (UNSIGNED, "identifies the user, not the model")
_WEIGHTS = (SYSTEM, "which weights, or how much context, is evaluated")
_PRECISION = (SIGNED, "changes the weights or their precision")
_TEMPLATE = (SIGNED, "changes what the model reads")

MODEL_ARGS: Facts = {
    **dict.fromkeys(
        ("device", "device_map", "max_memory", "low_cpu_mem_usage", "attn_implementation"), _DEVICES
    ),
    **dict.fromkeys(
        ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "tp", "pp"),
        _DEVICES,
    ),
    **dict.fromkeys(
        ("dp", "gpu_memory_utilization", "mem_fraction_static", "swap_space"), _DEVICES
    ),
    **dict.fromkeys(
        ("cpu_offload_gb", "enforce_eager", "enable_prefix_caching", "hidden_states"), _DEVICES
    ),
    **dict.fromkeys(
        ("batch_size", "max_num_seqs", "max_num_batched_tokens", "max_connections"), _SPEED
    ),
    **dict.fromkeys(("timeout", "client_timeout", "max_retries", "retry_delay"), _WAIT),
    **dict.fromkeys(
        ("host", "port", "base_url", "stream", "streaming", "http_client", "api_version"), _SERVER
    ),
    **dict.fromkeys(
        ("service_tier", "aws_region", "region", "configure_logging", "disable_log_requests"),
        _SERVER,
    ),
    **dict.fromkeys(
        ("download_dir", "cache_dir", "local_files_only", "trust_remote_code"), _SERVER
    ),
    **dict.fromkeys(
        ("api_key", "token", "organization", "project", "user", "safety_identifier"), _SECRET
    ),
    **dict.fromkeys(
        ("model_path", "gguf_file", "revision", "subfolder", "variant", "max_model_len"), _WEIGHTS
    ),
    **dict.fromkeys(
        ("dtype", "torch_dtype", "kv_cache_dtype", "quantization", "quantization_config"),
        _PRECISION,
    ),
    **dict.fromkeys(("load_in_4bit", "load_in_8bit", "load_format"), _PRECISION),
    **dict.fromkeys(("chat_template", "use_chat_template", "enable_thinking"), _TEMPLATE),
    **dict.fromkeys(("tokenizer", "tokenizer_path", "tokenizer_call_args"), _TEMPLATE),
    **dict.fromkeys(("do_sample", "seed"), _SAMPLING),
    **dict.fromkeys(
        ("emulate_tools", "tool_call_parser", "enable_auto_tool_choice", "strict_tools"), _TOOLS
    ),
    "reasoning_parser": _REASONING,
    "default_headers": (SIGNED, "can send any option; only a digest is shown"),
}
"""Argument of a provider (``-M``), with underscores -> its treatment, and the reason."""
