"""Published scores and statistics, recomputed from public data and compared."""

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
    """A number that was computed from public data, or could not be.

    Attributes:
        name: what it counts or measures, such as "all: segments: science".
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
        """Tell whether the computed value, rounded like the published one, equals it."""
        if self.published is None:
            # Without a published value, there is nothing to disagree with.
            return True
        # Papers round: 48.3 has one digit after the point, and so has the value to compare with.
        digits = len(str(self.published).partition(".")[2])
        return self.computed is not None and round(self.computed, digits) == self.published


@dataclass(frozen=True, slots=True)
class Reproduction:
    """All published numbers of a benchmark.

    Attributes:
        checks: one per number.
        tables: further numbers, without published values.
        notes: sentences about published numbers that are not among the checks, with the reason.
    """

    checks: list[Check] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def published_numbers(name: str) -> Json:
    """Return the content of a benchmark's ``published.json``, if it has one.

    "published" has the numbers by config, figure and group. "differences" has in the same form the
    numbers of the data that are known to differ, for the "reason". "means" has figures that are
    quotients of two others.
    """
    path = folder_of(name) / "published.json"
    content: Json = read_json(path) if path.is_file() else {}
    return content


def available_splits(name: str, config: str) -> Json:
    """Return the rows of a config by split, of the splits whose files are available."""
    table = dataset_table(name)
    splits: Json = {}
    for split, files in table.config(config).splits.items():
        with suppress(SourceError):
            # Streaming would open a file only when its first row is read.
            for file in files:
                table.open_path(file)
            splits[split] = load_dataset(name, config, split=split, streaming=True)
    return splits
