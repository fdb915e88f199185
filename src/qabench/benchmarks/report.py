"""The additions of a benchmark to reports of its evaluations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qabench.data.rows import Json

if TYPE_CHECKING:
    from qabench.evaluation import Evaluation
    from qabench.evaluation.details import DetailForm
    from qabench.evaluation.records import ExtraSection


def _no_sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    return []


def _no_shape(evaluation: Evaluation) -> Json | None:
    return None


@dataclass(frozen=True, slots=True)
class Report:
    """The additions of a benchmark to reports of its evaluations.

    Attributes:
        sections: a function from {label: evaluation}, all on one config, to additional sections.
        details: how reports show the fields of ``Record.detail``, in the order of display.
        official_shape: a function that returns the scores in the format of the authors' scorer, or
            None if there is no such format.
    """

    sections: Callable[[Mapping[str, Evaluation]], list[ExtraSection]] = _no_sections
    details: Sequence[DetailForm] = ()
    official_shape: Callable[[Evaluation], Json | None] = _no_shape
