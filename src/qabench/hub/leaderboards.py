"""The leaderboards of a dataset on the Hub: the tasks of its ``eval.yaml``, one for each official score and setting.

The Hub shows an entry of ``.eval_results`` on a leaderboard if its ``task_id`` is the id of a task
there, and it validates the file when it is pushed: the framework must be in its list. qabench is
not in that list yet, so that ``build`` writes a benchmark's tasks for Inspect AI, if it has some,
unless ``--framework qabench`` is given.
"""

from __future__ import annotations

import re

import yaml

from qabench.benchmarks import benchmark
from qabench.data.rows import Json
from qabench.loading_scripts import FOLDER, dataset_table

FRAMEWORKS = ("inspect-ai", "qabench")
FILE = "eval.yaml"


def task_id(config: str, setting: str, score: str) -> str:
    """Return the task that a score belongs to: ("dev", "closed-book", "acc.loose") -> dev_closed_book_acc_loose."""
    return re.sub(r"\W+", "_", "_".join(filter(None, [config, setting, score])), flags=re.ASCII)


def tasks_of(name: str) -> list[Json]:
    """Return the leaderboards of a benchmark as tasks of ``eval.yaml``, by config, setting and score."""
    scorer, table = benchmark(name), dataset_table(name)
    tasks = []
    for config, scores in scorer.leaderboards().items():
        splits = table.config(config).splits
        split = "test" if "test" in splits else next(iter(splits))
        for setting in scorer.settings:
            for score in scores:
                id = task_id(config, setting.name, score)
                tasks.append({"id": id, "config": config, "split": split})
    return tasks


def eval_file(name: str, framework: str) -> Json | None:
    """Return the content of a dataset's ``eval.yaml``, or None for "inspect-ai" if Inspect AI has no scorer for it."""
    if framework == "inspect-ai":
        path = FOLDER / name / FILE
        return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None
    title = dataset_table(name).title
    about = f"The official scores of {title}, one leaderboard for each score and setting, computed by qabench."
    return {
        "name": title,
        "description": about,
        "evaluation_framework": framework,
        "tasks": tasks_of(name),
    }
