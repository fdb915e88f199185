"""fastbook's scorer: Answer Component MRR@k and Recall@k of passages, and ROUGE F-measures of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.answers import is_list_of
from qabench.benchmarks.fastbook.answer_components import (
    AnswerComponentScores,
    answer_component_scores,
    check_cutoffs,
    longest_passage,
)
from qabench.data.rows import Json, Row
from qabench.evaluation import ANSWERED, MISSING, Evaluation
from qabench.evaluation.records import CURVE, ExtraSection, SectionRow
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import signature
from qabench.stats import mean_interval
from qabench.text.rouge import backend_version, rouge, wordless_problems

# The fields of signatures that describe how passages were retrieved.
SYSTEM = ("config", "data", "corpus", "chunker", "chunk_size", "overlap", "method", "query")

DEEPEST = 10_000  # passages of a curve in a report
READS = {"retrieval": ("passages",), "rouge": ("answer",)}
NEEDS = {
    "retrieval": 'it needs the field "passages", a list of the texts that were retrieved, best first; answers '
    "alone are scored with --scores rouge"
}


@dataclass
class FastbookScorer(Scorer):
    """Scores the passages retrieved for a question, and the answer of a model.

    A prediction has ``passages``, the texts retrieved from the question's chapter, best first, and
    for ROUGE ``answer``. For the report, it can also have the ids of the passages, ``documents``,
    and their ``scores``. A question without a prediction scores 0, like one for which nothing was
    retrieved.

    Attributes:
        groups: "retrieval", "rouge", or both.
        k: the cutoffs: an integer, several integers, or a string such as "1,5,10".
        longest: the number of tokens of the longest passage of a run, whose questions are scored
            one by one.
    """

    groups: Sequence[str]
    k: int | str | Sequence[int] = 10
    longest: int = 0
    needs = NEEDS

    def __post_init__(self) -> None:
        check_cutoffs(self.k)

    @property
    def reads(self) -> Mapping[str, Sequence[str]]:  # type: ignore[override]
        """Return the fields of a prediction that each group is computed from."""
        return {group: READS[group] for group in self.groups}

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the scores of each question at every cutoff. ``progress`` is not used."""
        problems = [_unusable(item.fields or {}) for item in items]
        predictions = [
            {} if problem else item.fields or {} for item, problem in zip(items, problems, strict=True)
        ]
        columns: list[Json] = [{} for _ in items]
        details: list[Json] = [{} for _ in items]
        if "retrieval" in self.groups:
            references = [item.row["answer_context"] for item in items]
            scores = answer_component_scores(
                references, [each.get("passages") for each in predictions], self.k
            )
            columns = scores.columns("mrr", "recall")
            parts = zip(items, predictions, scores.ranks, strict=True)
            details = [
                _detail(item.row, fields, ranks or (), max(scores.cutoffs))
                for item, fields, ranks in parts
            ]
        if "rouge" in self.groups:
            texts = [item.row["gold_standard_answer"] for item in items]
            answers = [each.get("answer") or "" for each in predictions]
            measures = rouge(texts, answers)
            ids = [str(item.row.get("id")) for item in items]
            self.problems = wordless_problems(ids, answers, texts)
            for column, measured in zip(columns, measures, strict=True):
                names = [name for name in measured if name.endswith(".fscore")]
                column |= {name: float(measured[name]) for name in names}
        return [
            Outcome(
                scores=column,
                detail=detail,
                problem=problem,
                status=MISSING if problem else ANSWERED,  # of the groups: see ``reads``
                answer=fields.get("answer"),
                usable=problem is None,
            )
            for fields, problem, column, detail in zip(
                predictions, problems, columns, details, strict=True
            )
        ]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures.

        The signature of retrieval does not have the fields of the model that answers. Without
        ``passages`` in any item, there is no retrieval to sign.
        """
        asked = {name: value for name, value in about.items() if name != "benchmark"}
        lines = {}
        with_passages = any("passages" in (item.fields or {}) for item in items)
        if "retrieval" in self.groups and (with_passages or not items):
            system = {name: asked[name] for name in SYSTEM if name in asked}
            cutoffs = check_cutoffs(self.k)
            predicted = [(item.fields or {}).get("passages") or () for item in items]
            texts = {
                text
                for passages in predicted
                if is_list_of(passages, str)
                for text in passages[: max(cutoffs)]
            }
            scoring = AnswerComponentScores(cutoffs, (), (), max(self.longest, longest_passage(texts)))
            fields = system | {"model": asked.get("retriever_model")} | scoring.signature()
            lines["retrieval"] = signature("fastbook_retrieval", **fields)
        if "rouge" in self.groups:
            lines["rouge"] = signature(
                "fastbook_rouge", **asked, rouge=backend_version(), stemmer="porter"
            )
        return lines


def _unusable(fields: Mapping[str, Any]) -> str | None:
    passages, answer = fields.get("passages"), fields.get("answer")
    if passages is not None and not is_list_of(passages, str):
        return f"the passages are not a list of strings: {passages!r:.60}"
    if answer is not None and not isinstance(answer, str):
        hint = '; retrieved texts are the field "passages"' if is_list_of(answer, str) else ""
        return f"the answer is not a string: {answer!r:.60}{hint}"
    return None


def _detail(row: Row, fields: Mapping[str, Any], ranks: Sequence[int | None], k: int) -> dict[str, Any]:
    """Return the retrieval of one question for the report: its passages, and the rank of each answer component."""
    texts = fields.get("passages") or []
    passages = [{"id": str(rank), "text": text} for rank, text in enumerate(texts, start=1)]
    for field, name in (("documents", "id"), ("scores", "score")):
        values = fields.get(field)
        if isinstance(values, list) and len(values) == len(texts):  # otherwise they are not shown
            for passage, value in zip(passages, values, strict=True):
                passage[name] = value
    components = [
        {"text": "; ".join(part["answer_component"]), "contexts": list(part["context"]), "rank": rank}
        for part, rank in zip(row["answer_context"], ranks, strict=True)
    ]
    return {"passages": passages[:k], "components": components, "k": k}


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """Return each system's curve, up to the smallest cutoff of its records, from the ranks of the components."""
    rows: list[SectionRow] = []
    notes = []
    for label, evaluation in evaluations.items():
        # An edited log may have no cutoff, or one of any size.
        records = [
            record
            for record in evaluation.records
            if record.detail.get("components") and 0 < (record.detail.get("k") or 0) <= DEEPEST
        ]
        if not records:
            continue
        ids = [record.id for record in records]
        depth = min(record.detail["k"] for record in records)
        ranks = tuple(
            tuple(part.get("rank") for part in record.detail["components"]) for record in records
        )
        scores = AnswerComponentScores(tuple(range(1, depth + 1)), ranks, ())
        columns = scores.columns("mrr", "recall")
        for k in scores.cutoffs:
            for name, title in (("mrr", "MRR@k"), ("recall", "Recall@k")):
                values = [column[f"{name}@{k}"] for column in columns]
                interval = mean_interval(values, clusters=ids)
                rows.append(SectionRow(label, title, k, interval, len(ids)))
        beyond = [
            rank is None or rank > depth for ranks_of_question in ranks for rank in ranks_of_question
        ]
        notes.append(
            f"{label}: {sum(beyond):,} of {len(beyond):,} answer components are not in the first {depth} passages."
        )
    return (
        [ExtraSection("MRR@k and Recall@k by k", "questions", rows, CURVE, " ".join(notes), "k")]
        if rows
        else []
    )
