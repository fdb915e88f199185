"""Statistics of Rivers, computed from the dataset's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from qabench.io.tables import Table


def tables(config: str, splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> list[Table]:
    """Questions by continent."""
    counts = Counter(row["continent"] for rows in splits.values() for row in rows)
    return [Table("Questions by continent", ["continent", "questions"], [[*item] for item in counts.most_common()])]
