"""fastbook's questions, the scores of predictions, and the section of a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.fastbook.answer_components import AnswerComponentScores, answer_component_scores, is_strings
from qabench.data.predictions import (
    NO_PREDICTION,
    BadLine,
    Prediction,
    Predictions,
    join,
    parse_predictions,
    parse_run,
    read_bytes,
    read_predictions,
    some,
    source_name,
)
from qabench.data.rows import json_rows
from qabench.errors import InputError, unknown_name
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Message, Record
from qabench.evaluation.evaluation import CURVE, ExtraSection, SectionRow
from qabench.evaluation.signature import signature
from qabench.loading_scripts import custom_digest, dataset_table, file_digest, open_path
from qabench.loading_scripts.fastbook.parse import parse_question, read_questions
from qabench.stats import bootstrap_mean
from qabench.text.rouge import rouge

CONFIGS = ("questions", "sample")
FIELDS = ("passages", "answer")
Columns = dict[str, float]
"""A question's scores by name, such as "mrr@10"."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Questions with their answer components.

    Attributes:
        config: "questions" or "sample"; "custom" for a user's file.
        rows: rows of the dataset's config ``questions``.
        digest: the digest of the file's content, for signatures.
    """

    config: str
    rows: Sequence[Mapping[str, Any]]
    digest: str


def load_questions(config: str | None = None, path: Path | None = None) -> Questions:
    """Return the questions of a config ("questions" by default), or of a file like ``fastbook-benchmark.json``.

    Raises:
        InputError: the config has no questions, or the file is not in the format of ``fastbook-benchmark.json``.
        SourceError: the data is not available.
    """
    if path is not None:
        return Questions("custom", list(map(parse_question, read_questions(path))), custom_digest(path))
    name = config or CONFIGS[0]
    if name not in CONFIGS:
        raise unknown_name("fastbook has no questions in", name, CONFIGS)
    ((file,),) = dataset_table("fastbook").config(name).splits.values()
    rows = list(map(parse_question, read_questions(open_path("fastbook", file))))
    return Questions(name, rows, file_digest("fastbook", file))


def retrieval_columns(scores: AnswerComponentScores) -> list[Columns]:
    """Return each question's scores at every cutoff: {"mrr@10": ..., "recall@10": ...}."""
    columns: list[Columns] = [{} for _ in scores.ranks]
    for k in scores.cutoffs:
        values = zip(columns, scores.mrr_per_question(k), scores.recall_per_question(k), strict=True)
        for column, mrr, recall in values:
            column |= {f"mrr@{k}": mrr or 0.0, f"recall@{k}": recall or 0.0}
    return columns


def rouge_columns(references: Sequence[str], answers: Sequence[str | None]) -> tuple[list[Columns], str]:
    """Return each answer's ROUGE F-measures, and the backend. A missing answer scores 0."""
    scores = rouge(references, [answer or "" for answer in answers])
    columns = [
        {f"{kind}.fscore": float(measure.fscore) for kind, measure in of_question.items()}
        for of_question in scores.per_question
    ]
    return columns, scores.backend


def detail(
    row: Mapping[str, Any], ranks: Sequence[int | None], passages: Sequence[Mapping[str, Any]], k: int
) -> dict[str, Any]:
    """Return the retrieval of one question for the report: its passages, and the rank of each answer component."""
    components = [
        {"text": "; ".join(part["answer_component"]), "contexts": list(part["context"]), "rank": rank}
        for part, rank in zip(row["answer_context"], ranks, strict=True)
    ]
    return {"passages": list(passages[:k]), "components": components, "k": k}


