"""ExpertQA's scorer: ROUGE, AutoAIS, agreement with experts, fact scores, evidence that was read, faithfulness.

A prediction has ``answer`` (ROUGE against the reference answer), ``claims``, or both, and
optionally ``pages``, the URLs that were read. A claim is ``{"claim": ..., "evidence": [...],
"label": "Y" or "N", "fact_score":
0.5}``. Label and fact_score are optional.
Claims are either the annotated claims of the config, in their order, or the claims of another
system's answer. The former are scored as in the authors' scripts, with agreement between labels and
experts. For the latter, there are no experts' labels, so all claims with evidence count.

Columns of ``Outcome.scores``, from which the scores are computed:
- claims, claims_with_evidence: counts over an answer's claims. abstains: 1 or 0.
- claims_counted, claims_supported: the number of claims that AutoAIS counts, and of those with the label Y.
- autoais_macro: claims_supported / claims_counted. Absent if no claim counts.
- the same three with the suffix _without_abstentions: absent for an answer that abstains.
- autoais_agreement.tp, .tn, .fp, .fn: label Y or N against support Complete or not. The same for fact_score_agreement.
- fact_score_sum, claims_with_fact_score: the sum of the claims' fact scores, and the number of claims that have one.
- rouge1, rouge2, rougeL, rougeLsum: F-measures.
- evidence.recall, evidence.precision: see ``qabench.evaluation.score_spec``. Absent without named URLs.
- faithfulness: the share of the answer's claims that the reference answer entails. 0 for an answer without claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from qabench.answers import is_list_of
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
from qabench.benchmarks.expertqa.claims import (
    faithfulness_labels,
    problem_of,
    sentence_splitter,
    split_claims,
)
from qabench.benchmarks.expertqa.factscore import THRESHOLD, factscore_agreement
from qabench.benchmarks.expertqa.lfqa import BOOTSTRAP_SAMPLES, lfqa_rouge
from qabench.benchmarks.expertqa.prompts import split_answer
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged, page_key
from qabench.data.rows import Json, Row
from qabench.evaluation import ANSWERED, EMPTY, MISSING
from qabench.evaluation.score_spec import compare_pages
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import signature
from qabench.models import entailment
from qabench.text.rouge import backend_version

ROUGE, AUTOAIS, FACT_SCORE, FAITHFULNESS = "rouge", "autoais", "fact_score", "faithfulness"
AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT, EVIDENCE = (
    "autoais_agreement",
    "fact_score_agreement",
    "evidence",
)
NO_CLAIM = dict.fromkeys(("claim", "evidence", "label", "fact_score"))
SIGNED_AS = {ROUGE: "lfqa", FACT_SCORE_AGREEMENT: "factscore_agreement"}
_TEXTS = (
    'predictions need "answer" and the config needs reference answers (lfqa_random, lfqa_domain, and configs with '
    'annotated answers), or predictions need "claims"'
)
_ANNOTATED = (
    "predictions need the annotated claims of the config, in their order, with label or fact_score"
)
_LABELED = 'predictions need "claims", each with "label" (AutoAIS) or "fact_score" (factuality)'
NEEDS = {
    ROUGE: _TEXTS,
    FAITHFULNESS: _TEXTS,
    AUTOAIS: _LABELED,
    AUTOAIS_AGREEMENT: _ANNOTATED,
    FACT_SCORE_AGREEMENT: _ANNOTATED,
    FACT_SCORE: _LABELED,
    EVIDENCE: 'predictions need "pages", the URLs that were read, and the config needs annotated claims that name URLs',
}
Columns = dict[str, float]
Claims = Sequence[Row]


def _claim_columns(text: str, claims: Claims) -> Columns:
    with_evidence = sum(bool(claim["evidence"]) for claim in claims)
    counts: Columns = {"claims": len(claims), "claims_with_evidence": with_evidence}
    return counts | {"abstains": int(abstains(text))}


def _autoais_columns(answer: AnswerAutoAIS) -> Columns:
    counted, supported = len(answer.values), sum(answer.values)
    columns: Columns = {"claims_counted": counted, "claims_supported": supported}
    if answer.mean is not None:
        columns["autoais_macro"] = answer.mean
    if answer.abstains:
        return columns
    return columns | {f"{name}_without_abstentions": value for name, value in columns.items()}


@dataclass
class ReadItem:
    """An item, its prediction as far as it could be read, and the columns computed so far."""

    row: Row
    fields: Mapping[str, Any]
    answer: str | None = None
    claims: list[Json] | None = None
    annotated: bool = False
    problem: str | None = None
    # None: the prediction does not say what was read
    pages: list[str] | None = field(default_factory=list)
    scores: Columns = field(default_factory=dict)
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the text that decides whether an answer abstains: the answer, or its claims without an answer."""
        return self.answer or " ".join(claim["claim"] or "" for claim in self.claims or ())

    def verdicts(self, name: str) -> list[Any]:
        """Return a field of each claim: None for the annotated claims of a question without a prediction."""
        if self.claims is None:
            return [None] * len(annotated_claims(self.row))
        return [claim[name] for claim in self.claims]

    def outcome(self) -> Outcome:
        """Return the result for the item."""
        answer = self.answer
        if answer is None and self.annotated and self.row.get("answers"):
            answer = self.row["answers"][0]["answer_string"]
        elif answer is None and self.claims is not None:
            answer = self.text
        claims = [
            {
                "text": claim["claim"] or "",
                "evidence": claim["evidence"] or [],
                "label": claim["label"],
            }
            for claim in self.claims or ()
        ]
        nothing = "the prediction has neither an answer nor claims" if answer is None else None
        return Outcome(
            scores=self.scores,
            detail={"claims": claims, "passages": []} | self.detail,
            problem=self.problem or nothing,
            status=MISSING if answer is None else ANSWERED if answer.strip() else EMPTY,
            answer=answer,
            texts=(),
            usable=self.problem is None,
        )


