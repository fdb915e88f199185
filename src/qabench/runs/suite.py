"""Suites: models x benchmarks x settings x seeds from a YAML file, on Inspect's eval-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import inspect_ai
from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from qabench.benchmarks import benchmark
from qabench.errors import InputError, unknown_name
from qabench.io.limits import yaml_of
from qabench.llm.endpoint import clean_url
from qabench.runs.log import read_header
from qabench.runs.plan import at_address, check_task_options, probe
from qabench.runs.running import QUIET, Watch, watching
from qabench.runs.trust import task_of
from qabench.tasks.common import naming_arguments

EXAMPLE = """models: [openai/gpt-4o, hf-inference-providers/ORG/NAME]
base_url: http://localhost:8000/v1   # optional: all models are at this server
benchmarks:
  - {benchmark: NAME, settings: [SETTING], config: CONFIG, options: {}}
seeds: [0, 1]                        # optional
limit: 50                            # optional
max_new_tokens: 512                  # optional
cache: true                          # optional"""

OF_SUITE = ("base_url", "limit", "max_tokens", "cache")  # options of ``Suite.with_options``
Positive = Annotated[int, Field(ge=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Benchmark(_Strict):
    benchmark: str
    settings: list[str] | None = None
    config: str | None = None
    options: dict[str, Any] | None = None


@dataclass(frozen=True)
class Entry:
    """One setting of a benchmark in a suite, with the arguments of its task."""

    benchmark: str
    setting: str
    arguments: Mapping[str, Any]


class Suite(_Strict):
    """The content of a suite's file, as in ``EXAMPLE``; a key without a value is as one that is absent."""

    models: list[str]
    benchmarks: list[_Benchmark]
    base_url: str | None = None
    seeds: list[int] | None = None
    limit: Positive | None = None  # with --limit also a range
    max_new_tokens: Positive | None = None
    cache: bool | None = None

    @property
    def entries(self) -> list[Entry]:
        """Return the settings of all benchmarks. Raises InputError for an unknown benchmark, setting or option."""
        entries = []
        for part in self.benchmarks:
            scorer = benchmark(part.benchmark)
            arguments = dict(part.options or {}) | ({"config": part.config} if part.config else {})
            for setting in [scorer.setting(name) for name in part.settings or [scorer.settings[0].name]]:
                check_task_options(scorer, setting, arguments)
                entries.append(Entry(scorer.name, setting.name, arguments))
        return entries

    def with_options(
        self,
        base_url: str | None = None,
        limit: Any = None,
        max_tokens: int | None = None,
        cache: bool | None = None,
        **_: Any,
    ) -> Suite:
        """Return the suite with the options that are not None instead of the file's."""
        options = {"limit": limit, "max_new_tokens": max_tokens, "cache": cache}
        changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if base_url:
            changes |= {"base_url": clean_url(base_url), "models": list(map(at_address, self.models))}
        return self.model_copy(update=changes)


def read_suite(path: Path) -> Suite:
    """Return the suite in a YAML file. Raises InputError if it cannot be read, or a key or a value is invalid."""
    try:
        suite = Suite.model_validate(yaml_of(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"cannot read the suite {path}: {error.strerror or error}") from None
    except ValidationError as error:
        raise _wrong(path, error) from None
    except ValueError as error:
        raise InputError(f"the suite {path} is not YAML: {error}") from None
    if not suite.models or not suite.entries:
        raise InputError(f"the suite {path} must list models and benchmarks, as in this example:\n{EXAMPLE}")
    return suite.with_options(suite.base_url)


def run_suite(
    suite: Suite,
    log_dir: Path,
    *,
    watch: Watch | None = None,
    model_args: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[list[Path], list[str]]:
    """Run a suite, or continue it: questions with answers in the folder's logs are not asked again.

    Returns the logs, and those that are not finished. Each seed has its own folder. Options that are not those of
    ``Suite.with_options`` are options of ``inspect_ai.eval_set``. Raises QabenchError and Interrupted as ``start``.
    """
    suite = suite.with_options(**options)
    passed = {name: value for name, value in options.items() if value is not None and name not in OF_SUITE}
    passed |= {"max_tokens": suite.max_new_tokens, "cache": suite.cache is not False}
    tasks = list(map(_task, suite.entries))  # first what takes no model: loading weights takes long
    watch = watch or Watch(log_dir)
    seeds: Sequence[int | None] = suite.seeds or [None]
    if not any(log_dir.rglob("*.eval")):  # else the questions without an answer are counted when their task starts
        limit: Any = suite.limit
        bounds = limit if isinstance(limit, tuple) else (limit,)
        questions = sum(len(range(len(task.dataset))[slice(*bounds)]) for task in tasks)
        watch.expected = questions * len(suite.models) * len(seeds) * passed.get("epochs", 1)
    config = GenerateConfig(**{name: passed[name] for name in GenerateConfig.model_fields if name in passed})
    models = [probe(model, suite.base_url, model_args, config, tasks[0].config) for model in suite.models]
    passed |= {"model": models, "model_args": dict(model_args or {})}
    watch.repeat = "repeat the command to continue the suite"
    logs: list[Path] = []
    for seed in seeds:
        with watching(watch, passed["cache"], "the suite cannot run"):
            _, headers = inspect_ai.eval_set(
                list(map(_task, suite.entries)),
                log_dir=str(log_dir if seed is None else log_dir / f"seed-{seed}"),
                model_base_url=suite.base_url,
                limit=suite.limit,
                seed=seed,
                retry_attempts=1,
                max_tasks=len(suite.models),
                log_dir_allow_dirty=True,
                **passed,
                **QUIET,
            )
            if watch.stopped:
                raise watch.interrupted()
        paths = [Path(header.location.removeprefix("file://")) for header in headers]
        logs += sorted(paths, key=partial(_place, suite))
    return logs, [str(path) for path in logs if read_header(path).status != "success"]


def _place(suite: Suite, log: Path) -> tuple[int, int]:
    """Return the place of a log in the order of the suite's file: by setting, then by model."""
    spec = read_header(log).eval
    scorer, setting = task_of(spec.task, spec.task_args_passed, log)
    settings = [(entry.benchmark, entry.setting) for entry in suite.entries]
    return settings.index((scorer.name, setting.name)), [*suite.models, spec.model].index(spec.model)


def _task(entry: Entry) -> Any:
    descriptor = benchmark(entry.benchmark)
    setting = descriptor.setting(entry.setting)
    with naming_arguments(entry.arguments):
        return descriptor.task_function(setting)(**{**setting.arguments, **entry.arguments})


def _wrong(path: Path, error: ValidationError) -> InputError:
    """Return the first error of a suite's file: the key, its value, and what is allowed."""
    errors = error.errors()
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    key, message = ".".join(map(str, first["loc"])), first["msg"]
    if first["type"] == "extra_forbidden":
        allowed = Suite.model_fields if len(first["loc"]) == 1 else _Benchmark.model_fields
        return unknown_name(f"the suite {path} has an unknown key", str(first["loc"][-1]), list(allowed))
    if first["type"] == "missing":
        problem = f"the key {key!r} is missing"
    elif first["type"] == "model_type":
        problem = f"{key or 'the file'} is {first['input']!r}, which is not a mapping"
    else:
        problem = f"{key} is {first['input']!r}; {message[0].lower()}{message[1:]}"
    return InputError(f"the suite {path}: {problem}; an example of a suite:\n{EXAMPLE}")