def read(source: str | Path | Sequence[Mapping[str, Any]], corpus: Path | None = None) -> Predictions:
    """Return the predictions of a file: JSON objects {"id", "passages"} or {"id", "answer"}, or a TREC run.

    ``corpus`` has the texts of the documents of a TREC run; see ``parse_corpus``.
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
    return parse_run_with_texts(data, name, parse_corpus(read_bytes(corpus), str(corpus)))


def parse_corpus(data: bytes, name: str) -> dict[str, str]:
    """Return the texts of a corpus by document id: JSONL with "docno" or "id", and "text".

    Raises:
        InputError: a line is not such an object, or an id is repeated; the message names the line.
    """
    texts: dict[str, str] = {}
    for row in json_rows(data.split(b"\n"), name):
        docno = row.get("id" if "docno" not in row.fields else "docno", str)
        if docno in texts:
            raise InputError(f"{row.where}: the document {docno!r} is repeated")
        texts[docno] = row.get("text", str)
    return texts


def parse_run_with_texts(data: bytes, name: str, texts: Mapping[str, str]) -> Predictions:
    """Return the rankings of a run as predictions with the texts of the documents; see ``parse_run``.

    Raises InputError also for documents that are not in the corpus.
    """
    run = parse_run(data, name, "documents")
    if missing := sorted({docno for row in run.rows for docno in row.fields["documents"] if docno not in texts}):
        raise InputError(
            f"{len(missing)} documents of {name} are not in the corpus: {some(missing)}; give the corpus that was "
            "searched"
        )
    rows = [
        replace(row, fields={**row.fields, "passages": [texts[docno] for docno in row.fields["documents"]]})
        for row in run.rows
    ]
    return replace(run, rows=tuple(rows))


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
    """Score predictions on the questions of a config.

    A prediction has "passages", the texts retrieved from the question's chapter, best first; "answer", the answer of a
    model, is only needed for ROUGE. A question without a prediction scores 0, like one for which nothing was retrieved.
    ``k`` has the cutoffs: an integer, several integers, or a string such as "1,5,10".

    Raises:
        InputError: an unknown config, a wrong cutoff, or no prediction that belongs to a question.
    """
    chosen = list(families or benchmark.default_families)
    asked = load_questions(config, questions)
    joined = join([row["id"] for row in asked.rows], _checked(predictions))
    columns: list[Columns] = [{} for _ in asked.rows]
    details: list[dict[str, Any]] = [{} for _ in asked.rows]
    signatures = {}
    if "retrieval" in chosen:
        columns, details, signatures["retrieval"] = _retrieval(asked, joined.rows, k)
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


def _checked(predictions: Predictions) -> Predictions:
    """Return the predictions; those with fields of a wrong type become bad lines."""
    rows, bad = [], list(predictions.bad_lines)
    for row in predictions.rows:
        passages, answer = row.fields.get("passages"), row.fields.get("answer")
        if passages is not None and not is_strings(passages):
            bad.append(BadLine(row.line, f"the passages are not a list of strings: {passages!r:.60}"))
        elif answer is not None and not isinstance(answer, str):
            bad.append(BadLine(row.line, f"the answer is not a string: {answer!r:.60}"))
        else:
            rows.append(row)
    if not rows:
        raise InputError(f"{predictions.path} has no predictions; line {bad[0].line}: {bad[0].reason}")
    return Predictions(predictions.path, tuple(rows), tuple(sorted(bad, key=lambda bad_line: bad_line.line)))


def _field(row: Prediction | None, name: str) -> Any:
    return row.fields.get(name) if row else None


def _retrieval(
    asked: Questions, rows: Sequence[Prediction | None], k: int | str | Sequence[int]
) -> tuple[list[Columns], list[dict[str, Any]], str]:
    """Return the columns and the details of retrieval, and the signature."""
    passages = [_field(row, "passages") or [] for row in rows]
    scores = answer_component_scores([row["answer_context"] for row in asked.rows], passages, k)
    details = []
    for row, prediction, texts, ranks in zip(asked.rows, rows, passages, scores.ranks, strict=True):
        ids = _field(prediction, "documents") or [str(rank) for rank in range(1, len(texts) + 1)]
        shown = [{"id": id, "text": text} for id, text in zip(ids, texts, strict=True)]
        details.append(detail(row, ranks or (), shown, max(scores.cutoffs)))
    fields = {"config": asked.config, "data": asked.digest, **scores.signature()}
    return retrieval_columns(scores), details, signature("fastbook_retrieval", **fields)


def _record(
    row: Mapping[str, Any],
    prediction: Prediction | None,
    scores: Mapping[str, float],
    about: Mapping[str, Any],
    of_answer: bool,
) -> Record:
    answer = _field(prediction, "answer")
    scored = answer if of_answer else _field(prediction, "passages") or answer
    return Record(
        id=row["id"],
        epoch=1,
        question=row["question_text"],
        reference=row["gold_standard_answer"],
        messages=[] if answer is None else [Message("assistant", answer)],
        answer=answer,
        status=MISSING if prediction is None else ANSWERED if scored else EMPTY,
        problem=NO_PREDICTION if prediction is None else None,
        scores=scores,
        groups={"chapter": (str(row["chapter"]),)},
        detail=about,
    )


def prediction(record: Record) -> dict[str, Any]:
    """Return {"answer", "passages"}: the model's answer, and the texts of the retrieved passages, best first."""
    passages = [passage["text"] for passage in record.detail.get("passages") or ()]
    return {"answer": record.answer} | ({"passages": passages} if passages else {})


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """Return each system's curve, up to the smallest cutoff of its records, from the ranks of the components."""
    rows: list[SectionRow] = []
    notes = []
    for label, evaluation in evaluations.items():
        records = [record for record in evaluation.records if record.detail.get("components")]
        if not records:
            continue
        ids = [record.id for record in records]
        depth = min(record.detail["k"] for record in records)
        ranks = tuple(tuple(part["rank"] for part in record.detail["components"]) for record in records)
        scores = AnswerComponentScores(tuple(range(1, depth + 1)), ranks, ())
        for k in scores.cutoffs:
            for name, values in (("MRR@k", scores.mrr_per_question(k)), ("Recall@k", scores.recall_per_question(k))):
                interval = bootstrap_mean([value or 0.0 for value in values], clusters=ids)
                rows.append(SectionRow(label, name, k, interval, len(ids)))
        beyond = [rank is None or rank > depth for ranks_of_question in ranks for rank in ranks_of_question]
        notes.append(
            f"{label}: {sum(beyond):,} of {len(beyond):,} answer components are not in the first {depth} passages."
        )
    return [ExtraSection("MRR@k and Recall@k by k", "questions", rows, CURVE, " ".join(notes), "k")] if rows else []