@dataclass
class ExpertqaScorer(Scorer):
    """Scores answers and claims.

    See the module for predictions and columns.

    A prediction with a field of another type is not usable, and counts as missing.

    Attributes:
        groups: the groups of scores that are computed if the predictions and the config allow it.
        unlabeled: how a claim that counts but has no label is treated: "N", as in the authors'
            script, or "exclude".
        in_run: whether a model's answers are scored while it is asked. Then an answer without
            claims, such as an agent's, is split into claims, and an unanswered question has a ROUGE
            of 0 also if no other is answered.
    """

    groups: Sequence[str]
    unlabeled: str = "N"
    in_run: bool = False
    needs = NEEDS

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the columns of each item. ``progress`` is not used."""
        read = self._read(items)
        groups = self._computable(read)
        if AUTOAIS in groups:
            _score_autoais(read, self.unlabeled)
        if AUTOAIS_AGREEMENT in groups:
            compare = partial(autoais_agreement, on_unlabeled=self.unlabeled)
            _score_agreement(read, AUTOAIS_AGREEMENT, "label", compare)
        if FACT_SCORE_AGREEMENT in groups:
            _score_agreement(read, FACT_SCORE_AGREEMENT, "fact_score", factscore_agreement)
        if ROUGE in groups:
            _score_rouge(read)
        if FAITHFULNESS in groups:
            _score_faithfulness(read)
        if FACT_SCORE in groups:
            _score_fact_scores(read)
        if EVIDENCE in groups:
            _score_evidence(read)
        self.problems = _unlabeled(read, self.unlabeled)
        return [item.outcome() for item in read]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures of the groups that can be computed."""
        read = self._read(items)
        fields = _ordered(about)
        labels = "none" if self.in_run else _authors_of(read, "labels_by")
        facts = _authors_of(read, "fact_scores_by")
        counted = "annotated" if any(item.annotated for item in read) else "all with evidence"
        fields_of_group: dict[str, dict[str, object]] = {
            AUTOAIS: {"unlabeled": self.unlabeled, "counted": counted, "labels": labels},
            AUTOAIS_AGREEMENT: {"unlabeled": self.unlabeled, "labels": labels},
            FACT_SCORE_AGREEMENT: {"threshold": THRESHOLD, "fact_scores": facts},
            FACT_SCORE: {"fact_scores": facts},
            EVIDENCE: {},
            ROUGE: {
                "rouge": backend_version(),
                "stemmer": "none",
                "bootstrap": BOOTSTRAP_SAMPLES,
                "bootstrap_seed": 0,
            },
        }
        groups = self._computable(read)
        if FAITHFULNESS in groups:
            model = entailment.shared_entailment()
            fields_of_group[FAITHFULNESS] = {"labels": model.name, "claims": sentence_splitter()[0]}
        return {
            group: signature(
                f"expertqa_{SIGNED_AS.get(group, group)}", **fields, **fields_of_group[group]
            )
            for group in groups
        }

    def _read(self, items: Sequence[Item]) -> list[ReadItem]:
        read = [_read_item(item, self.in_run) for item in items]
        _match_annotated(read)
        return read

    def _computable(self, read: Sequence[ReadItem]) -> list[str]:
        """Return the groups of scores that the predictions and the config allow."""
        claims = [claim for item in read for claim in item.claims or ()]
        annotated = any(item.annotated for item in read)
        labeled = any(claim["label"] for claim in claims)
        fact_scored = any(claim["fact_score"] is not None for claim in claims)
        answered = self.in_run or any(item.answer is not None for item in read)
        with_texts = answered and bool(_with_references(read))
        with_pages = any(item.fields.get("pages") is not None for item in read)
        with_urls = any(item.pages is not None and item.row["evidence_urls"] for item in read)
        computable = {
            AUTOAIS: labeled if annotated else self.in_run or bool(claims),
            AUTOAIS_AGREEMENT: annotated and labeled,
            FACT_SCORE_AGREEMENT: annotated and fact_scored,
            ROUGE: with_texts,
            FAITHFULNESS: with_texts,
            FACT_SCORE: fact_scored,
            EVIDENCE: with_pages and with_urls,
        }
        return [
            group
            for group, is_computable in computable.items()
            if is_computable and group in self.groups
        ]


