"""fastbook's scorer: Answer Component MRR@k and Recall@k of passages, and ROUGE of answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.fastbook.answer_components import (
    OPTIONS,
    AnswerComponentScores,
    answer_component_scores,
    check_cutoffs,
    longest_passage,
)
from qabench.data.answers import is_list_of
from qabench.data.rows import Json, Row, without_none
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, MISSING, Evaluation, Record
from qabench.evaluation.records import CURVE, ExtraSection, SectionRow
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import signature
from qabench.stats import mean_interval
from qabench.text.rouge import backend_version, rouge, wordless_problems

# The signature fields that describe how passages were retrieved.
SYSTEM = ("config", "data", "corpus", "chunker", "chunk_size", "overlap", "method", "query")

# The ids of chunks in the config ``chunks``. The number of digits is limited, so that matching takes
# linear time.
DOC_ID = re.compile(r"\d{1,9}-c\d{1,9}")
# A curve in a report has one point per cutoff.
MAX_CUTOFF_OF_CURVES = 10_000
READS = {"retrieval": ("passages",), "rouge": ("answer",)}
NEEDS = {
    "retrieval": 'it needs the field "passages", a list of the texts that were retrieved, best first; answers '
    "alone are scored with --scores rouge"
}


@dataclass
class FastbookScorer(Scorer):
    """Scores the passages retrieved for a question, and a model's answer.

    A prediction has ``passages``, the texts retrieved from the question's chapter, best first, and
    for ROUGE ``answer``. For the report, it can also have the ids of the passages, ``documents``,
    and their ``scores``. A question without a prediction scores 0, like one for which nothing was
    retrieved.

    Attributes:
        groups: "retrieval", "rouge", or both.
        k: the cutoffs: an integer, several integers, or a string such as "1,5,10".
        longest: the number of tokens of the longest passage of all questions. A run sets it,
            because it calls the scorer for each question alone.
        measures: the retrieval scores to compute: "mrr", "recall" or both. For a question without
            components, recall is an error.
        skip_empty_contexts, skip_extraneous, explicit_only: unofficial options. See
            ``answer_component_scores``.
    """

    groups: Sequence[str]
    k: int | str | Sequence[int] = 10
    longest: int = 0
    measures: Sequence[str] = ("mrr", "recall")
    skip_empty_contexts: bool = False
    skip_extraneous: bool = False
    explicit_only: bool = False
    needs = NEEDS

    def __post_init__(self) -> None:
        check_cutoffs(self.k)

    @property
    def reads(self) -> Mapping[str, Sequence[str]]:  # type: ignore[override]
        """Return the fields of a prediction that each group is computed from."""
        return {group: READS[group] for group in self.groups}

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the scores of each question at every cutoff. ``progress`` is not used."""
        # An unusable prediction counts as missing, so that one bad line does not stop the others.
        problems = [_unusable(item.fields or {}) for item in items]
        predictions: list[Mapping[str, Any]] = []
        for item, problem in zip(items, problems, strict=True):
            if problem:
                predictions.append({})
            else:
                predictions.append(item.fields or {})
        columns: list[Json] = [{} for _ in items]
        details: list[Json] = [{} for _ in items]
        if "retrieval" in self.groups:
            scores = self._retrieval(items, predictions)
            # If the options leave out all components of a question, it has no scores, and is in no
            # mean.
            columns = [without_none(column) for column in scores.columns(*self.measures)]
            # With options, there are fewer ranks than components in the row, so no details are
            # shown.
            if not scores.options:
                details = []
                for item, fields, ranks in zip(items, predictions, scores.ranks, strict=True):
                    details.append(_detail(item.row, fields, ranks or (), max(scores.cutoffs)))
        if "rouge" in self.groups:
            f_measures = self._rouge(items, predictions)
            for column, f_measures_of_answer in zip(columns, f_measures, strict=True):
                column |= f_measures_of_answer
        outcomes = []
        for i, problem in enumerate(problems):
            # This status is the default. Each group has a separate one, which depends on ``reads``.
            status = MISSING if problem else ANSWERED
            outcome = Outcome(
                scores=columns[i],
                detail=details[i],
                problem=problem,
                status=status,
                answer=predictions[i].get("answer"),
                usable=problem is None,
            )
            outcomes.append(outcome)
        return outcomes

    def _retrieval(
        self, items: Sequence[Item], predictions: Sequence[Mapping[str, Any]]
    ) -> AnswerComponentScores:
        """Return the ranks of the answers' components. Raises InputError if no component counts."""
        references = [item.row["answer_context"] for item in items]
        passages = [fields.get("passages") for fields in predictions]
        scores = answer_component_scores(
            references,
            passages,
            self.k,
            skip_empty_contexts=self.skip_empty_contexts,
            skip_extraneous=self.skip_extraneous,
            explicit_only=self.explicit_only,
        )
        if scores.skipped == len(items):
            raise InputError(
                "the options leave out all components of all questions: the mean is undefined"
            )
        return scores

    def _rouge(
        self, items: Sequence[Item], predictions: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, float]]:
        """Return the ROUGE F-measures of each answer, and note texts without words as problems."""
        references = [item.row["gold_standard_answer"] for item in items]
        answers = [fields.get("answer") or "" for fields in predictions]
        f_measures = []
        for measures in rouge(references, answers):
            f_measures_of_answer = {}
            for name, value in measures.items():
                if name.endswith(".fscore"):
                    f_measures_of_answer[name] = float(value)
            f_measures.append(f_measures_of_answer)
        ids = [str(item.row.get("id")) for item in items]
        self.problems = wordless_problems(ids, answers, references)
        return f_measures

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures.

        The signature of retrieval does not contain the fields of the model that answers. If no item
        has ``passages``, there is no such signature.
        """
        asked = dict(about)
        # The names of these signatures already contain the benchmark.
        asked.pop("benchmark", None)
        lines = {}
        with_passages = any((item.fields or {}).get("passages") is not None for item in items)
        if "retrieval" in self.groups and (with_passages or not items):
            fields: dict[str, object] = {}
            for name in SYSTEM:
                if name in asked:
                    fields[name] = asked[name]
            # In this signature, the field "model" is the encoder, not the model that answers.
            fields["model"] = asked.get("retriever_model")
            fields |= self.metric_fields("retrieval", items)
            lines["retrieval"] = signature("fastbook_retrieval", **fields)
        if "rouge" in self.groups:
            lines["rouge"] = signature(
                "fastbook_rouge", **asked, rouge=backend_version(), stemmer="porter"
            )
        return lines

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the signature fields: cutoffs, options, and the size of the longest passage."""
        cutoffs = check_cutoffs(self.k)
        texts: set[str] = set()
        for item in items:
            passages: Any = (item.fields or {}).get("passages") or ()
            if is_list_of(passages, str):
                texts.update(passages[: max(cutoffs)])
        longest = max(self.longest, longest_passage(texts))
        options = tuple(name for name in OPTIONS if getattr(self, name))
        return AnswerComponentScores(cutoffs, (), options, longest).signature()


