"""ExpertQA's statistics and AutoAIS, recomputed from the public data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from qabench.benchmarks.expertqa.agreement import autoais
from qabench.benchmarks.reproduction import Reproduction, available_splits
from qabench.data.rows import Row
from qabench.io.tables import Table

COLUMNS = ("macro", "micro", "macro_without_abstentions", "micro_without_abstentions", "counted_claims")


def reproduce(reproduction: Reproduction) -> Reproduction:
    """Add tables of AutoAIS of the annotated files that are available to the statistics of the data."""
    for config in ("autoais", "all_evidences"):  # the configs whose claims have AutoAIS labels
        for split, rows in available_splits("expertqa", config).items():
            reproduction.tables.append(autoais_table(f"{config} {split}", rows))
    reproduction.notes.append(
        "AutoAIS is computed from the files with its labels that are available. There are no published values for it."
    )
    return reproduction


def autoais_table(name: str, rows: Iterable[Row]) -> Table:
    """Return AutoAIS of all systems and of each system, from the labels in the rows."""
    references = list(rows)
    scores = autoais(references, references).as_dict()
    lines: list[list[Any]] = []
    for system, own in {"all": scores, **scores["by_system"]}.items():
        values = [own[column] for column in COLUMNS]
        lines.append([system, *(value if value is None else round(value, 4) for value in values)])
    return Table(
        f"AutoAIS: {name}", ["system", *(column.replace("_", " ") for column in COLUMNS)], lines
    )
