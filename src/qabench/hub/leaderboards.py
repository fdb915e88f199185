"""Leaderboards of a dataset on the Hub: the tasks of its ``eval.yaml``.

The Hub shows an entry of ``.eval_results`` on a leaderboard if its ``task_id`` is the id of a task
in the ``eval.yaml`` of the dataset. Entries and tasks get their ids from the same function,
``task_id``. ``tasks_of`` lists the tasks.

The Hub validates ``eval.yaml`` when it is pushed: the framework must be in the Hub's list. qabench
is not in that list yet, so ``qabench build`` writes the tasks that Inspect AI itself can score, if
a benchmark has any, unless it is called with ``--framework qabench``.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from huggingface_hub import HfApi
from huggingface_hub.errors import RemoteEntryNotFoundError

from qabench.benchmarks import Benchmark
from qabench.benchmarks import benchmark as benchmark_of
from qabench.data.rows import Json
from qabench.errors import QabenchError, check_name
from qabench.hub.client import bounded_answers, hub_errors
from qabench.io.limits import yaml_of
from qabench.loading_scripts import dataset_table, folder_of

INSPECT_AI, QABENCH = FRAMEWORKS = ("inspect-ai", "qabench")
FILE = "eval.yaml"
# If the Hub does not answer within this time, its leaderboards are reported as unchecked.
SECONDS_TO_WAIT = 5


def check_framework(framework: str) -> None:
    """Raise InputError unless qabench writes ``eval.yaml`` for the framework."""
    check_name("eval.yaml has no framework", framework, FRAMEWORKS)


def task_id(config: str, setting: str, score: str) -> str:
    """Return the id of a score's task.

    Examples:
        >>> task_id("dev", "closed-book", "acc.loose")
        'dev_closed_book_acc_loose'
    """
    name = "_".join(filter(None, (config, setting, score)))
    return re.sub(r"\W+", "_", name, flags=re.ASCII)


def tasks_of(benchmark: Benchmark) -> list[Json]:
    """Return a task of ``eval.yaml`` for each config, setting and score with a leaderboard."""
    table = dataset_table(benchmark.name)
    groups_by_config = benchmark.leaderboards.groups or {table.default: tuple(benchmark.groups)}
    settings = benchmark.leaderboards.settings or tuple(
        setting.name for setting in benchmark.settings
    )
    tasks = []
    for config, groups in groups_by_config.items():
        splits = table.config(config).splits
        # Fall back to the first split of a config that has no test split.
        split = "test" if "test" in splits else next(iter(splits))
        scores = []
        for spec in benchmark.scores:
            # A leaderboard compares what papers report. A score at a cutoff k is shown at a single
            # k.
            if spec.official and spec.group in groups:
                scores.append(spec.at(benchmark.leaderboards.cutoff).name)
        for setting in settings:
            for score in scores:
                id = task_id(config, setting, score)
                tasks.append({"id": id, "config": config, "split": split})
    return tasks


def eval_file(name: str, framework: str) -> Json | None:
    """Return the content of a dataset's ``eval.yaml``, or None if the framework cannot score it."""
    table = dataset_table(name)
    if framework == INSPECT_AI:
        # Inspect also needs fields, solvers and scorers, which only this file declares.
        path = folder_of(name) / FILE
        if not path.is_file():
            return None
        content: Json = yaml.safe_load(path.read_text(encoding="utf-8"))
        return content
    return {
        "name": table.title,
        "description": (
            f"The official scores of {table.title}, one leaderboard per score and setting, computed by qabench."
        ),
        "evaluation_framework": framework,
        "tasks": tasks_of(benchmark_of(name)),
    }


def shown_tasks(dataset: str) -> set[str]:
    """Return the task ids in a dataset's ``eval.yaml`` on the Hub. Empty without such a file.

    Raises:
        HubError: the Hub cannot be reached, or has no such dataset.
        QabenchError: the file is not valid.
    """
    api = HfApi()
    with bounded_answers(), hub_errors(api):
        try:
            path = api.hf_hub_download(
                dataset, FILE, repo_type="dataset", etag_timeout=SECONDS_TO_WAIT
            )
        except RemoteEntryNotFoundError:
            return set()
    try:
        text = Path(path).read_text(encoding="utf-8")
        return {str(task["id"]) for task in yaml_of(text)["tasks"]}
    except (KeyError, TypeError, ValueError) as error:
        raise QabenchError(
            f"{FILE} of {dataset} is not a list of tasks with ids: {error}"
        ) from None
