"""Questions of ExpertQA, scores of predictions, and the published numbers that can be computed.

A prediction has ``answer`` (ROUGE against the reference answer), ``claims``, or both, and optionally
``pages``, the URLs that were read. A claim is ``{"claim": ..., "evidence": [...], "label": "Y" or "N", "fact_score":
0.5}``; label and fact_score are optional.
Claims are either the annotated claims of the config, in their order, or those of another system's answer. The former
are scored as in the authors' scripts, with agreement between labels and experts. For the latter, there are no experts'
labels, so all claims with evidence count.

Columns of ``Record.scores``, from which the metrics are computed:
- claims, claims_with_evidence: counts over an answer's claims. abstains: 1 or 0.
- claims_counted, claims_supported: the number of claims that AutoAIS counts, and of those with the label Y.
- autoais_macro: claims_supported / claims_counted; absent if no claim counts.
- the same three with the suffix _without_abstentions: absent for an answer that abstains.
- autoais_agreement.tp, .tn, .fp, .fn: label Y or N against support Complete or not; the same for fact_score_agreement.
- fact_score_sum, claims_with_fact_score: the sum of the claims' fact scores, and the number of claims that have one.
- rouge1, rouge2, rougeL, rougeLsum: F-measures.
- evidence.recall, evidence.precision: see ``qabench.evaluation.metric``; absent without named URLs.
- faithfulness: the share of the answer's claims that the reference answer entails; 0 for an answer without claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qabench.benchmarks.base import Benchmark
from qabench.benchmarks.expertqa.agreement import (
    Answer,
    AnswerAutoAIS,
    Claim,
    SystemScores,
    abstains,
    agreement_counts,
    autoais,
    autoais_agreement,
    score_answer,
)
from qabench.benchmarks.expertqa.claims import faithfulness_labels, is_texts, problem_of, sentence_splitter
from qabench.benchmarks.expertqa.factscore import THRESHOLD, factscore_agreement
from qabench.benchmarks.expertqa.lfqa import BOOTSTRAP_SAMPLES, lfqa_rouge
from qabench.benchmarks.expertqa.questions import Question, Questions, load_questions, page_key
from qabench.benchmarks.reproduction import Reproduction, available_splits, data_checks
from qabench.data.predictions import NO_PREDICTION, Joined, Prediction, Predictions, join, some
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING, Evaluation, Record
from qabench.evaluation.metric import compare_pages
from qabench.evaluation.signature import signature
from qabench.io.tables import Table
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.expertqa.stats import tables
from qabench.models import entailment

ROUGE, AUTOAIS, FACT_SCORE, FAITHFULNESS = "rouge", "autoais", "fact_score", "faithfulness"
AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT, EVIDENCE = "autoais_agreement", "fact_score_agreement", "evidence"
Columns = dict[str, float]
Claims = Sequence[Mapping[str, Any]]


def unjudged_columns(text: str, claims: Claims, labels: Sequence[str | None] | None, on_unlabeled: str) -> Columns:
    """Score the claims of one answer that experts have not judged: all claims with evidence count.

    ``labels`` has "Y", "N" or None for each claim, and is None if the claims are not labeled; see also ``autoais``.
    """
    columns = _claim_columns(text, claims)
    if labels is None:
        return columns
    full = {"support": "Complete", "worthiness": "Yes"}
    judged = [Claim(full | {"evidence": claim["evidence"]}, label) for claim, label in zip(claims, labels, strict=True)]
    return columns | _autoais_columns(score_answer(Answer("model", abstains(text), tuple(judged)), on_unlabeled))


def rouge_signature(fields: Mapping[str, Any], backend: str) -> str:
    """Return the signature of ROUGE against reference answers; ``backend`` is the package and its version."""
    options = {"rouge": backend, "stemmer": "none", "bootstrap": BOOTSTRAP_SAMPLES, "bootstrap_seed": 0}
    return signature("expertqa_lfqa", **fields, **options)


def unjudged_signature(fields: Mapping[str, Any], unlabeled: str, labels: str) -> str:
    """Return the signature of AutoAIS of answers that experts have not judged; ``labels`` is the labeler."""
    return signature("expertqa_autoais", **fields, unlabeled=unlabeled, counted="all with evidence", labels=labels)


def evidence_columns(named: Sequence[str], read: Sequence[str]) -> tuple[Columns, dict[str, Any]]:
    """Compare the URLs that were read with those that a question's claims name; return columns and detail."""
    pages = [frozenset([page]) for page in dict.fromkeys(map(page_key, read))]
    score = compare_pages({i: frozenset([url]) for i, url in enumerate(named)}, pages)
    detail = {"evidence_read": list(read), "evidence_missing": [named[i] for i in score.missing]}
    return score.columns(), detail


