"""FanOutQA's published results: the files ``leaderboard-submissions/results/*.json``.

No ``datasets`` here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qabench.data.rows import Json, Row, read_json
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


def read_results(path: Path) -> Iterator[Json]:
    """Yield one row per setting of the system in the file. All files are pinned, so their form is known."""
    file = read_json(path)
    about = file["metadata"]
    common = {
        **about,
        "system": about["name"],
        "details": about.get("details"),
        "file": path.name,
        "judge": JUDGE if path.name in AFTER_THE_CHANGE else EARLIER_JUDGE,
        "judge_source": "inferred from the date of the file",
    }
    del common["name"]
    for key, setting in SETTINGS.items():
        if file.get(key):  # a submission may lack a setting
            yield {**common, "setting": setting, **file[key]}


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
    return dict(flattened(scores))
