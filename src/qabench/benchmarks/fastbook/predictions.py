"""Scoring predictions: retrieved passages by Answer Component MRR@k and Recall@k, and answers by ROUGE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.fastbook.answer_components import answer_component_scores
from qabench.benchmarks.fastbook.study.questions import Questions, load_questions
from qabench.benchmarks.fastbook.study.scores import Columns, detail, retrieval_columns, rouge_columns
from qabench.benchmarks.fastbook.trec import parse_corpus, parse_run
from qabench.data.predictions import (
    NO_PREDICTION,
    BadLine,
    Prediction,
    Predictions,
    join,
    parse_predictions,
    read_bytes,
    read_predictions,
    source_name,
)
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Message, Record
from qabench.evaluation.signature import signature

FIELDS = ("passages", "answer")
FAMILIES = ("retrieval", "rouge")


def read(source: str | Path | Sequence[Mapping[str, Any]], corpus: Path | None = None) -> Predictions:
    """The predictions of a file: JSON objects {"id", "passages"} or {"id", "answer"}, or a TREC run.

    Args:
        source: see ``qabench.data.predictions.read_predictions``.
        corpus: for a TREC run, the texts of its documents: JSONL with "docno" or "id", and "text".

    Raises:
        InputError: the file cannot be read, or it is a TREC run and its documents are not given.
    """
    if not isinstance(source, str | Path):
        return read_predictions(source, FIELDS)
    data, name = read_bytes(source), source_name(source)
    if data.lstrip()[:1] in (b"[", b"{", b""):
        return parse_predictions(data, name, FIELDS)
    if corpus is None:
        raise InputError(
            f"{name} is not JSON. If it is a TREC run, also give the corpus that was searched (--corpus FILE, one "
            '{"docno", "text"} per line)'
        )
    return parse_run(data, name, parse_corpus(read_bytes(corpus), str(corpus)))


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    k: int | str | Sequence[int] = 10,
) -> Evaluation:
    """Scores predictions on the questions of a config.

    A question without a prediction scores 0, like a question for which nothing was retrieved.

    Args:
        benchmark: the instance for the evaluation.
        config: "questions" (the default) or "sample".
        predictions: objects with "passages", the texts of the passages retrieved from the question's chapter, best
            first; "answer", the answer of a model, is only needed for ROUGE.
        families: some of "retrieval" (the default) and "rouge".
        questions: a file in the format of ``fastbook-benchmark.json`` instead of a config.
        progress: not used; scoring takes seconds.
        k: the cutoffs, as an integer, several integers, or a string such as "1,5,10".

    Raises:
        InputError: an unknown config, a cutoff that is not a positive integer, or no prediction that belongs
            to a question.
    """
    chosen = list(families or FAMILIES[:1])
    asked = load_questions(config, questions)
    joined = join([row["id"] for row in asked.rows], _checked(predictions))
    columns: list[Columns] = [{} for _ in asked.rows]
    details: list[dict[str, Any]] = [{} for _ in asked.rows]
    signatures = {}
    if "retrieval" in chosen:
        columns, details, signatures["retrieval"] = _retrieval(asked, joined.rows, parse_cutoffs(k))
    if "rouge" in chosen:
        answers = [_field(row, "answer") for row in joined.rows]
        of_answers, backend = rouge_columns([row["gold_standard_answer"] for row in asked.rows], answers)
        columns = [column | more for column, more in zip(columns, of_answers, strict=True)]
        fields = {"config": asked.config, "data": asked.digest, "rouge": backend, "stemmer": "porter"}
        signatures["rouge"] = signature("fastbook_rouge", **fields)
    rows = zip(asked.rows, joined.rows, columns, details, strict=True)
    records = [_record(*row, of_answer=chosen == ["rouge"]) for row in rows]
    problems = joined.problems()
    return benchmark.evaluation(predictions, asked.config, records, signatures, problems=problems)


def parse_cutoffs(k: int | str | Sequence[int]) -> int | list[int]:
    """The cutoffs, given as integers or as a string such as "1,5,10". Raises InputError if one is not an integer."""
    if not isinstance(k, str):
        return k if isinstance(k, int) else list(k)
    try:
        return [int(part) for part in k.split(",")]
    except ValueError:
        raise InputError(f"k is {k!r}; allowed: positive integers, separated by commas") from None


def _checked(predictions: Predictions) -> Predictions:
    """The predictions; those with fields of a wrong type become bad lines."""
    rows, bad = [], list(predictions.bad_lines)
    for row in predictions.rows:
        passages, answer = row.fields.get("passages"), row.fields.get("answer")
        if passages is not None and not _is_strings(passages):
            bad.append(BadLine(row.line, f"the passages are not a list of strings: {passages!r:.60}"))
        elif answer is not None and not isinstance(answer, str):
            bad.append(BadLine(row.line, f"the answer is not a string: {answer!r:.60}"))
        else:
            rows.append(row)
    if not rows:
        raise InputError(f"{predictions.path} has no predictions; line {bad[0].line}: {bad[0].reason}")
    return Predictions(predictions.path, tuple(rows), tuple(sorted(bad, key=lambda one: one.line)))


def _is_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _field(row: Prediction | None, name: str) -> Any:
    return row.fields.get(name) if row else None


def _retrieval(
    asked: Questions, rows: Sequence[Prediction | None], k: int | list[int]
) -> tuple[list[Columns], list[dict[str, Any]], str]:
    """The columns and the details of retrieval, and the signature."""
    passages = [_field(row, "passages") or [] for row in rows]
    found = answer_component_scores([row["answer_context"] for row in asked.rows], passages, k)
    details = []
    for row, prediction, texts, ranks in zip(asked.rows, rows, passages, found.ranks, strict=True):
        ids = _field(prediction, "documents") or [str(rank) for rank in range(1, len(texts) + 1)]
        shown = [{"id": id, "text": text} for id, text in zip(ids, texts, strict=True)]
        details.append(detail(row, ranks or (), shown, max(found.cutoffs)))
    fields = {"config": asked.config, "data": asked.digest, **found.signature()}
    return retrieval_columns(found), details, signature("fastbook_retrieval", **fields)


def _record(
    row: Mapping[str, Any],
    prediction: Prediction | None,
    scores: Mapping[str, float],
    about: Mapping[str, Any],
    of_answer: bool,
) -> Record:
    answer = _field(prediction, "answer")
    given = answer if of_answer else _field(prediction, "passages") or answer
    return Record(
        id=row["id"],
        epoch=1,
        question=row["question_text"],
        reference=row["gold_standard_answer"],
        messages=[] if answer is None else [Message("assistant", answer)],
        answer=answer,
        status=MISSING if prediction is None else ANSWERED if given else EMPTY,
        problem=NO_PREDICTION if prediction is None else None,
        scores=scores,
        groups={"chapter": (str(row["chapter"]),)},
        detail=about,
    )