def _claim_columns(text: str, claims: Claims) -> Columns:
    with_evidence = sum(bool(claim["evidence"]) for claim in claims)
    return {"claims": len(claims), "claims_with_evidence": with_evidence, "abstains": int(abstains(text))}


def _autoais_columns(answer: AnswerAutoAIS) -> Columns:
    columns: Columns = {"claims_counted": len(answer.values), "claims_supported": sum(answer.values)}
    if answer.mean is not None:
        columns["autoais_macro"] = answer.mean
    if answer.abstains:
        return columns
    return columns | {f"{name}_without_abstentions": value for name, value in columns.items()}


@dataclass
class ScoredQuestion:
    """A question, its prediction as far as it could be read, and the columns computed so far."""

    question: Question
    prediction: Prediction | None
    answer: str | None = None
    claims: list[dict[str, Any]] | None = None
    annotated: bool = False
    problem: str | None = None
    pages: list[str] | None = field(default_factory=list)  # None: the prediction does not say what was read
    scores: Columns = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the text that decides whether an answer abstains: the answer, or its claims without an answer."""
        return self.answer or " ".join(claim["claim_string"] or "" for claim in self.claims or ())

    def verdicts(self, name: str) -> list[Any]:
        """Return a field of each claim: None for the annotated claims of a question without a prediction."""
        if self.claims is None:
            return [None] * len(self.question.annotated_claims)
        return [claim[name] for claim in self.claims]


Pairs = Sequence[tuple[ScoredQuestion, str]]
"""The questions that have a reference answer, with it."""


def evaluate(
    benchmark: Benchmark,
    config: str | None,
    predictions: Predictions,
    *,
    families: Sequence[str] | None = None,
    questions: Path | None = None,
    progress: object = None,
    split: str | None = None,
    unlabeled: str = "N",
) -> Evaluation:
    """Score predictions for the questions of a config; see ``load_questions``, and the module for predictions.

    A prediction with a field of another type is reported, and counts as missing. ``families`` of None means all that
    the predictions and the config allow. ``progress`` is not used. ``unlabeled`` is the treatment of a claim that
    counts but has no label: "N", as in the authors' script, or "exclude".
    """
    loaded = load_questions(config, split, questions)
    joined = join([row.id for row in loaded.rows], predictions)
    items = [_read(question, row) for question, row in zip(loaded.rows, joined.rows, strict=True)]
    _match_annotated(items)
    signatures = _score(items, loaded, unlabeled, families or benchmark.default_families)
    if absent := [name for name in families or () if name not in signatures]:
        raise InputError(f"{', '.join(absent)} cannot be computed: {_hint(absent[0], loaded)}")
    if not signatures:
        raise InputError(f"nothing to score in {predictions.path}: {_hint(ROUGE, loaded)}")
    return benchmark.evaluation(
        predictions,
        loaded.config,
        list(map(_record, items)),
        signatures,
        problems=_problems(joined, items, unlabeled),
        arguments={"split": loaded.split},
    )


def _read(question: Question, prediction: Prediction | None) -> ScoredQuestion:
    if prediction is None:
        return ScoredQuestion(question, None, problem=NO_PREDICTION)
    answer, claims, pages = (prediction.fields.get(name) for name in ("answer", "claims", "pages"))
    problem = None if claims is None else problem_of(claims)
    if pages is not None and not is_texts(pages):
        problem = f"the pages are {pages!r:.60}; allowed: a list of URLs"
    if answer is not None and not isinstance(answer, str):
        problem = f"the answer is a {type(answer).__name__}; allowed: a string or null"
    if problem:
        return ScoredQuestion(question, prediction, problem=problem)
    names = {"claim_string": "claim", "evidence": "evidence", "label": "label", "fact_score": "fact_score"}
    read = claims and [{name: claim.get(key) for name, key in names.items()} for claim in claims]
    return ScoredQuestion(question, prediction, answer, read, pages=pages)


def _match_annotated(items: Sequence[ScoredQuestion]) -> None:
    """Check that either all predictions have the annotated claims, or none.

    If some have them, a prediction with other claims is wrong: its labels cannot be assigned to the annotated claims.
    """
    with_claims = [item for item in items if item.claims is not None]
    if not any(item.claims and _fits(item.claims, item.question) for item in with_claims):
        return
    for item in with_claims:
        judged = item.question.annotated_claims
        item.annotated = _fits(item.claims, item.question) if item.claims else not judged
        if not item.annotated:
            item.claims = None
            item.problem = "its claims are not the annotated claims of the question's answer"


def _fits(claims: Claims, question: Question) -> bool:
    judged = question.annotated_claims
    if len(judged) != len(claims) or not any(claim["support"] is not None for claim in judged):
        return False
    texts = [claim["claim_string"] for claim in claims]
    pairs = zip(texts, judged, strict=True)
    return all(text is None or text.strip() == claim["claim_string"].strip() for text, claim in pairs)


def _score(
    items: Sequence[ScoredQuestion], questions: Questions, unlabeled: str, families: Sequence[str]
) -> dict[str, str]:
    """Write the columns into the items; return the signatures of the families that were computed."""
    fields = {"config": questions.config, "split": questions.split, "data": questions.digest}
    signatures: dict[str, str] = {}
    pairs = [(item, item.question.reference) for item in items if item.question.reference is not None]
    if pairs and any(item.answer is not None for item in items):
        if ROUGE in families:
            signatures |= _rouge(pairs, fields)
        if FAITHFULNESS in families:
            signatures |= _faithfulness(pairs, fields)
    if any(item.annotated for item in items):
        signatures |= _of_annotated(items, fields, unlabeled, families)
    elif AUTOAIS in families and any(item.claims for item in items):
        with_claims = [item for item in items if item.claims is not None]
        labeled = any(any(item.verdicts("label")) for item in with_claims)
        for item in with_claims:
            labels = item.verdicts("label") if labeled else None
            item.scores |= unjudged_columns(item.text, item.claims or (), labels, unlabeled)
        signatures[AUTOAIS] = unjudged_signature(fields, unlabeled, _authors_of(items, "labels_by"))
    if FACT_SCORE in families:
        for item in items:
            scores = [claim["fact_score"] for claim in item.claims or () if claim["fact_score"] is not None]
            if scores:
                item.scores |= {"fact_score_sum": sum(scores), "claims_with_fact_score": len(scores)}
        if any("fact_score_sum" in item.scores for item in items):
            scorer = _authors_of(items, "fact_scores_by")
            signatures[FACT_SCORE] = signature("expertqa_fact_score", **fields, fact_scores=scorer)
    with_pages = any(item.prediction and item.prediction.fields.get("pages") is not None for item in items)
    if EVIDENCE in families and with_pages:
        for item in items:
            if item.pages is not None and (named := questions.evidence_urls[item.question.id]):
                columns, item.detail = evidence_columns(named, item.pages)
                item.scores |= columns
        if any(item.detail for item in items):
            signatures[EVIDENCE] = signature("expertqa_evidence", **fields)
    return signatures


def _rouge(pairs: Pairs, fields: Mapping[str, str]) -> dict[str, str]:
    result = lfqa_rouge([reference for _, reference in pairs], [item.answer for item, _ in pairs])
    for (item, _), scores in zip(pairs, result.per_question, strict=True):
        item.scores |= scores
    return {ROUGE: rouge_signature(fields, result.backend)}


def _faithfulness(pairs: Pairs, fields: Mapping[str, str]) -> dict[str, str]:
    model = entailment.shared_entailment()
    labeled = faithfulness_labels([item.answer for item, _ in pairs], [reference for _, reference in pairs], model)
    for (item, _), claims in zip(pairs, labeled, strict=True):
        item.scores["faithfulness"] = sum(claim["label"] == "Y" for claim in claims) / max(1, len(claims))
    how = {"labels": model.name, "claims": sentence_splitter()[0]}
    return {FAITHFULNESS: signature("expertqa_faithfulness", **fields, **how)}


def _of_annotated(
    items: Sequence[ScoredQuestion], fields: Mapping[str, str], unlabeled: str, families: Sequence[str]
) -> dict[str, str]:
    """Score labels of the annotated claims, as in the authors' scripts."""
    items_with_answers = [item for item in items if item.question.answers]
    rows = [{"answers": item.question.answers} for item in items_with_answers]
    labels, facts = ([item.verdicts(name) for item in items_with_answers] for name in ("label", "fact_score"))
    labeler = {"unlabeled": unlabeled, "labels": _authors_of(items, "labels_by")}
    signatures: dict[str, str] = {}
    if AUTOAIS in families and any(map(any, labels)):
        scores = autoais(rows, labels, on_unlabeled=unlabeled).per_question
        for item, (answer,) in zip(items_with_answers, scores, strict=True):
            text = item.question.answers[0]["answer_string"]
            item.scores |= _claim_columns(text, item.question.annotated_claims) | _autoais_columns(answer)
        options = {"unlabeled": unlabeled, "counted": "annotated", "labels": labeler["labels"]}
        signatures[AUTOAIS] = signature("expertqa_autoais", **fields, **options)
    agreements: dict[str, SystemScores] = {}
    if AUTOAIS_AGREEMENT in families and any(map(any, labels)):
        agreements[AUTOAIS_AGREEMENT] = autoais_agreement(rows, labels, on_unlabeled=unlabeled)
        signatures[AUTOAIS_AGREEMENT] = signature("expertqa_autoais_agreement", **fields, **labeler)
    if FACT_SCORE_AGREEMENT in families and any(score is not None for row in facts for score in row):
        agreements[FACT_SCORE_AGREEMENT] = factscore_agreement(rows, facts)
        scorer = {"threshold": THRESHOLD, "fact_scores": _authors_of(items, "fact_scores_by")}
        signatures[FACT_SCORE_AGREEMENT] = signature("expertqa_factscore_agreement", **fields, **scorer)
    for family, agreement in agreements.items():
        for item, claims in zip(items_with_answers, agreement.per_question, strict=True):
            item.scores |= {f"{family}.{name}": count for name, count in agreement_counts(claims).items()}
    return signatures


