"""Normalizing, scoring and labeling columns of a dataset or a file of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.errors import InputError
from qabench.io.environment import package_version
from qabench.models import bleurt, entailment
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

    Args:
        source: a ``datasets.Dataset``, or the path of a .jsonl or .parquet file.
        output: the folder of the Parquet files; see ``qabench.scale.parts.run``.
        column: the column of the texts; other objects are converted by ``str``.
        lemmatizer: see ``qabench.text.resolve_lemmatizer``.
        rows_per_part: the rows of one file.
        progress: called with the number of rows processed and of all rows.

    Returns:
        The files, in the order of the rows.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: the lemmatizer is not installed.
    """
    normalizer = Normalizer(lemmatizer)
    load = partial(_load_normalizer, column, normalizer.lemmatizer, normalizer.lemmatizer.key)
    job = {"job": "normalize", "column": column, **normalizer.signature()}
    return run(open_source(source, [column]), output, load, {"normalized": "string"}, job, rows_per_part, progress)


def _load_normalizer(column: str, lemmatizer: Lemmatizer, key: str) -> Callable[[Rows], Columns]:
    check_key(lemmatizer, key)
    return partial(_normalized, column, Normalizer(lemmatizer))


def _normalized(column: str, normalizer: Normalizer, rows: Rows) -> Columns:
    texts = [str(cell) for cell in cells(rows, column)]
    forms = normalizer.batch(texts)
    return {"normalized": [forms[text] for text in texts]}


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

    The scores are fractions in [0, 1], except BLEURT. Their means are those of the benchmark. Arguments that are not
    listed here are those of ``normalize``.

    Args:
        prediction: the column of the answers; null for an unanswered question.
        reference: the column of the reference answers.
        families: some of "acc", "rouge" and "bleurt".
        references_format: "python", or "json" for JSON text, as in the column ``answer`` of the dataset.
        lemmatizer: for "acc"; see ``qabench.text.resolve_lemmatizer``.
        bleurt_model: see ``qabench.models.bleurt.load_bleurt``.

    Raises:
        InputError: an unknown family or format, the source cannot be read, or the folder has other results.
        MissingExtra: the lemmatizer or BLEURT's packages are not installed.
    """
    if not families or set(families) - set(FAMILIES):
        raise InputError(f"families are {list(families)}; allowed: {', '.join(FAMILIES)}")
    if references_format not in FORMATS:
        raise InputError(f"references_format is {references_format!r}; allowed: {', '.join(FORMATS)}")
    opened = open_source(source, [prediction, reference])
    job: dict[str, Any] = {"job": "score", "families": list(families), "references_format": references_format}
    job |= {"prediction": prediction, "reference": reference}
    load = partial(_load_scorer, prediction, reference, references_format == "json")
    model = None
    if "acc" in families:
        normalizer = Normalizer(lemmatizer)
        load = partial(load, lemmatizer=normalizer.lemmatizer, key=normalizer.lemmatizer.key)
        job |= normalizer.signature()
    if "rouge" in families:
        package = BACKENDS[resolve_backend("auto")]
        load = partial(load, rouge_scores=True)
        job["rouge"] = f"{package}-{package_version(package)}"
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
        formulas.append(partial(_bleurt, bleurt.load_bleurt(model.name, model.commit, device=model.device)))

    def scores(rows: Rows) -> Columns:
        references = list(map(loads, cells(rows, reference)) if json else cells(rows, reference))
        predictions = [UNANSWERED if cell is None else cell for cell in cells(rows, prediction)]
        return {name: values for formula in formulas for name, values in formula(references, predictions).items()}

    return scores


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


def _bleurt(scorer: bleurt.Scorer, references: list[Any], predictions: list[Any]) -> Columns:
    return {"bleurt": scorer(list(map(text_of, references)), list(map(text_of, predictions)))}


def label(
    source: Any,
    output: str | Path,
    claim: str = "claim",
    evidence: str = "evidence",
    model: str = entailment.MODEL,
    revision: str | None = None,
    *,
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
) -> list[Path]:
    """Write "Y" for each claim that its evidence entails, else "N", as the column "label" (AutoAIS).

    Arguments that are not listed here are those of ``normalize``.

    Args:
        claim: the column of the claims.
        evidence: the column of their evidence: a list of strings, or null.
        model: see ``qabench.models.entailment.load_entailment``.
        revision: a revision of a model on the Hub.
        rows_per_part: the rows of one file. The network's batches are formed in each part, so labels of close cases may
            depend on it.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded.
    """
    location = locate(model, revision)
    load = partial(_load_labels, location, claim, evidence)
    job = {"job": "label", "claim": claim, "evidence": evidence, "model": location.label, "device": location.device}
    opened = open_source(source, [claim, evidence])
    return run(opened, output, load, {"label": "string"}, job, rows_per_part, progress, gpu=True)


def _load_labels(source: ModelSource, claim: str, evidence: str) -> Callable[[Rows], Columns]:
    network = entailment.load_entailment(source.name, source.commit, device=source.device)
    return partial(_labels, network, claim, evidence)


def _labels(network: entailment.Entailment, claim: str, evidence: str, rows: Rows) -> Columns:
    claims = list(zip(cells(rows, claim), map(_pieces, cells(rows, evidence)), strict=True))
    return {"label": entailment.label_claims(claims, network, entailment.punkt)}


def _pieces(evidence: Any) -> list[str] | None:
    if evidence is None or (isinstance(evidence, list) and all(isinstance(piece, str) for piece in evidence)):
        return evidence
    raise InputError(f"the evidence of a claim is {evidence!r:.60}; allowed: a list of strings, or null")
