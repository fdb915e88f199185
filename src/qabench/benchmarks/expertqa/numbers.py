"""Numbers about ExpertQA's data: statistics, and AutoAIS from the published labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from qabench.benchmarks.expertqa.metrics import AnnotationScorer, autoais_counts, labeled_answers
from qabench.benchmarks.expertqa.scorer import AUTOAIS
from qabench.benchmarks.expertqa.scores import SCORES
from qabench.benchmarks.numbers import Numbers
from qabench.benchmarks.reproduction import Reproduction, available_splits
from qabench.data.rows import Row, grouped
from qabench.evaluation.records import values_of
from qabench.evaluation.scoring import records_of
from qabench.io.tables import Table
from qabench.loading_scripts.expertqa.parse import LABELS

# Maps the columns of the table of AutoAIS to the names of the scores.
COLUMNS = {
    "macro": "autoais_macro",
    "micro": "autoais_micro",
    "macro without abstentions": "autoais_macro_without_abstentions",
    "micro without abstentions": "autoais_micro_without_abstentions",
}


class ExpertQANumbers(Numbers):
    """Counts ExpertQA's data, and computes AutoAIS from the published labels."""

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        answers = row.get("answers", ())
        claims: list[Row] = []
        for answer in answers:
            claims += answer["claims"] or ()
        counts = Counter(f"usefulness: {answer['usefulness']}" for answer in answers)
        for name in LABELS:
            # Usefulness is a label of the whole answer, not of a claim.
            if name != "usefulness":
                counts.update(f"{name}: {claim[name]}" for claim in claims)
        return {
            "rows": 1,
            "answers": len(answers),
            "claims": len(claims),
            "claims without evidence": sum(not claim["evidence"] for claim in claims),
            **counts,
        }

    def reproduce(self) -> Reproduction:
        """Compare the statistics of the data, and add AutoAIS of the annotated files."""
        reproduction = super().reproduce()
        # According to their names, the files of these two configs contain AutoAIS labels.
        configs_with_labels = ("autoais", "all_evidences")
        for config in configs_with_labels:
            for split, rows in available_splits("expertqa", config).items():
                reproduction.tables.append(autoais_table(f"{config} {split}", rows))
        reproduction.notes.append(
            "AutoAIS is computed from the labels in the available files. It is not compared with the values in the "
            "authors' paper, of which there is no machine-readable copy here."
        )
        return reproduction


def autoais_table(name: str, rows: Iterable[Row]) -> Table:
    """Return AutoAIS of all systems and of each system, from the labels in the rows."""

    annotated = list(rows)
    items = labeled_answers(annotated, annotated)
    outcomes = AnnotationScorer(AUTOAIS).score(items)
    systems = [item.row["system"] for item in items]
    by_system = grouped(zip(systems, outcomes, strict=True))
    lines: list[list[Any]] = []
    for system, own in {"all": outcomes, **by_system}.items():
        values = values_of(SCORES, records_of(own))
        line: list[Any] = [system]
        for score in COLUMNS.values():
            value = None
            if score in values:
                value = round(values[score], 4)
            line.append(value)
        lines.append([*line, autoais_counts(own)["counted_claims"]])
    return Table(f"AutoAIS: {name}", ["system", *COLUMNS, "counted claims"], lines)
