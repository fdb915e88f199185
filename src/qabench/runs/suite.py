"""Suites: models x benchmarks x settings x seeds from a YAML file, on Inspect's eval-set."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark, benchmark_names
from qabench.errors import InputError, QabenchError, unknown_name
from qabench.io.limits import yaml_of
from qabench.llm.endpoint import clean_url
from qabench.runs.log import read_header
from qabench.runs.plan import check_task_options
from qabench.runs.probe import at_address, plain, probe
from qabench.runs.running import QUIET, Interrupted, Watch, watching
from qabench.tasks.common import naming_arguments

TYPES = {str: "a text", int: "a whole number", bool: "true or false", dict: "a mapping"}
SUITE_OPTIONS = ("base_url", "limit", "max_tokens", "cache")  # of ``Suite.with_options``
REPEAT = "the answers are kept; repeat the command to continue the suite"

EXAMPLE = """models: [openai/gpt-4o, hf-inference-providers/ORG/NAME]
base_url: http://localhost:8000/v1   # optional: all models are at this server
benchmarks:
  - {benchmark: NAME, settings: [SETTING], config: CONFIG, options: {}}
seeds: [0, 1]                        # optional
limit: 50                            # optional
max_new_tokens: 512                  # optional
cache: true                          # optional"""
KEYS = ("models", "base_url", "benchmarks", "seeds", "limit", "max_new_tokens", "cache")
BENCHMARK_KEYS = ("benchmark", "settings", "config", "options")


@dataclass(frozen=True)
class Entry:
    """One setting of a benchmark in a suite, with the arguments of its task."""

    benchmark: str
    setting: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Suite:
    """The content of a suite file."""

    models: tuple[str, ...]
    entries: tuple[Entry, ...]
    seeds: tuple[int | None, ...] = (None,)
    base_url: str | None = None
    limit: int | tuple[int, int] | None = None
    max_new_tokens: int | None = None
    cache: bool = True

    def with_options(
        self,
        base_url: str | None = None,
        limit: int | tuple[int, int] | None = None,
        max_tokens: int | None = None,
        cache: bool | None = None,
        **_: Any,
    ) -> Suite:
        """Return the suite with the options that are not None instead of the file's."""
        options = {"limit": limit, "max_new_tokens": max_tokens, "cache": cache}
        changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        if base_url:
            changes |= {"base_url": clean_url(base_url), "models": tuple(map(at_address, self.models))}
        return replace(self, **changes)


def read_suite(path: Path) -> Suite:
    """Return the suite in a YAML file.

    Raises:
        InputError: it cannot be read, a key, benchmark, setting or option is unknown, or a value has a wrong type.
    """
    try:
        document = yaml_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the suite {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"the suite {path} is not YAML: {error}") from None
    mapping = _Mapping(document, KEYS, f"the suite {path}")
    models, benchmarks = mapping.list_of("models", str), mapping.list_of("benchmarks", dict)
    if not models or not benchmarks:
        raise InputError(f"the suite {path} must list models and benchmarks, as in this example:\n{EXAMPLE}")
    url = mapping.value("base_url", str)
    suite = Suite(
        models=tuple(models),
        entries=tuple(entry for benchmark in benchmarks for entry in _entries(benchmark, path)),
        seeds=tuple(mapping.list_of("seeds", int)) or (None,),
        limit=mapping.value("limit", int),
        max_new_tokens=mapping.value("max_new_tokens", int),
        cache=mapping.value("cache", bool, True),
    )
    return suite.with_options(base_url=url)


