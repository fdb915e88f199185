"""FELM's statistics for ``qabench stats``, and their comparison with the published numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from qabench.benchmarks.numbers import Numbers
from qabench.benchmarks.reproduction import Reproduction
from qabench.data.rows import Row


class FelmNumbers(Numbers):
    """The statistics of FELM's data, by domain."""

    counted_by = "domain"

    def counts(self, row: Row) -> Mapping[str, int]:
        """Return what a row adds to the numbers of ``qabench stats``."""
        true = sum(row["labels"])
        counts = {
            "responses": 1,
            "segments": len(row["labels"]),
            "true": true,
            "errors": len(row["labels"]) - true,
        }
        # The type of a segment may be null or "". 397 responses have no types.
        return counts | Counter(filter(None, row["type"]))

    def reproduce(self) -> Reproduction:
        """Compare statistics of the data. Published scores need replies that are not public."""
        reproduction = super().reproduce()
        systems = ", ".join(dict.fromkeys(score.system for score in self.published()))
        reproduction.notes.append(
            f"The scores of {systems} are not computed: the authors did not publish the replies. "
            "`qabench run felm` runs a model with the authors' prompts."
        )
        return reproduction
