"""Predictions and references on their way through ``evaluate``, which writes them to Arrow before it scores them.

An Arrow column has one type and no lone surrogates, and ``evaluate`` refuses None; answers are of six types, and an
unanswered question is None. So both columns travel as JSON text in ASCII, and come out equal by type and digit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from qabench.answers import UNANSWERED, dumps, loads
from qabench.errors import InputError

FORMATS = ("auto", "json", "python")


class JsonColumns:
    """Mixed into a metric before ``evaluate.Metric``: whatever is added is encoded first."""

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Adds a list of predictions and the list of their references.

        Raises:
            InputError: one list is missing, they differ in length, or an item is of a type that is no answer's.
        """
        columns = {"predictions": predictions, "references": references}
        if missing := [name for name, column in columns.items() if column is None]:
            raise InputError(f"{' and '.join(missing)} missing: give predictions and references, one for each question")
        encoded = {name: _encode(name, column) for name, column in columns.items()}
        counts = {name: len(column) for name, column in encoded.items()}
        if len(set(counts.values())) > 1:
            raise InputError(
                f"{counts['predictions']} predictions for {counts['references']} references; give one each"
            )
        super().add_batch(**encoded, **kwargs)  # type: ignore[misc]

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Adds one prediction (None: unanswered) and its reference."""
        encoded = {"prediction": _text(prediction, "prediction"), "reference": _text(reference, "reference")}
        super().add(**encoded, **kwargs)  # type: ignore[misc]

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> Any:
        """Scores what was added, or the lists given."""
        if predictions is None and references is None and len(self) == 0:  # type: ignore[arg-type]
            raise InputError("nothing to score: give predictions and references, or add some before compute()")
        return super().compute(predictions=predictions, references=references, **kwargs)  # type: ignore[misc]


def decode_predictions(column: Iterable[str]) -> list[Any]:
    """The predictions as given; None as ``UNANSWERED``."""
    return [UNANSWERED if prediction is None else prediction for prediction in map(json.loads, column)]


def decode_references(column: Iterable[str], references_format: str = "auto") -> list[Any]:
    """The references as answers, from either of the two forms that users have.

    Args:
        column: as encoded by ``JsonColumns``.
        references_format: "json": every reference is the JSON text of an answer, as in a dataset's ``answer`` column;
            "python": every reference is an answer itself; "auto": JSON when all of them are texts that are JSON (a
            column of a dataset always is), else Python objects.

    Raises:
        InputError: an unknown format, or with "json" a reference that is not JSON text.
    """
    references = [json.loads(text) for text in column]
    if references_format not in FORMATS:
        raise InputError(f"unknown references_format {references_format!r}; allowed: {', '.join(FORMATS)}")
    if references_format == "python":
        return references
    try:
        return [loads(reference) for reference in references]
    except InputError:
        if references_format == "json":
            raise
        return references


def _encode(name: str, column: Any) -> list[str]:
    if isinstance(column, str | dict) or not isinstance(column, Iterable):
        raise InputError(f"{name} is a {type(column).__name__}; give a list with one item for each question")
    return [_text(item, f"{name}[{i}]") for i, item in enumerate(column)]


def _text(item: Any, where: str) -> str:
    try:
        # dumps checks the types; escaped, its text can hold what Arrow cannot.
        return json.dumps(json.loads(dumps(item)), ensure_ascii=True)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
