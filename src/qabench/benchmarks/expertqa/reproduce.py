"""ExpertQA's statistics and AutoAIS, recomputed from the public data."""

from __future__ import annotations

from collections.abc import Iterable

from qabench.benchmarks import benchmark
from qabench.benchmarks.expertqa.agreement import autoais
from qabench.benchmarks.reproduction import Reproduction, available_splits, data_checks
from qabench.data.rows import Row
from qabench.io.tables import Table
from qabench.loading_scripts import dataset_table


def reproduce() -> Reproduction:
    """Compare rows by split, and make tables of AutoAIS of the annotated files that are available."""
    reproduction = data_checks(benchmark("expertqa"))
    with_labels = ("autoais", "all_evidences")  # the configs whose claims have AutoAIS labels
    splits = {config: available_splits("expertqa", config)[0] for config in with_labels}
    for config, rows_by_split in splits.items():
        reproduction.tables.extend(
            autoais_table(f"{config} {split}", rows) for split, rows in rows_by_split.items()
        )
    if not any(splits.values()):
        files = "; ".join(
            dataset_table("expertqa").config(config).description for config in with_labels
        )
        reproduction.notes.append(
            f"AutoAIS is not computed: no file with its labels is available ({files})."
        )
    reproduction.notes.append("There are no published values for the tables of AutoAIS.")
    return reproduction


def autoais_table(name: str, rows: Iterable[Row]) -> Table:
    """Return AutoAIS of all systems and of each system, from the labels in the rows."""
    columns = (
        "macro",
        "micro",
        "macro_without_abstentions",
        "micro_without_abstentions",
        "counted_claims",
    )
    references = list(rows)
    scores = autoais(references, references).as_dict()
    systems = {"all": scores, **scores["by_system"]}
    lines = [
        [
            name,
            *(own[column] if own[column] is None else round(own[column], 4) for column in columns),
        ]
        for name, own in systems.items()
    ]
    return Table(
        f"AutoAIS: {name}", ["system", *(column.replace("_", " ") for column in columns)], lines
    )
