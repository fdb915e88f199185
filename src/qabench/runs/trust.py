"""Checks a log before it is resumed: a log is data, so it must not determine what code runs or where keys are sent."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qabench.benchmarks import Benchmark, Setting, benchmark, benchmark_names
from qabench.errors import InputError
from qabench.io.tables import printable
from qabench.llm.endpoint import clean_url
from qabench.loading_scripts import dataset_table
from qabench.runs.log import read_header, whole_log
from qabench.runs.plan import TaskOption, check_task_options, task_options
from qabench.tasks.replies import WITHOUT_EFFECT, configured_base_url

# The texts that a log may set, by option. Any other text is a path, an address, a model or free text, which the user
# has to repeat.
OFFICIAL_OR_OWN = ("auto", "official", "qabench")
NAMES: Mapping[str, tuple[str, ...]] = {
    "split": ("train", "validation", "test"),
    "prompt": OFFICIAL_OR_OWN,
    "protocol": OFFICIAL_OR_OWN,
    "lemmatizer": ("auto", "spacy", "simplemma"),
    "search": ("auto", "tools", "text", "searxng", "google"),
    "find": ("title", "bm25"),
    "method": (
        *("raw", "cot", "cot-cons", "link", "content"),
        *("closed", "retrieve-read", "retrieve-read-web", "post-hoc", "post-hoc-web"),
        *("bm25", "fts", "dense", "colbert"),
    ),
    "query": ("question", "keywords"),
    "chunker": ("sentences", "llama-index"),
    "ranker": ("auto", "bm25", "dense", "api"),
    "reply_format": ("answer", "vicuna"),
}
SELECTIONS = ("ids", "category", "fields", "domains", "chapters")  # only compared with values in the data
# The generation options whose texts are from a fixed set; Inspect checks them when it reads a log.
GENERATION_NAMES = (
    *("cache_prompt", "verbosity", "effort", "reasoning_effort", "reasoning_mode"),
    *("reasoning_summary", "reasoning_history"),
)
RUN_NAMES = ("sample_id", "token_limit_type")  # options of a run that are texts, but name nothing outside of the run
# These fields of a log name code, files or servers; a run of qabench does not set them.
DROPPED = ("task_file", "solver", "solver_args", "solver_args_passed", "sandbox", "model_roles", "revision")


def checked_log(
    path: str | Path,
    base_url: str | None = None,
    model_args: Mapping[str, Any] | None = None,
    task_args: Mapping[str, Any] | None = None,
    solver: str | None = None,
) -> Any:
    """Return the whole log, without anything that could determine code, files or a server.

    The other arguments are those of the user's call. Raises InputError if it is not a task of qabench, the task does
    not have its arguments, or the user did not repeat its server, solver, or an argument that is not read from a log.
    """
    log = whole_log(path)
    spec = log.eval
    scorer, setting = task_of(spec.task, spec.task_args_passed, path)
    repeated = {name: value for name, value in (task_args or {}).items() if value is not None}
    check_task_options(scorer, setting, _without_setting(spec.task_args_passed | repeated, setting))
    for name, value in repeated.items():
        if spec.task_args_passed.get(name) != value:
            before = repr(spec.task_args_passed[name]) if name in spec.task_args_passed else "its default"
            raise InputError(
                f"{path} was run with {name}={printable(before)}, not {value!r}; a run is resumed with the same "
                "options, so leave the option out, or start a new run"
            )
    url = _endpoint(spec, base_url, path)
    logged = (spec.metadata or {}).get("solver")
    if logged != (solver and solver_with_digest(solver)):
        raise InputError(
            f"{path} was run with the solver {printable(str(logged))}, which is not read from a log; to use the same "
            f"one: {resume_command(path)}"
        )
    missing = [name for name in arguments_to_repeat(spec.task, spec.task_args_passed) if name not in repeated]
    missing += [name for name in spec.model_args if name not in (model_args or {})]
    if missing:
        raise InputError(
            f"{path} was run with {', '.join(missing)}. Paths, addresses, models, texts and arguments of providers are "
            f"not read from a log. To use the same ones again: {resume_command(path)}"
        )
    spec.task = spec.task_registry_name = f"qabench/{setting.task}"
    for name in DROPPED:
        setattr(spec, name, None)
    spec.solver, spec.model_base_url, spec.model_args = solver, url, dict(model_args or {})
    _drop_texts(spec.config, RUN_NAMES)
    for config in (log.plan.config, spec.model_generate_config):
        config.cache = bool(config.cache)  # an object in logs of earlier versions
        changing = [name for name in _drop_texts(config, GENERATION_NAMES) if name not in WITHOUT_EFFECT]
        if changing:
            raise InputError(
                f"{path} was run with the generation option {changing[0]}, which is not read from a log; start a new "
                "run, or resume a log that you trust with `inspect eval-retry`"
            )
    if log.status == "started":
        log.status = "error"  # else Inspect reads the file again
    return log


def arguments_to_repeat(task: str, passed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a task that are not read from a log, because they are not numbers or known names."""
    scorer, setting = task_of(task, passed, "")
    options = {option.name: option for option in task_options(scorer, setting)}
    own = _without_setting(passed, setting)
    return {name: value for name, value in own.items() if not _harmless(scorer, name, value, options.get(name))}


