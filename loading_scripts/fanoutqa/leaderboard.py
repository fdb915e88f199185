"""FanOutQA's published results: the files ``leaderboard-submissions/results/*.json``.

No ``datasets`` here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qabench.data.rows import Json, Row, SourceRow, read_json
from qabench.io.tables import flattened
from qabench.loading_scripts import LEADERBOARD, dataset_table, open_path, source_table
from qabench.loading_scripts.fanoutqa.parse import EARLIER_JUDGE, JUDGE
from qabench.loading_scripts.published import PublishedScore

SETTINGS = {
    "closedbook": "closed-book",
    "openbook": "open-book",
    "evidenceprovided": "evidence-provided",
}
ROUGES = ("rouge1", "rouge2", "rougeL")
MEASURES = ("precision", "recall", "fscore")

AFTER_THE_CHANGE = ("llama33_70b_distill_ds_32k.json", "gpt-oss-120b.json", "gpt-oss-20b.json")
"""The result files that were last changed after 2025-02-28: on 2025-03-05, and twice on 2025-09-21."""


# What a submission says of its system: the key, and the types of its value. ``details`` is optional.
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
    """Return the keys of ``SYSTEM`` in the metadata of a submission.

    Raises DataError for a missing key, a key that is neither allowed nor ``ignored``, or a wrong
    value.
    """
    row.only(*SYSTEM, *ignored).one_of("type", TYPES)
    return {
        key: row.get(key, *types)
        for key, types in SYSTEM.items()
        if key != "details" or key in row.fields
    }


def read_results(path: Path) -> Iterator[Json]:
    """Yield one row per setting of the system in the file.

    Raises DataError that names file and field.
    """
    file = SourceRow.of(read_json(path), str(path)).only(
        "_submission_hash", "_results_hash", "metadata", *SETTINGS
    )
    system = {"details": None, **system_of(file.object("metadata", *SYSTEM))}
    common = {
        "system": system.pop("name"),
        **system,
        "file": path.name,
        "judge": JUDGE if path.name in AFTER_THE_CHANGE else EARLIER_JUDGE,
        "judge_source": "inferred from the date of the file",
    }
    for key, setting in SETTINGS.items():
        if file.fields.get(key) is not None:  # a submission may lack a setting
            scores = _scores(file.object(key, "acc", "rouge", "bleurt", "gpt"))
            yield {**common, "setting": setting, **scores}


def published_scores() -> list[PublishedScore]:
    """Return all scores of all systems, by metric.

    Raises SourceError if a file is not available.
    """
    sources = source_table("fanoutqa")
    return [
        PublishedScore(
            row["system"],
            row["setting"],
            "test",
            metric,
            value,
            sources[path].url,
            row["judge"] if metric == "gpt" else None,
        )
        for path in dataset_table("fanoutqa").config(LEADERBOARD).files
        for row in read_results(open_path("fanoutqa", path))
        for metric, value in _flat(row).items()
    ]


def _flat(row: Row) -> dict[str, float]:
    """Return the scores of a row by the names of the benchmark's metrics."""
    scores = {"acc": row["acc"], **row["rouge"], "bleurt": row["bleurt"], "gpt": row["gpt"]}
    return {name: value for name, value in flattened(scores) if value is not None}


def _scores(row: SourceRow) -> Json:
    rouge = row.object("rouge", *ROUGES)
    return {
        "acc": _numbers(row, "acc", ("loose", "strict")),
        "rouge": {kind: _numbers(rouge, kind, MEASURES) for kind in ROUGES},
        "bleurt": row.number("bleurt", None),
        "gpt": row.number("gpt", None),
    }


def _numbers(row: SourceRow, key: str, names: tuple[str, ...]) -> dict[str, float]:
    part = row.object(key, *names)
    return {name: part.number(name) for name in names}
