"""Normalizing, scoring and labeling columns of a dataset or a file of any size, worked on in parts.

The results of each part are a Parquet file. A part has the same rows on any number of machines, so
results that depend on which rows are computed together (the last digits of a network's output) are
the same, too. A part's file is complete or does not exist, so a repeated part changes nothing, and
an interrupted job continues with the missing parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from qabench.answers import UNANSWERED, loads, text_of
from qabench.benchmarks.fanoutqa.accuracy import accuracy
from qabench.errors import InputError
from qabench.evaluation.scoring import Progress
from qabench.io.environment import package_version
from qabench.io.files import replacing, sweep, write_json
from qabench.io.limits import json_of
from qabench.io.workers import Load, map_loaded
from qabench.models import bleurt, entailment
from qabench.models.loader import ModelSource, locate
from qabench.retrieval.corpus_file import CorpusFile
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
ROWS_PER_PART = 1000
JOB = "job.json"

Rows = list[dict[str, Any]]
Columns = Mapping[str, Sequence[Any]]
Task = tuple[Path, int, int]  # the file of a part, and its first row and the one after its last
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
        output: the folder of the Parquet files; an interrupted job continues in it.
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
        texts = list(map(str, _cells(rows, column)))
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

    The scores are fractions in [0, 1], except BLEURT. Their means are those of the benchmark.
    Arguments that are not listed here are those of ``normalize``.

    Args:
        prediction: the column of the answers; null for an unanswered question.
        reference: the column of the reference answers.
        families: some of "acc", "rouge" and "bleurt".
        references_format: "python", or "json" for JSON text, as in the column ``answer`` of the
            dataset.
        lemmatizer: for "acc"; see ``qabench.text.resolve_lemmatizer``.
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
    job: dict[str, Any] = {
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
        formulas.append(
            partial(_bleurt, bleurt.load_bleurt(model.name, model.commit, device=model.device))
        )

    def scores(rows: Rows) -> Columns:
        references = list(map(loads, _cells(rows, reference)) if json else _cells(rows, reference))
        predictions = [UNANSWERED if cell is None else cell for cell in _cells(rows, prediction)]
        return {
            name: values
            for formula in formulas
            for name, values in formula(references, predictions).items()
        }

    return scores


def _accuracy(normalizer: Normalizer, references: list[Any], predictions: list[Any]) -> Columns:
    per_question = accuracy(references, predictions, normalizer.batch).per_question
    return {
        "loose": [float(score.loose) for score in per_question],
        "strict": [score.strict for score in per_question],
    }


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
        rows_per_part: the rows of one file. The network's batches are formed in each part, so
            labels of close cases may depend on it.

    Raises:
        InputError: the source cannot be read, or the folder has other results.
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded.
    """
    location = locate(model, revision)
    load = partial(_load_labels, location, claim, evidence)
    job = {
        "job": "label",
        "claim": claim,
        "evidence": evidence,
        "model": location.label,
        "device": location.device,
    }
    opened = open_source(source, [claim, evidence])
    return run(opened, output, load, {"label": "string"}, job, rows_per_part, progress, gpu=True)


def _load_labels(source: ModelSource, claim: str, evidence: str) -> Callable[[Rows], Columns]:
    network = entailment.load_entailment(source.name, source.commit, device=source.device)

    def labels(rows: Rows) -> Columns:
        claims = list(zip(_cells(rows, claim), map(_pieces, _cells(rows, evidence)), strict=True))
        return {"label": entailment.label_claims(claims, network, entailment.punkt)}

    return labels


def _pieces(evidence: Any) -> list[str] | None:
    if evidence is None or (
        isinstance(evidence, list) and all(isinstance(piece, str) for piece in evidence)
    ):
        return evidence
    raise InputError(
        f"the evidence of a claim is {evidence!r:.60}; allowed: a list of strings, or null"
    )


@dataclass(frozen=True)
class Source:
    """Rows that every machine can read.

    Attributes:
        name: what error messages call it.
        size: the number of rows.
        stamp: changes when the rows do.
        read: the rows from a position (included) to another one (excluded).
    """

    name: str
    size: int
    stamp: str
    read: Callable[[int, int], Iterable[dict[str, Any]]]


