"""FanOutQA's normal forms and scores of columns of any size, worked on in parts (see ``qabench.scale.jobs``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.benchmarks.fanoutqa.normalizer import Normalizer, check_key
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation.scoring import Progress
from qabench.models import bleurt
from qabench.models.loader import ModelSource, locate
from qabench.scale.jobs import ROWS_PER_PART, Columns, Rows, cells, open_source, run
from qabench.text import Lemmatizer
from qabench.text.rouge import COLUMNS, backend_version, rouge

FORMATS = ("python", "json")
FAMILIES = {
    "acc": {"loose": "double", "strict": "bool"},
    "rouge": dict.fromkeys(COLUMNS, "double"),
    "bleurt": {"bleurt": "double"},
}
Formula = Callable[[list[Any], list[Any]], Columns]  # of references and predictions


def normalize(
    source: Any,
    output: str | Path,
    column: str,
    lemmatizer: str | Lemmatizer = "auto",
    *,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the official FanOutQA normal form of each text as the column "normalized".

    ``qabench.scale.jobs.label`` describes the other arguments.

    Args:
        column: the column of the texts. Other objects are converted by ``str``.
        lemmatizer: see ``qabench.text.resolve_lemmatizer``.

    Returns:
        The files, in the order of the rows.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: the lemmatizer is not installed.
    """
    normalizer = Normalizer(lemmatizer)
    load = partial(_load_normalizer, column, normalizer.lemmatizer, normalizer.lemmatizer.key)
    job = {"job": "normalize", "column": column, **normalizer.signature()}
    return run(
        open_source(source, [column]),
        output,
        load,
        {"normalized": "string"},
        job,
        rows_per_part,
        progress,
    )


def _load_normalizer(column: str, lemmatizer: Lemmatizer, key: str) -> Callable[[Rows], Columns]:
    check_key(lemmatizer, key)
    normalizer = Normalizer(lemmatizer)

    def normalized(rows: Rows) -> Columns:
        texts = list(map(str, cells(rows, column)))
        forms = normalizer.batch(texts)
        return {"normalized": [forms[text] for text in texts]}

    return normalized


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

    The scores are fractions in [0, 1], except BLEURT. Their means are the benchmark's scores.
    ``qabench.scale.jobs.label`` describes the other arguments.

    Args:
        prediction: the column of the answers. Null for an unanswered question.
        reference: the column of the reference answers.
        families: some of "acc", "rouge" and "bleurt".
        references_format: "python", or "json" for JSON text, as in the column ``answer`` of the
            dataset.
        lemmatizer: for "acc". See ``qabench.text.resolve_lemmatizer``.
        bleurt_model: see ``qabench.models.bleurt.load_bleurt``.

    Raises:
        InputError: an unknown family or format, the source cannot be read, or the folder has other
            results.
        MissingExtra: the lemmatizer or BLEURT's packages are not installed.
    """
    if not families or set(families) - set(FAMILIES):
        raise InputError(f"families are {list(families)}; allowed: {', '.join(FAMILIES)}")
    if references_format not in FORMATS:
        raise InputError(
            f"references_format is {references_format!r}; allowed: {', '.join(FORMATS)}"
        )
    opened = open_source(source, [prediction, reference])
    job: Json = {
        "job": "score",
        "families": list(families),
        "references_format": references_format,
    }
    job |= {"prediction": prediction, "reference": reference}
    load = partial(_load_scorer, prediction, reference, references_format == "json")
    model = None
    if "acc" in families:
        normalizer = Normalizer(lemmatizer)
        load = partial(load, lemmatizer=normalizer.lemmatizer, key=normalizer.lemmatizer.key)
        job |= normalizer.signature()
    if "rouge" in families:
        load = partial(load, rouge_scores=True)
        job["rouge"] = backend_version()
    if "bleurt" in families:
        model = locate(bleurt_model or os.environ.get(bleurt.MODEL_VARIABLE) or bleurt.MODEL)
        load = partial(load, model=model)
        job["bleurt"] = str(model)
    types = {name: kind for family in families for name, kind in FAMILIES[family].items()}
    return run(opened, output, load, types, job, rows_per_part, progress, gpu=model is not None)


def _load_scorer(
    prediction: str,
    reference: str,
    json: bool,
    lemmatizer: Lemmatizer | None = None,
    key: str = "",
    rouge_scores: bool = False,
    model: ModelSource | None = None,
) -> Callable[[Rows], Columns]:
    formulas: list[Formula] = [_rouge] if rouge_scores else []
    if lemmatizer:
        check_key(lemmatizer, key)
        formulas.append(partial(_accuracy, Normalizer(lemmatizer)))
    if model:
        formulas.append(
            partial(_bleurt, bleurt.load_bleurt(model.name, model.commit, device=model.device))
        )

    def scores(rows: Rows) -> Columns:
        references = list(map(loads, cells(rows, reference)) if json else cells(rows, reference))
        predictions = [UNANSWERED if cell is None else cell for cell in cells(rows, prediction)]
        return {
            name: values
            for formula in formulas
            for name, values in formula(references, predictions).items()
        }

    return scores


def _accuracy(normalizer: Normalizer, references: list[Any], predictions: list[Any]) -> Columns:
    per_question = accuracy(references, predictions, normalizer.batch)
    return {
        "loose": [float(score.loose) for score in per_question],
        "strict": [score.strict for score in per_question],
    }


def _rouge(references: list[Any], predictions: list[Any]) -> Columns:
    per_question = rouge(references, predictions).per_question
    return {column: [float(score[column]) for score in per_question] for column in COLUMNS}


def _bleurt(scorer: bleurt.BleurtModel, references: list[Any], predictions: list[Any]) -> Columns:
    return {"bleurt": scorer(list(map(text_of, references)), list(map(text_of, predictions)))}
