"""Compare published scores and statistics with values computed from public data."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from qabench.data.rows import Json, read_json
from qabench.errors import SourceError
from qabench.io.tables import Table
from qabench.loading_scripts import dataset_table, folder_of
from qabench.loading_scripts.load import load_dataset


@dataclass(frozen=True, slots=True)
class Check:
    """A published number, and its value computed from public data if possible.

    Attributes:
        name: the name of the number, such as "all: segments: science".
        published: the published value, or None.
        computed: the value computed here. None if it was not computed, for the reason in
            ``explanation``.
        explanation: why the values differ, or "" if the reason is unknown, or if they agree.
        kind: "score" for a score of a system, "statistic" for a count of the data.
    """

    name: str
    published: float | None
    computed: float | None
    explanation: str = ""
    kind: Literal["score", "statistic"] = "statistic"

    @property
    def agrees(self) -> bool:
        """Return whether the computed value, rounded like the published one, equals it."""
        if self.published is None:
            # There is no published value with which the computed one could disagree.
            return True
        # Papers round: 48.3 has one digit after the point, so the computed value is rounded to one.
        digits = len(str(self.published).partition(".")[2])
        return self.computed is not None and round(self.computed, digits) == self.published


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All published numbers of a benchmark.

    Attributes:
        checks: the checks, one per number.
        tables: tables of further numbers, which are not compared with published values.
        notes: sentences that say why some published numbers are not among the checks.
    """

    checks: list[Check] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def published_numbers(name: str) -> Json:
    """Return the content of a benchmark's ``published.json``, or {} if it has none.

    "published" has the numbers by config, figure and group. "differences" has, in the same form,
    the computed values that are known to differ from them, and "reason" says why they differ.
    "means" has the figures that are quotients of two other figures.
    """
    path = folder_of(name) / "published.json"
    content: Json = read_json(path) if path.is_file() else {}
    return content


def available_splits(name: str, config: str) -> Json:
    """Return the rows of a config by split, without splits whose files are not available."""
    table = dataset_table(name)
    splits: Json = {}
    for split, files in table.config(config).splits.items():
        with suppress(SourceError):
            # Open the files now, because streaming opens a file only when its first row is read.
            for file in files:
                table.open_path(file)
            splits[split] = load_dataset(name, config, split=split, streaming=True)
    return splits