def _authors_of(items: Sequence[ScoredQuestion], name: str) -> str:
    """Return the models that made the labels, as stated in a field of the lines; "unstated" without this field."""
    models = [item.prediction.fields.get(name) for item in items if item.prediction is not None]
    stated = ",".join(dict.fromkeys(str(model) for model in models if model))
    return f"stated:{stated}" if stated else "unstated"


def _record(item: ScoredQuestion) -> Record:
    answer = item.answer
    if answer is None and item.annotated and item.question.answers:
        answer = item.question.answers[0]["answer_string"]
    elif answer is None and item.claims is not None:
        answer = item.text
    claims = [
        {"text": claim["claim_string"] or "", "evidence": claim["evidence"] or [], "label": claim["label"]}
        for claim in item.claims or ()
    ]
    nothing = "the prediction has neither an answer nor claims" if answer is None else None
    return Record(
        id=item.question.id,
        epoch=1,
        question=item.question.text,
        reference=item.question.reference or "",
        messages=(),
        answer=answer,
        status=MISSING if answer is None else ANSWERED if answer.strip() else EMPTY,
        problem=item.problem or nothing,
        scores=item.scores,
        groups=item.question.groups,
        detail={"claims": claims, "passages": []} | item.detail,
    )


def _problems(joined: Joined, items: Sequence[ScoredQuestion], unlabeled: str) -> list[str]:
    sentences = joined.problems()
    if wrong := [(item.prediction, item.problem) for item in items if item.prediction and item.problem]:
        named = some(f"{row.id} (line {row.line}): {problem}" for row, problem in wrong)
        sentences.append(f"predictions that cannot be scored: {len(wrong)} ({named})")
    lacking = sum(
        claim["label"] is None and bool(claim["evidence"])
        for item in items
        for claim in item.claims or ()
        if "claims_counted" in item.scores
    )
    if lacking:
        counted = "they count as N" if unlabeled == "N" else "they are left out"
        sentences.append(f"claims with evidence and without a label: {lacking} ({counted} where claims count)")
    return sentences