def open_source(source: Any, columns: Sequence[str]) -> Source:
    """Return the columns of a ``datasets.Dataset``, or of a .jsonl or .parquet file.

    On a cluster, all machines must see the file, or the dataset's Arrow files, at the same path.
    Raises InputError: the file cannot be read, has another format or no rows, or lacks a column.
    """
    if isinstance(source, str | Path):
        path = Path(source).absolute()
        file = CorpusFile.open(path, columns[0])
        stamp, read = "-".join(map(str, file.stamp)), partial(file.rows, columns=tuple(columns))
        return Source(str(path), file.size, stamp, read)
    if missing := [name for name in columns if name not in source.column_names]:
        raise InputError(
            f"the dataset has no column {missing[0]!r}; the columns are {', '.join(source.column_names)}"
        )
    if not len(source):
        raise InputError("the dataset has no rows")
    rows = source.select_columns(list(columns))
    return Source(
        "the dataset",
        len(rows),
        source._fingerprint,
        lambda start, end: rows.select(range(start, end)),
    )


def run(
    source: Source,
    output: str | Path,
    load: Load[Rows, Columns],
    types: Mapping[str, str],
    job: Mapping[str, Any],
    rows_per_part: int = ROWS_PER_PART,
    progress: Progress | None = None,
    gpu: bool = False,
) -> list[Path]:
    """Compute columns for all rows, and return the Parquet files in the order of the rows.

    Arguments that are not listed here are those of ``normalize``.

    Args:
        load: returns the function from a part's rows to its columns; called once in each process.
        types: column -> its Arrow type, such as "string".
        job: everything that the columns depend on except the rows.
        gpu: whether the function runs on a GPU, if the cluster has one.
    """
    folder = Path(output).absolute()
    identity = {
        "source": source.name,
        "stamp": source.stamp,
        "rows": source.size,
        "rows_per_part": rows_per_part,
    }
    _begin(folder, {**identity, **job})
    bounds = [
        (start, min(start + rows_per_part, source.size))
        for start in range(0, source.size, rows_per_part)
    ]
    paths = {bound: folder / f"part-{number:06}.parquet" for number, bound in enumerate(bounds)}
    left = [bound for bound in bounds if not paths[bound].exists()]
    done = source.size - sum(end - start for start, end in left)
    tasks = ((paths[bound], *bound) for bound in left)
    for rows in map_loaded(partial(_load_writer, source, load, types), tasks, gpu):
        done += rows
        if progress:
            progress(done, source.size)
    return list(paths.values())


def _begin(folder: Path, job: Mapping[str, Any]) -> None:
    path = folder / JOB
    if not path.exists():
        write_json(path, job)
        return
    try:
        state = dict(json_of(path.read_bytes()))
    except (TypeError, ValueError):
        raise InputError(f"{path} is damaged: use another folder, or delete this one") from None
    if differing := [name for name in {**job, **state} if job.get(name) != state.get(name)]:
        raise InputError(
            f"{folder} has the results of another job, which differs in {', '.join(differing)}: use another folder, or "
            "delete this one"
        )
    sweep(folder, "*.parquet")


def _load_writer(
    source: Source, load: Load[Rows, Columns], types: Mapping[str, str]
) -> Callable[[Task], int]:
    """Return the function that writes the file of a part, and returns the number of its rows."""
    function = load()
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in types.items()])

    def write(task: Task) -> int:
        path, start, end = task
        columns = function(list(source.read(start, end)))
        table = pyarrow.table({name: list(columns[name]) for name in types}, schema=schema)
        with replacing(path) as file:
            pyarrow.parquet.write_table(table, file)
        return end - start

    return write


def _cells(rows: Rows, column: str) -> Iterator[Any]:
    """Yield a column of rows. Raises InputError for a row without it."""
    for row in rows:
        if column not in row:
            raise InputError(
                f"a row has no field {column!r}; its fields are {', '.join(row) or '(none)'}"
            )
        yield row[column]
