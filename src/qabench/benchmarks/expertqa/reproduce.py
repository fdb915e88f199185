"""Published numbers of ExpertQA that can be computed from public data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qabench.benchmarks.expertqa.autoais import autoais
from qabench.benchmarks.reproduction import Reproduction, available_splits, data_checks
from qabench.io.tables import Table
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.expertqa.stats import tables

TABLES = ("Answers and claims by system, all splits", "Labels of claims")
WITH_LABELS = ("autoais", "all_evidences")  # the configs whose claims have AutoAIS labels
COLUMNS = ("macro", "micro", "macro_without_abstentions", "micro_without_abstentions", "counted_claims")


def reproduce() -> Reproduction:
    """Compare rows by split, and make tables of labels and AutoAIS of the annotated files that are available."""
    reproduction = data_checks("expertqa", tables, more=TABLES)
    for config in WITH_LABELS:
        splits, _ = available_splits("expertqa", config)
        reproduction.tables.extend(autoais_table(f"{config} {split}", rows) for split, rows in splits.items())
    labeled = [dataset_table("expertqa").config(config).description for config in WITH_LABELS]
    if not any(table.title.startswith("AutoAIS") for table in reproduction.tables):
        reproduction.notes.append(
            f"AutoAIS is not computed: no file with its labels is available ({'; '.join(labeled)})."
        )
    reproduction.notes.append("There are no published values for the tables of labels and AutoAIS.")
    return reproduction


def autoais_table(name: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return AutoAIS of all systems and of each system, from the labels in the rows."""
    references = list(rows)
    scores = autoais(references, references).as_dict()
    groups = {"all": scores, **scores["by_system"]}
    lines = [[system, *(_shown(of[column]) for column in COLUMNS)] for system, of in groups.items()]
    return Table(f"AutoAIS: {name}", ["system", *(column.replace("_", " ") for column in COLUMNS)], lines)


def _shown(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
