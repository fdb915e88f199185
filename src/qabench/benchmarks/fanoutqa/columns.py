"""FanOutQA's normal forms and scores of columns of any size, worked on in parts (see ``qabench.scale.jobs``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qabench.answers import dumps
from qabench.benchmarks.fanoutqa.normalizer import Normalizer, check_key
from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation.scoring import Item, Progress
from qabench.models import bleurt
from qabench.models.loader import ModelSource, locate
from qabench.scale.jobs import ROWS_PER_PART, Columns, Rows, cells, open_source, run
from qabench.text import Lemmatizer
from qabench.text.rouge import COLUMNS, backend_version

FORMATS = ("python", "json")
FAMILIES = {
    "acc": {"loose": "acc.loose", "strict": "acc.strict"},
    "rouge": {column: column for column in COLUMNS},
    "bleurt": {"bleurt": "bleurt"},
}
"""Family -> the columns that are written, and their names in ``Outcome.scores``."""


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
    columns = {name: score for family in families for name, score in FAMILIES[family].items()}
    job: Json = {
        "job": "score",
        "families": list(families),
        "references_format": references_format,
        "prediction": prediction,
        "reference": reference,
    }
    options: dict[str, Any] = {"rouge": "rouge" in families}
    if "acc" in families:
        normalizer = Normalizer(lemmatizer)
        options |= {"lemmatizer": normalizer.lemmatizer, "key": normalizer.lemmatizer.key}
        job |= normalizer.signature()
    if "rouge" in families:
        job["rouge"] = backend_version()
    if "bleurt" in families:
        model = locate(bleurt_model or os.environ.get(bleurt.MODEL_VARIABLE) or bleurt.MODEL)
        options["model"] = model
        job["bleurt"] = str(model)
    is_json = references_format == "json"
    return run(
        opened,
        output,
        partial(_load_scorer, columns, prediction, reference, is_json, **options),
        {name: "bool" if name == "strict" else "double" for name in columns},
        job,
        rows_per_part,
        progress,
        gpu="bleurt" in families,
    )


def _load_scorer(
    columns: Mapping[str, str],
    prediction: str,
    reference: str,
    is_json: bool,
    rouge: bool,
    lemmatizer: Lemmatizer | None = None,
    key: str = "",
    model: ModelSource | None = None,
) -> Callable[[Rows], Columns]:
    if lemmatizer:
        check_key(lemmatizer, key)
    scorer = FanOutQAScorer(
        Normalizer(lemmatizer) if lemmatizer else None,
        rouge,
        bleurt.load_bleurt(model) if model else None,
    )

    def scores(rows: Rows) -> Columns:
        references = cells(rows, reference)
        texts = references if is_json else map(dumps, references)
        items = [
            Item({"answer": text}, None if answer is None else {"answer": answer})
            for text, answer in zip(texts, cells(rows, prediction), strict=True)
        ]
        outcomes = scorer.score(items)
        values: dict[str, list[Any]] = {
            name: [outcome.scores[score] for outcome in outcomes] for name, score in columns.items()
        }
        if "strict" in values:
            values["strict"] = list(map(bool, values["strict"]))
        return values

    return scores
