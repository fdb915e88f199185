"""Leaderboards of a dataset on the Hub: the tasks of its ``eval.yaml``.

The Hub shows an entry of ``.eval_results`` on a leaderboard if its ``task_id`` is the id of a task in
the ``eval.yaml`` of the dataset. Ids of entries and of tasks come from one function, ``task_id``, and
one list, ``tasks_of``.

The Hub validates ``eval.yaml`` when it is pushed: the framework must be in its list. qabench is not in
that list yet, so ``qabench build`` writes the tasks that Inspect AI itself can score, if a benchmark has
any, unless it is called with ``--framework qabench``.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from huggingface_hub import HfApi
from huggingface_hub.errors import RemoteEntryNotFoundError

from qabench.benchmarks import Benchmark, benchmark
from qabench.data.rows import Json
from qabench.errors import QabenchError
from qabench.hub.client import bounded_answers, hub_errors
from qabench.io.limits import yaml_of
from qabench.loading_scripts import dataset_table, folder_of

INSPECT_AI, QABENCH = FRAMEWORKS = ("inspect-ai", "qabench")
FILE = "eval.yaml"
SECONDS_TO_WAIT = 5  # for the Hub, before its leaderboards are reported as unchecked


def task_id(config: str, setting: str, score: str) -> str:
    """Return the id of a score's task: ("dev", "closed-book", "acc.loose") -> dev_closed_book_acc_loose."""
    parts = [part for part in (config, setting, score) if part]
    return re.sub(r"\W+", "_", "_".join(parts), flags=re.ASCII)


def tasks_of(scorer: Benchmark) -> list[Json]:
    """Return the leaderboards of a benchmark as tasks of ``eval.yaml``: one per config, setting and score."""
    table = dataset_table(scorer.name)
    groups_by_config = scorer.leaderboards.groups or {table.default: tuple(scorer.groups)}
    settings = scorer.leaderboards.settings or tuple(setting.name for setting in scorer.settings)
    tasks = []
    for config, groups in groups_by_config.items():
        splits = table.config(config).splits
        split = "test" if "test" in splits else next(iter(splits))
        scores = [
            spec.at(scorer.leaderboards.cutoff).name
            for spec in scorer.scores
            if spec.official and spec.group in groups
        ]
        for setting in settings:
            ids = [task_id(config, setting, score) for score in scores]
            tasks += [{"id": id, "config": config, "split": split} for id in ids]
    return tasks


def eval_file(name: str, framework: str) -> Json | None:
    """Return the content of a dataset's ``eval.yaml``, or None if Inspect AI has no scorer for the benchmark."""
    table = dataset_table(name)
    if framework == INSPECT_AI:
        path = folder_of(name) / FILE
        return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    return {
        "name": table.title,
        "description": (
            f"The official scores of {table.title}, one leaderboard per score and setting, computed by qabench."
        ),
        "evaluation_framework": framework,
        "tasks": tasks_of(benchmark(name)),
    }


def shown_tasks(dataset: str) -> set[str]:
    """Return the ids of the leaderboards that a dataset has on the Hub: none without an ``eval.yaml``.

    Raises:
        HubError: the Hub cannot be reached, or has no such dataset.
        QabenchError: the file is not valid.
    """
    api = HfApi()
    with bounded_answers(), hub_errors(api):
        try:
            path = api.hf_hub_download(dataset, FILE, repo_type="dataset", etag_timeout=SECONDS_TO_WAIT)
        except RemoteEntryNotFoundError:
            return set()
    try:
        return {str(task["id"]) for task in yaml_of(Path(path).read_text(encoding="utf-8"))["tasks"]}
    except (KeyError, TypeError, ValueError) as error:
        raise QabenchError(f"{FILE} of {dataset} is not a list of tasks with ids: {error}") from None