def _ordered(about: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of signatures in the order of earlier runs: the model before the generation options."""
    fields = {name: value for name, value in about.items() if name != "benchmark"}
    if "model" not in fields:
        return fields
    model = fields.pop("model")
    sentences = fields.setdefault("sentences", sentence_splitter()[0])
    names = list(fields)
    first = {name: fields[name] for name in names[: names.index("sentences")]}
    return first | {"sentences": sentences, "model": model} | fields


def _read_item(item: Item, in_run: bool) -> ReadItem:
    if item.fields is None:
        return ReadItem(item.row, {})
    answer, claims, pages = (item.fields.get(name) for name in ("answer", "claims", "pages"))
    problem = None if claims is None else problem_of(claims)
    if pages is not None and not is_list_of(pages, str):
        problem = f"the pages are {pages!r:.60}; allowed: a list of URLs"
    if answer is not None and not isinstance(answer, str):
        problem = f"the answer is a {type(answer).__name__}; allowed: a string or null"
    if problem:
        return ReadItem(item.row, item.fields, problem=problem)
    if in_run and answer is not None and claims is None:
        split = split_claims(*split_answer(answer))
        answer, claims = split.answer, split.claims
    read = claims and [NO_CLAIM | dict(claim) for claim in claims]
    return ReadItem(item.row, item.fields, answer, read, pages=pages)


def _match_annotated(items: Sequence[ReadItem]) -> None:
    """Check that either all predictions have the annotated claims, or none.

    If some have them, a prediction with other claims is wrong: its labels cannot be assigned to the
    annotated claims.
    """
    with_claims = [item for item in items if item.claims is not None]
    if not any(item.claims and _fits(item.claims, item.row) for item in with_claims):
        return
    for item in with_claims:
        item.annotated = (
            _fits(item.claims, item.row) if item.claims else not annotated_claims(item.row)
        )
        if not item.annotated:
            item.claims = None
            item.problem = "its claims are not the annotated claims of the question's answer"


def _fits(claims: Claims, row: Row) -> bool:
    judged = annotated_claims(row)
    if len(judged) != len(claims) or not is_judged(judged):
        return False
    return all(
        claim["claim"] is None or claim["claim"].strip() == own["claim_string"].strip()
        for claim, own in zip(claims, judged, strict=True)
    )


def _with_references(items: Sequence[ReadItem]) -> list[ReadItem]:
    return [item for item in items if item.row["reference"] is not None]


def _score_rouge(items: Sequence[ReadItem]) -> None:
    scored = _with_references(items)
    result = lfqa_rouge(
        [item.row["reference"] for item in scored], [item.answer for item in scored]
    )
    for item, scores in zip(scored, result.per_question, strict=True):
        item.scores |= scores


def _score_faithfulness(items: Sequence[ReadItem]) -> None:
    scored = _with_references(items)
    answers = [item.answer for item in scored]
    references = [item.row["reference"] for item in scored]
    labeled = faithfulness_labels(answers, references, entailment.shared_entailment())
    for item, claims in zip(scored, labeled, strict=True):
        entailed = sum(claim["label"] == "Y" for claim in claims)
        item.scores["faithfulness"] = entailed / max(1, len(claims))


def _score_autoais(items: Sequence[ReadItem], unlabeled: str) -> None:
    if any(item.annotated for item in items):
        scored, labels = _verdicts(items, "label")
        scores = autoais([item.row for item in scored], labels, on_unlabeled=unlabeled)
        for item, (answer,) in zip(scored, scores.per_question, strict=True):
            text = item.row["answers"][0]["answer_string"]
            item.scores |= _claim_columns(text, annotated_claims(item.row)) | _autoais_columns(
                answer
            )
        return
    with_claims = [item for item in items if item.claims is not None]
    labeled = any(any(item.verdicts("label")) for item in with_claims)
    for item in with_claims:
        claims = item.claims or ()
        item.scores |= _claim_columns(item.text, claims)
        if labeled:
            item.scores |= _autoais_columns(_score_unjudged(item.text, claims, unlabeled))


def _score_unjudged(text: str, claims: Claims, unlabeled: str) -> AnswerAutoAIS:
    """Score the claims of an answer that experts have not judged: all claims with evidence count."""
    full = {"support": "Complete", "worthiness": "Yes"}
    judged = [Claim(full | {"evidence": claim["evidence"]}, claim["label"]) for claim in claims]
    return score_answer(Answer("model", abstains(text), tuple(judged)), unlabeled)


def _score_agreement(
    items: Sequence[ReadItem],
    group: str,
    name: str,
    compare: Callable[[Sequence[Row], Sequence[Any]], SystemScores],
) -> None:
    """Count the claims for which a field of them and the experts agree."""
    scored, verdicts = _verdicts(items, name)
    agreement = compare([item.row for item in scored], verdicts)
    for item, claims in zip(scored, agreement.per_question, strict=True):
        counts = agreement_counts(claims)
        item.scores |= {f"{group}.{count}": n for count, n in counts.items()}


def _verdicts(items: Sequence[ReadItem], name: str) -> tuple[list[ReadItem], list[list[Any]]]:
    """Return the items whose rows have annotated answers, and a field of their claims."""
    with_answers = [item for item in items if item.row.get("answers")]
    return with_answers, [item.verdicts(name) for item in with_answers]


def _score_fact_scores(items: Sequence[ReadItem]) -> None:
    for item in items:
        scores = [
            claim["fact_score"] for claim in item.claims or () if claim["fact_score"] is not None
        ]
        if scores:
            item.scores |= {"fact_score_sum": sum(scores), "claims_with_fact_score": len(scores)}


def _score_evidence(items: Sequence[ReadItem]) -> None:
    """Compare the URLs that were read with the URLs that a question's claims name."""
    for item in items:
        named = item.row["evidence_urls"]
        if item.pages is None or not named:
            continue
        pages = [frozenset([page]) for page in dict.fromkeys(map(page_key, item.pages))]
        score = compare_pages({i: frozenset([url]) for i, url in enumerate(named)}, pages)
        missing = [named[i] for i in score.missing]
        item.detail = {"evidence_read": list(item.pages), "evidence_missing": missing}
        item.scores |= score.columns()


def _authors_of(items: Sequence[ReadItem], name: str) -> str:
    """Return the models that made the labels, as stated in a field of the lines.

    "unstated" without this field.
    """
    models = [item.fields.get(name) for item in items]
    stated = ",".join(dict.fromkeys(str(model) for model in models if model))
    return f"stated:{stated}" if stated else "unstated"


def _unlabeled(items: Sequence[ReadItem], treatment: str) -> list[str]:
    """Count the claims that have evidence, but no label."""
    claims = [
        claim for item in items if "claims_counted" in item.scores for claim in item.claims or ()
    ]
    lacking = sum(claim["label"] is None and bool(claim["evidence"]) for claim in claims)
    counted = "they count as N" if treatment == "N" else "they are left out"
    return (
        [f"claims with evidence and without a label: {lacking} ({counted} where claims count)"]
        if lacking
        else []
    )
