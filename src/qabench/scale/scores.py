"""Scoring answers in one column against reference answers in another one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.errors import InputError
from qabench.io.environment import package_version
from qabench.models.bleurt import MODEL, MODEL_VARIABLE, Scorer, load_bleurt
from qabench.models.loader import ModelSource, locate
from qabench.scale.parts import ROWS_PER_PART, Columns, Progress, Rows, cells, open_source, run
from qabench.text import Lemmatizer, Normalizer
from qabench.text.normalize import check_key
from qabench.text.rouge import BACKENDS, ROUGE_TYPES, resolve_backend, rouge

FORMATS = ("python", "json")
PARTS = ("precision", "recall", "fscore")
FAMILIES = {
    "acc": {"loose": "double", "strict": "bool"},
    "rouge": {f"{kind}.{part}": "double" for kind in ROUGE_TYPES for part in PARTS},
    "bleurt": {"bleurt": "double"},
}


def score(
    source: Any,
    output: str | Path,
    prediction: str = "prediction",
    reference: str = "reference",
    families: Sequence[str] = ("acc", "rouge"),
    *,
    references_format: str = "python",
    lemmatizer: str | Lemmatizer = "auto",
    bleurt_model: str | None = None,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
) -> list[Path]:
    """Write FanOutQA's scores of each answer as columns: loose, strict, rouge1.precision, ..., bleurt.

    The scores are those of ``fanoutqa.accuracy``, ``text.rouge`` and ``neural.bleurt``,
    fractions in [0, 1] except BLEURT. Their means are those of the benchmark.

    Args:
        source: a ``datasets.Dataset``, or the path of a .jsonl or .parquet file.
        output: the folder of the Parquet files; see ``qabench.scale.parts.run``.
        prediction: the column of the answers; null for an unanswered question.
        reference: the column of the reference answers.
        families: some of "acc", "rouge" and "bleurt".
        references_format: "python", or "json" for JSON text, as in the column ``answer`` of the dataset.
        lemmatizer: for "acc"; see ``qabench.text.resolve_lemmatizer``.
        bleurt_model: see ``qabench.models.bleurt.load_bleurt``.
        rows_per_part: the rows of one file.
        progress: called with the number of rows processed and of all rows.

    Returns:
        The files, in the order of the rows.

    Raises:
        InputError: an unknown family or format, the source cannot be read, or the folder has other results.
        MissingExtra: the lemmatizer or BLEURT's packages are not installed.
    """
    if not families or set(families) - set(FAMILIES):
        raise InputError(f"families are {list(families)}; allowed: {', '.join(FAMILIES)}")
    if references_format not in FORMATS:
        raise InputError(f"references_format is {references_format!r}; allowed: {', '.join(FORMATS)}")
    opened = open_source(source, [prediction, reference])
    with_text = Normalizer(lemmatizer) if "acc" in families else None
    model = _bleurt_source(bleurt_model) if "bleurt" in families else None
    scorer = _Scorer(
        prediction,
        reference,
        references_format == "json",
        tuple(families),
        with_text.lemmatizer if with_text else None,
        model,
    )
    what: dict[str, Any] = {"job": "score", "families": list(families), "references_format": references_format}
    what |= {"prediction": prediction, "reference": reference}
    what |= with_text.signature() if with_text else {}
    if "rouge" in families:
        package = BACKENDS[resolve_backend("auto")]
        what["rouge"] = f"{package}-{package_version(package)}"
    if model:
        what["bleurt"] = str(model)
    key = with_text.lemmatizer.key if with_text else None
    types = {name: kind for family in families for name, kind in FAMILIES[family].items()}
    return run(opened, output, partial(_load, scorer, key), types, what, rows_per_part, progress, model is not None)


@dataclass(frozen=True)
class _Scorer:
    """What is sent to every process; the models are loaded there."""

    prediction: str
    reference: str
    json: bool
    families: tuple[str, ...]
    lemmatizer: Lemmatizer | None
    model: ModelSource | None

    def load(self) -> Callable[[Rows], Columns]:
        """Return the function from rows to scores."""
        functions: list[Callable[[list[Any], list[Any]], Columns]] = []
        if self.lemmatizer:
            functions.append(partial(_accuracy, Normalizer(self.lemmatizer)))
        if "rouge" in self.families:
            functions.append(_rouge)
        if self.model:
            scorer = load_bleurt("torch", self.model.name, self.model.commit, device=self.model.device)
            functions.append(partial(_bleurt, scorer))
        return partial(self._scores, functions)

    def _scores(self, functions: list[Callable[[list[Any], list[Any]], Columns]], rows: Rows) -> Columns:
        references = list(map(loads, cells(rows, self.reference)) if self.json else cells(rows, self.reference))
        predictions = [UNANSWERED if cell is None else cell for cell in cells(rows, self.prediction)]
        return {name: values for function in functions for name, values in function(references, predictions).items()}


def _load(scorer: _Scorer, key: str | None) -> Callable[[Rows], Columns]:
    if scorer.lemmatizer and key:
        check_key(scorer.lemmatizer, key)
    return scorer.load()


def _bleurt_source(model: str | None) -> ModelSource:
    return locate(model or os.environ.get(MODEL_VARIABLE) or MODEL)


def _accuracy(normalizer: Normalizer, references: list[Any], predictions: list[Any]) -> Columns:
    per_question = accuracy(references, predictions, normalizer.batch).per_question
    return {"loose": [float(score.loose) for score in per_question], "strict": [score.strict for score in per_question]}


def _rouge(references: list[Any], predictions: list[Any]) -> Columns:
    per_question = rouge(references, predictions).per_question
    return {
        f"{kind}.{part}": [float(getattr(score[kind], part)) for score in per_question]
        for kind in ROUGE_TYPES
        for part in PARTS
    }


def _bleurt(scorer: Scorer, references: list[Any], predictions: list[Any]) -> Columns:
    return {"bleurt": scorer(list(map(text_of, references)), list(map(text_of, predictions)))}
