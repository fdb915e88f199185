"""Read FanOutQA's published results: the files ``leaderboard-submissions/results/*.json``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qabench.data.rows import Json, Row, SourceRow, read_json
from qabench.errors import DataError
from qabench.loading_scripts import LEADERBOARD, dataset_table
from qabench.loading_scripts.fanoutqa.parse import EARLIER_JUDGE, JUDGE
from qabench.loading_scripts.published import PublishedScore

SETTINGS = {
    "closedbook": "closed-book",
    "openbook": "open-book",
    "evidenceprovided": "evidence-provided",
}
ROUGES = ("rouge1", "rouge2", "rougeL")
MEASURES = ("precision", "recall", "fscore")

# The authors changed the judge on 2025-02-28. Only these result files were changed after that: the
# first one on 2025-03-05, the other two on 2025-09-21.
FILES_OF_TODAYS_JUDGE = (
    "llama33_70b_distill_ds_32k.json",
    "gpt-oss-120b.json",
    "gpt-oss-20b.json",
)

# The fields that describe the system of a submission, with their types. ``details`` is optional.
SYSTEM: dict[str, tuple[type | None, ...]] = {
    "name": (str,),
    "authors": (str,),
    "url": (str, None),
    "citation": (str,),
    "type": (str,),
    "context": (int,),
    "is_trained_for_function_calling": (bool,),
    "details": (str, None),
}
TYPES = ("FOUNDATION", "FINETUNE", "PROMPT", "OTHER")


def system_of(row: SourceRow, *ignored: str) -> Json:
    """Return the fields of ``SYSTEM`` from the metadata of a submission.

    Raises DataError, with a line for each missing field, each field that is neither allowed nor
    ``ignored``, and each wrong value.
    """
    system = {}
    errors = []
    for key in row.fields:
        if key not in (*SYSTEM, *ignored):
            errors.append(f"{row.where}: unknown field {key!r}; the fields are {', '.join(SYSTEM)}")
    for key, types in SYSTEM.items():
        if key == "details" and key not in row.fields:
            continue
        try:
            if key == "type":
                system[key] = row.one_of(key, TYPES)
            else:
                system[key] = row.get(key, *types)
        except DataError as error:
            errors.append(str(error))
    if errors:
        raise DataError("\n".join(errors))
    return system


def read_results(path: Path) -> Iterator[Json]:
    """Yield one row per setting of the system in the file.

    Raises:
        DataError: the file has another format. The message names file and field.
    """
    file = SourceRow.of(read_json(path), str(path)).only(
        "_submission_hash", "_results_hash", "metadata", *SETTINGS
    )
    system = {"details": None, **system_of(file.object("metadata", *SYSTEM))}
    judge = JUDGE if path.name in FILES_OF_TODAYS_JUDGE else EARLIER_JUDGE
    common = {
        "system": system.pop("name"),
        **system,
        "file": path.name,
        "judge": judge,
        "judge_source": "inferred from the date of the file",
    }
    for key, setting in SETTINGS.items():
        # A submission may lack a setting.
        if file.fields.get(key) is not None:
            scores = _scores(file.object(key, "acc", "rouge", "bleurt", "gpt"))
            yield {**common, "setting": setting, **scores}


def published_scores() -> list[PublishedScore]:
    """Return all scores of all systems. Raises SourceError if a file is not available."""
    dataset = dataset_table("fanoutqa")
    scores = []
    for path in dataset.config(LEADERBOARD).files:
        url = dataset.sources[path].url
        for row in read_results(dataset.open_path(path)):
            for metric, value in _scores_by_name(row).items():
                judge = row["judge"] if metric == "gpt" else None
                score = PublishedScore(
                    row["system"], row["setting"], "test", metric, value, url, judge
                )
                scores.append(score)
    return scores


def _scores_by_name(row: Row) -> dict[str, float]:
    """Return the scores that a row has by name, such as "acc.loose"."""
    scores = {"acc": row["acc"], **row["rouge"], "bleurt": row["bleurt"], "gpt": row["gpt"]}
    return {name: value for name, value in _leaves(scores, "") if value is not None}


def _leaves(scores: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of each score in nested objects. The name is its path: "acc.loose"."""
    for name, value in scores.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _scores(row: SourceRow) -> Json:
    rouge = row.object("rouge", *ROUGES)
    accuracy = _numbers(row, "acc", ("loose", "strict"))
    measures = {kind: _numbers(rouge, kind, MEASURES) for kind in ROUGES}
    return {
        "acc": accuracy,
        "rouge": measures,
        "bleurt": row.number("bleurt", None),
        "gpt": row.number("gpt", None),
    }


def _numbers(row: SourceRow, key: str, names: tuple[str, ...]) -> dict[str, float]:
    numbers = row.object(key, *names)
    return {name: numbers.number(name) for name in names}