def run_suite(
    suite: Suite,
    log_dir: Path,
    *,
    watch: Watch | None = None,
    model_args: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[list[Path], list[str]]:
    """Run a suite, or continue it: questions with answers in the folder's logs are not asked again.

    Args:
        suite: see ``read_suite``.
        log_dir: the folder of the logs, with a subfolder for each seed if there are several.
        watch: receives the paths of logs and the progress.
        model_args: arguments of the models' providers.
        **options: see ``Suite.with_options``; the others are options of ``inspect_ai.eval_set``.

    Returns:
        The logs, and the names of runs that are not finished.

    Raises:
        QabenchError: a model does not respond, or all calls are rejected.
        Interrupted: by Ctrl-C or SIGTERM.
    """
    suite = suite.with_options(**options)
    for model in suite.models:
        probe(model, suite.base_url, model_args)
    passed = {name: value for name, value in options.items() if value is not None and name not in SUITE_OPTIONS}
    logs: list[Path] = []
    for seed in suite.seeds:
        folder = log_dir if seed is None else log_dir / f"seed-{seed}"
        paths = _run_seed(suite, seed, folder, watch or Watch(folder), {**passed, "model_args": dict(model_args or {})})
        logs += sorted(paths, key=partial(_place, suite))
    return logs, [str(path) for path in logs if read_header(path).status != "success"]


def _run_seed(suite: Suite, seed: int | None, folder: Path, watch: Watch, options: Mapping[str, Any]) -> list[Path]:
    import inspect_ai

    with watching(watch, suite.cache) as stop:
        try:
            _, logs = inspect_ai.eval_set(
                list(map(_task, suite.entries)),
                log_dir=str(folder),
                model=list(suite.models),
                model_base_url=suite.base_url,
                limit=suite.limit,
                max_tokens=suite.max_new_tokens,
                seed=seed,
                cache=suite.cache,
                retry_attempts=1,
                max_tasks=len(suite.models),
                log_dir_allow_dirty=True,
                **options,
                **QUIET,
            )
        except KeyboardInterrupt:
            logs = []
            if not watch.stopped:
                raise Interrupted(f"interrupted; {REPEAT}", stop.number or signal.SIGINT) from None
        except (QabenchError, PermissionError):
            raise
        except Exception as error:
            raise InputError(f"the suite cannot run: {plain(error)}") from error
    if watch.stopped:
        raise QabenchError(f"the suite was stopped: {watch.stopped}; {REPEAT}")
    return [Path(log.location.removeprefix("file://")) for log in logs]


def _place(suite: Suite, log: Path) -> tuple[int, int]:
    """Return the place of a log in the order of the suite's file: by entry, then by model."""
    spec = read_header(log).eval
    entry = next((i for i, entry in enumerate(suite.entries) if _is_of(entry, spec)), len(suite.entries))
    return entry, suite.models.index(spec.model) if spec.model in suite.models else len(suite.models)


def _is_of(entry: Entry, spec: Any) -> bool:
    """Return whether the task of a log is that of an entry."""
    setting = benchmark(entry.benchmark).setting(entry.setting)
    arguments = {**setting.arguments, **entry.arguments}
    return bool(
        spec.task.removeprefix("qabench/") == setting.task and arguments.items() <= spec.task_args_passed.items()
    )


def _task(entry: Entry) -> Any:
    descriptor = benchmark(entry.benchmark)
    setting = descriptor.setting(entry.setting)
    with naming_arguments(entry.arguments):
        return descriptor.task_function(setting)(**{**setting.arguments, **entry.arguments})


def _entries(document: Any, path: Path) -> list[Entry]:
    mapping = _Mapping(document, BENCHMARK_KEYS, f"an entry of benchmarks in {path}")
    name = mapping.value("benchmark", str)
    if name is None:
        allowed = ", ".join(benchmark_names())
        raise InputError(f"an entry of benchmarks in {path} has no 'benchmark'; allowed: {allowed}")
    descriptor = benchmark(name)
    arguments: dict[str, Any] = {str(key): value for key, value in mapping.value("options", dict, {}).items()}
    if config := mapping.value("config", str):
        arguments["config"] = config
    entries = []
    for setting_name in mapping.list_of("settings", str) or [descriptor.settings[0].name]:
        setting = descriptor.setting(setting_name)
        check_task_options(descriptor, setting, arguments)
        entries.append(Entry(descriptor.name, setting.name, arguments))
    return entries


class _Mapping:
    """A mapping of the suite's file, whose keys and types are checked."""

    def __init__(self, document: Any, keys: Sequence[str], what: str) -> None:
        if not isinstance(document, dict):
            raise InputError(f"{what} is not a mapping; an example of a suite:\n{EXAMPLE}")
        if unknown := [key for key in document if key not in keys]:
            raise unknown_name(f"{what} has an unknown key", unknown[0], keys)
        self.values, self.what = document, what

    def value(self, key: str, kind: type, default: Any = None) -> Any:
        """Return the value of a key, or the default. Raises InputError if it has another type, or is below 1."""
        value = self.values.get(key)
        if value is None:
            return default
        if not _has_type(value, kind) or (kind is int and value < 1):
            least = " of at least 1" if kind is int else ""
            raise InputError(f"{self.what}: {key} is {value!r}; it must be {TYPES[kind]}{least}")
        return value

    def list_of(self, key: str, kind: type) -> list[Any]:
        """Return the list of a key, or []. Raises InputError if it is not a list of this type."""
        values = self.values.get(key)
        if values is None:
            return []
        if not isinstance(values, list) or not all(_has_type(value, kind) for value in values):
            raise InputError(f"{self.what}: {key} is {values!r}; it must be a list, each {TYPES[kind]}")
        return values


def _has_type(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))
