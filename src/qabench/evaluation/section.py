"""Sections that a benchmark adds to a report, as plain data: scores by group, or curves over a cutoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qabench.stats import Interval

GROUPS, CURVE = KINDS = ("groups", "curve")


@dataclass(frozen=True, slots=True)
class SectionRow:
    """One value of a section.

    Attributes:
        system: the label of the evaluation.
        score: the title of the score, such as "Recall of errors" or "MRR@k".
        at: the group's name, or the position on the x axis of a curve, such as the cutoff k.
        interval: the value with its 95% interval.
        n: the number of ``ExtraSection.unit`` that the value is computed from.
    """

    system: str
    score: str
    at: str | int
    interval: Interval
    n: int


@dataclass(frozen=True, slots=True)
class ExtraSection:
    """A table and a chart of a report beyond scores, groups and comparisons.

    ``Benchmark.report_sections`` returns them. Sections without rows are omitted.

    Attributes:
        title: such as "Type of error"; the axis of a curve is labeled with ``axis``.
        unit: what n counts, in the plural, such as "errors".
        rows: values of all systems.
        kind: "groups" (dots with whiskers per group) or "curve" (lines with bands over ``at``).
        note: a note for readers, in one or more sentences; "" for none.
        axis: the label of a curve's x axis, such as "k".
        replaces: the grouping that the report omits because this section shows it better; "" for none.
    """

    title: str
    unit: str
    rows: Sequence[SectionRow]
    kind: str = GROUPS
    note: str = ""
    axis: str = ""
    replaces: str = ""
