"""Suites: models x benchmarks x settings x seeds from a YAML file, on Inspect's eval-set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from qabench.benchmarks import benchmark, benchmark_names
from qabench.errors import InputError, QabenchError
from qabench.io.limits import yaml_of
from qabench.llm.endpoint import clean_url
from qabench.runs.log import read_header
from qabench.runs.plan import check_task_options
from qabench.runs.probe import at_address, plain, probe
from qabench.runs.running import QUIET, Watch, watching
from qabench.tasks.common import naming_arguments

EXAMPLE = """models: [openai/gpt-4o, hf-inference-providers/ORG/NAME]
base_url: http://localhost:8000/v1   # optional: all models are at this server
benchmarks:
  - {benchmark: NAME, settings: [SETTING], config: CONFIG, options: {}}
seeds: [0, 1]                        # optional
limit: 50                            # optional
max_new_tokens: 512                  # optional"""
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
    limit: int | None = None
    max_new_tokens: int | None = None
    cache: bool = True


def read_suite(path: Path) -> Suite:
    """The suite in a YAML file.

    Raises:
        InputError: it cannot be read, or a key, benchmark, setting or option is unknown.
    """
    try:
        document = yaml_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the suite {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"the suite {path} is not YAML: {error}") from None
    of = _mapping(document, KEYS, f"the suite {path}")
    models, benchmarks = of.get("models"), of.get("benchmarks")
    if not isinstance(models, list) or not models or not isinstance(benchmarks, list) or not benchmarks:
        raise InputError(f"the suite {path} must list models and benchmarks, as in this example:\n{EXAMPLE}")
    url = clean_url(str(of["base_url"])) if of.get("base_url") else None
    names = [str(name) for name in models]
    if url:
        names = [at_address(name) for name in names]
    return Suite(
        models=tuple(names),
        entries=tuple(entry for each in benchmarks for entry in _entries(each, path)),
        seeds=tuple(of.get("seeds") or (None,)),
        base_url=url,
        limit=of.get("limit"),
        max_new_tokens=of.get("max_new_tokens"),
        cache=bool(of.get("cache", True)),
    )


def run_suite(
    suite: Suite, log_dir: Path, *, watch: Watch | None = None, **options: Any
) -> tuple[list[Path], list[str]]:
    """Runs a suite, or continues it: questions with answers in the folder's logs are not asked again.

    Args:
        suite: see ``read_suite``.
        log_dir: the folder of the logs, with a subfolder for each seed if there are several.
        watch: receives the paths of logs and the progress.
        **options: options of ``inspect_ai.eval_set``.

    Returns:
        The logs, and the names of runs that are not finished.
    """
    import inspect_ai

    for model in suite.models:
        probe(model, suite.base_url)
    given = {name: value for name, value in options.items() if value is not None} | QUIET
    logs: list[Path] = []
    unfinished: list[str] = []
    tasks = [_task(entry) for entry in suite.entries]
    for seed in suite.seeds:
        folder = log_dir if seed is None else log_dir / f"seed-{seed}"
        with watching(watch or Watch(folder), suite.cache):
            try:
                _, found = inspect_ai.eval_set(
                    tasks,
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
                    **given,
                )
            except (QabenchError, KeyboardInterrupt, PermissionError):
                raise
            except Exception as error:
                raise InputError(f"the suite cannot run: {plain(error)}") from error
        paths = [Path(log.location.removeprefix("file://")) for log in found]
        logs += sorted(paths, key=partial(_place, suite))
        unfinished += [str(path) for path in paths if read_header(path).status != "success"]
    return logs, unfinished


def _place(suite: Suite, log: Path) -> tuple[int, int]:
    """The place of a log in the order of the suite's file: by entry, then by model."""
    header = read_header(log)
    tasks = [(entry.benchmark, entry.setting) for entry in suite.entries]
    return tasks.index((header.metadata["benchmark"], header.metadata["setting"])), suite.models.index(
        header.eval.model
    )


def _task(entry: Entry) -> Any:
    scorer = benchmark(entry.benchmark)
    setting = scorer.setting(entry.setting)
    with naming_arguments(entry.arguments):
        return scorer.task_function(setting)(**{**setting.arguments, **entry.arguments})


def _entries(given: Any, path: Path) -> list[Entry]:
    of = _mapping(given, BENCHMARK_KEYS, f"an entry of benchmarks in {path}")
    if "benchmark" not in of:
        raise InputError(
            f"an entry of benchmarks in {path} has no 'benchmark'; allowed: {', '.join(benchmark_names())}"
        )
    found = benchmark(str(of["benchmark"]))
    arguments = dict(of.get("options") or {})
    if of.get("config"):
        arguments["config"] = of["config"]
    made = []
    for name in of.get("settings") or [found.settings[0].name]:
        setting = found.setting(name)
        check_task_options(found, setting, arguments)
        made.append(Entry(found.name, setting.name, arguments))
    return made


def _mapping(document: Any, keys: Sequence[str], what: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InputError(f"{what} is not a mapping; an example of a suite:\n{EXAMPLE}")
    if unknown := [key for key in document if key not in keys]:
        raise InputError(f"{what} has an unknown key {unknown[0]!r}; allowed: {', '.join(keys)}")
    return document