def resume_command(path: str | Path) -> str:
    """Return the command that resumes a log, with everything that has to be repeated."""
    spec = read_header(path).eval
    words = ["qabench", "run", "--resume", str(path)]
    if spec.model_base_url:
        words += ["--base-url", printable(spec.model_base_url)]
    if spec.solver:
        words += ["--solver", printable(spec.solver)]
    texts = [("-M", spec.model_args), ("-T", arguments_to_repeat(spec.task, spec.task_args_passed))]
    for option, arguments in texts:
        for name, value in arguments.items():
            shown = value if isinstance(value, str) else json.dumps(value, default=str)
            words += [option, printable(f"{name}={shown}")]
    return shlex.join(words)


def task_of(name: str, passed: Mapping[str, Any], path: str | Path) -> tuple[Benchmark, Setting]:
    """Return the benchmark and setting of a task; of several settings, the one that the task's arguments make.

    Raises:
        InputError: it is not a task of qabench; the message names the log ``path``.
    """
    task = name.removeprefix("qabench/")
    candidates = [
        (scorer, setting)
        for scorer in map(benchmark, benchmark_names())
        for setting in scorer.settings
        if setting.task == task
    ]
    if not candidates:
        raise InputError(f"{path} is the log of {printable(name)!r}, which is not a task of qabench")
    return next((pair for pair in candidates if pair[1].arguments.items() <= passed.items()), candidates[0])


def _without_setting(arguments: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in setting.arguments}


def _harmless(scorer: Benchmark, name: str, value: Any, option: TaskOption | None) -> bool:
    """Tell whether a value may come from a log: a number, the option's default, or a name from a fixed set."""
    if _is_number(value) or name in SELECTIONS or (option and value == option.default):
        return True
    if not isinstance(value, str):
        return False
    if name == "config":
        return value in dataset_table(scorer.name).configs
    if name == "metrics":
        return {word.strip() for word in value.split(",")} <= set(scorer.families)
    return value in NAMES.get(name, ())


def _is_number(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_number, value))
    return value is None or isinstance(value, bool | int | float)


def solver_with_digest(solver: str) -> str:
    """Return the name of a solver "FILE.py@NAME" with a digest of its file. Raises InputError if there is no file."""
    path, _, name = solver.rpartition("@")
    try:
        return f"{name}-{hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]}"
    except OSError as error:
        reason = error.strerror if path else "no file"
        raise InputError(f"cannot read the solver {solver!r}: {reason}; expected FILE.py@NAME") from None


def _drop_texts(options: Any, names: tuple[str, ...]) -> list[str]:
    """Set the fields of a log's options to None unless they are numbers or in ``names``, and return those dropped."""
    dropped = [name for name, value in options if name not in names and not _is_number(value)]
    for name in dropped:
        setattr(options, name, None)
    return dropped


def _endpoint(spec: Any, base_url: str | None, path: str | Path) -> str | None:
    """Return the server to call. A log's server is used only if the user names the same one."""
    logged = spec.model_base_url
    named = clean_url(base_url) if base_url else configured_base_url(spec.model)
    if logged is None or named == clean_url(logged):
        return named if base_url or logged else None
    raise InputError(
        f"{path} was run on the server {printable(logged)}{f', not on {printable(named)}' if named else ''}. To send "
        f"its questions and your key to this server again, use: {resume_command(path)}"
    )