def _hint(family: str, questions: Questions) -> str:
    if family in (ROUGE, FAITHFULNESS):
        return (
            'predictions need "answer" and the config needs reference answers (lfqa_random, lfqa_domain, and configs '
            f'with annotated answers; the config is {questions.config!r}), or predictions need "claims"'
        )
    if family in (AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT):
        return "predictions need the annotated claims of the config, in their order, with label or fact_score"
    if family == EVIDENCE:
        return 'predictions need "pages", the URLs that were read, and the config needs annotated claims that name URLs'
    return 'predictions need "claims", each with "label" (AutoAIS) or "fact_score" (factuality)'


def reproduce() -> Reproduction:
    """Compare rows by split, and make tables of labels and AutoAIS of the annotated files that are available."""
    labels = ("Answers and claims by system, all splits", "Labels of claims")
    reproduction = data_checks("expertqa", tables, more=labels)
    with_labels = ("autoais", "all_evidences")  # the configs whose claims have AutoAIS labels
    splits = {config: available_splits("expertqa", config)[0] for config in with_labels}
    for config, rows_by_split in splits.items():
        reproduction.tables.extend(autoais_table(f"{config} {split}", rows) for split, rows in rows_by_split.items())
    if not any(splits.values()):
        files = "; ".join(dataset_table("expertqa").config(config).description for config in with_labels)
        reproduction.notes.append(f"AutoAIS is not computed: no file with its labels is available ({files}).")
    reproduction.notes.append("There are no published values for the tables of labels and AutoAIS.")
    return reproduction


def autoais_table(name: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    """Return AutoAIS of all systems and of each system, from the labels in the rows."""
    columns = ("macro", "micro", "macro_without_abstentions", "micro_without_abstentions", "counted_claims")
    references = list(rows)
    scores = autoais(references, references).as_dict()
    systems = {"all": scores, **scores["by_system"]}
    lines = [
        [name, *(own[column] if own[column] is None else round(own[column], 4) for column in columns)]
        for name, own in systems.items()
    ]
    return Table(f"AutoAIS: {name}", ["system", *(column.replace("_", " ") for column in columns)], lines)
