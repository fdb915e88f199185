"""Published scores of other systems, read from the config ``leaderboard`` of each benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, read_json_list
from qabench.io.tables import Table
from qabench.loading_scripts import LEADERBOARD, dataset_table


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """One published score of one system.

    Attributes:
        system: the system's name, such as "GPT-4".
        setting: a setting of the benchmark, such as "closed-book". None if the source does not name
            one.
        config: the questions, such as "test".
        metric: the name of a metric of the benchmark, such as "acc.loose".
        value: the value in qabench's units (a fraction where the source has percent).
        source: where the score was published.
        judge: for a score by an LLM judge, the judge's model.
    """

    system: str
    setting: str | None
    config: str
    metric: str
    value: float
    source: str
    judge: str | None = None


def published_rows(path: Path) -> Iterator[Json]:
    """Yield the rows of a ``leaderboard.json``. Raises a DataError that names file, row and field."""
    for row in read_json_list(path):
        row.only("system", "setting", "config", "metric", "value", "source")
        texts = {key: row.get(key, str) for key in ("system", "config", "metric", "source")}
        yield texts | {"setting": row.get("setting", str, None), "value": row.number("value")}


def shipped_scores(name: str) -> list[PublishedScore]:
    """Return the scores in a benchmark's ``leaderboard.json``, or [] without a config leaderboard."""
    config = dataset_table(name).configs.get(LEADERBOARD)
    if config is None:
        return []
    scores = []
    for files in config.splits.values():
        for file in files:
            for row in published_rows(dataset_table(name).open_path(file)):
                scores.append(PublishedScore(**row))
    return scores


def published_table(scores: Iterable[PublishedScore]) -> Table:
    """Return a table with a row per system, setting and config, and a column per metric."""
    rows: dict[tuple[str, str | None, str], dict[str, float]] = {}
    for score in scores:
        rows.setdefault((score.system, score.setting, score.config), {})[score.metric] = score.value
    # A dict as an ordered set.
    metrics: dict[str, None] = {}
    for row in rows.values():
        metrics |= dict.fromkeys(row)
    lines = []
    for key, row in rows.items():
        line: list[Any] = [*key]
        for name in metrics:
            value = None
            if name in row:
                value = round(row[name], 6)
            line.append(value)
        lines.append(line)
    return Table("Published scores", ["system", "setting", "config", *metrics], lines)