def _unusable(fields: Mapping[str, Any]) -> str | None:
    passages, answer = fields.get("passages"), fields.get("answer")
    if passages is not None and not is_list_of(passages, str):
        return f"the passages are not a list of strings: {passages!r:.60}"
    if passages and all(map(DOC_ID.fullmatch, passages)):
        return f"the passages are ids of chunks, such as {passages[0]!r}; give their texts, or a TREC run"
    if answer is not None and not isinstance(answer, str):
        problem = f"the answer is not a string: {answer!r:.60}"
        if is_list_of(answer, str):
            problem += '; retrieved texts are the field "passages"'
        return problem
    return None


def _detail(
    row: Row, fields: Mapping[str, Any], ranks: Sequence[int | None], k: int
) -> dict[str, Any]:
    """Return the passages of one question and the rank of each answer component, for the report."""
    texts = fields.get("passages") or []
    passages = [{"id": str(rank), "text": text} for rank, text in enumerate(texts, start=1)]
    for field, name in (("documents", "id"), ("scores", "score")):
        values = fields.get(field)
        # Ids and scores are optional. They are shown only if there is one for each passage.
        if isinstance(values, list) and len(values) == len(texts):
            for passage, value in zip(passages, values, strict=True):
                passage[name] = value
    components = []
    for component, rank in zip(row["answer_context"], ranks, strict=True):
        components.append(
            {
                # "answer_component" is a list, because 6 of the dataset's 357 components are two
                # texts.
                "text": "; ".join(component.get("answer_component", ())),
                "contexts": list(component["context"]),
                "rank": rank,
            }
        )
    return {"passages": passages[:k], "components": components, "k": k}


def _records_with_ranks(evaluation: Evaluation) -> list[Record]:
    """Return the records that have the ranks of components and a cutoff in their details."""
    records = []
    for record in evaluation.records:
        # In an edited log, the cutoff may be missing or very large.
        k = record.detail.get("k") or 0
        if record.detail.get("components") and 0 < k <= MAX_CUTOFF_OF_CURVES:
            records.append(record)
    return records


def sections(evaluations: Mapping[str, Evaluation]) -> list[ExtraSection]:
    """Return MRR@k and Recall@k of each system, for k up to the smallest cutoff of its records."""
    rows: list[SectionRow] = []
    notes = []
    for label, evaluation in evaluations.items():
        records = _records_with_ranks(evaluation)
        if not records:
            continue
        ids = [record.id for record in records]
        depth = min(record.detail["k"] for record in records)
        all_ranks = []
        n_components = 0
        n_beyond = 0
        for record in records:
            ranks = tuple(component.get("rank") for component in record.detail["components"])
            all_ranks.append(ranks)
            n_components += len(ranks)
            n_beyond += sum(rank is None or rank > depth for rank in ranks)
        # The ranks in the log give the scores at every cutoff up to the run's own.
        scores = AnswerComponentScores(tuple(range(1, depth + 1)), tuple(all_ranks), ())
        columns = scores.columns("mrr", "recall")
        for k in scores.cutoffs:
            for name, title in (("mrr", "MRR@k"), ("recall", "Recall@k")):
                values = [column[f"{name}@{k}"] for column in columns]
                interval = mean_interval(values, clusters=ids)
                rows.append(SectionRow(label, title, k, interval, len(ids)))
        notes.append(
            f"{label}: {n_beyond:,} of {n_components:,} answer components are not in the first {depth} passages."
        )
    if not rows:
        return []
    note = " ".join(notes)
    return [ExtraSection("MRR@k and Recall@k by k", "questions", rows, CURVE, note, "k")]
