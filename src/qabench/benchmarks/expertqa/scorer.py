"""ExpertQA's scorer: ROUGE, AutoAIS, agreement with experts, fact scores.

A prediction has ``answer`` (ROUGE against the reference answer), ``claims``, or both.
A claim is ``{"claim": ..., "evidence": [...], "label": "Y" or "N", "fact_score": 0.5}``. Label and
fact_score are optional.
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
  The same for fact_score_readable.
- citation_recall, citation_precision, responds, facts_per_answer: see ``qabench.benchmarks.expertqa.citations``.
- rouge1, rouge2, rougeL, rougeLsum: F-measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qabench.benchmarks.expertqa.agreement import (
    Answer,
    Claim,
    JudgedClaim,
    abstains,
    agreement_counts,
    judged_labels,
    score_answer,
)
from qabench.benchmarks.expertqa.citations import EVIDENCE_LABELS, citation_columns, fact_columns
from qabench.benchmarks.expertqa.claims import read_claims, sentence_splitter, split_claims
from qabench.benchmarks.expertqa.factscore import THRESHOLD, judged_scores
from qabench.benchmarks.expertqa.lfqa import BOOTSTRAP_SAMPLES, lfqa_rouge
from qabench.benchmarks.expertqa.own import OWN
from qabench.benchmarks.expertqa.prompts import split_answer
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged
from qabench.data.predictions import some
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation import ANSWERED, EMPTY, MISSING
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import signature
from qabench.text.rouge import backend_version, wordless_problems

ROUGE, AUTOAIS, FACT_SCORE = "rouge", "autoais", "fact_score"
AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT = "autoais_agreement", "fact_score_agreement"
NO_CLAIM: Json = {"evidence": None, "label": None, "fact_score": None, "fact_score_readable": None}
# Without experts' judgments, all claims with evidence count.
UNJUDGED = {"support": "Complete", "worthiness": "Yes"}
# Of a claim of one's own: a judge has labeled it, perhaps by evidence that the file does not have.
UNSTATED = ["unstated"]
OWN_NOTE = "config own: no expert has judged these claims, so all of them count, and the scores are not official"
SIGNED_AS = {ROUGE: "lfqa", FACT_SCORE_AGREEMENT: "factscore_agreement"}
_ANNOTATED = (
    "predictions need the annotated claims of the config, in their order, with label or fact_score"
)
_LABELED = 'predictions need "claims", each with "label" (AutoAIS) or "fact_score" (factuality)'
NEEDS = {
    ROUGE: 'predictions need "answer" and the config needs reference answers (lfqa_random, lfqa_domain, and configs '
    'with annotated answers), or predictions need "claims"',
    AUTOAIS: _LABELED,
    AUTOAIS_AGREEMENT: _ANNOTATED,
    FACT_SCORE_AGREEMENT: _ANNOTATED,
    FACT_SCORE: _LABELED,
}


@dataclass
class ReadItem:
    """An item, its prediction as far as it could be read, and the columns computed so far."""

    row: Row
    fields: Mapping[str, Any]
    answer: str | None = None
    claims: list[Json] | None = None
    annotated: bool = False
    problem: str | None = None
    scores: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the text that decides whether an answer abstains: the answer, or its claims without an answer."""
        return self.answer or " ".join(claim["claim"] for claim in self.claims or ())

    def outcome(self) -> Outcome:
        """Return the result for the item."""
        answer = self.answer
        if answer is None and self.annotated and self.row.get("answers"):
            answer = self.row["answers"][0]["answer_string"]
        elif answer is None and self.claims is not None:
            answer = self.text
        claims = [
            {"text": claim["claim"], "evidence": claim["evidence"] or [], "label": claim["label"]}
            for claim in self.claims or ()
        ]
        nothing = "the prediction has neither an answer nor claims" if answer is None else None
        return Outcome(
            scores=self.scores,
            detail={"claims": claims, "passages": []},
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
            for item, answer in _answers(read, "label"):
                _count(item, AUTOAIS_AGREEMENT, judged_labels(answer, self.unlabeled))
        if FACT_SCORE_AGREEMENT in groups:
            for item, answer in _answers(read, "fact_score"):
                _count(item, FACT_SCORE_AGREEMENT, judged_scores(answer))
        if ROUGE in groups:
            _score_rouge(read)
        if FACT_SCORE in groups:
            _score_facts(read)
        self.problems = _unlabeled(read, self.unlabeled)
        if ROUGE in groups:
            self.problems += _wordless(read)
        if any(OWN in item.row for item in read):
            self.notes = [OWN_NOTE]
        self.problems += _without_partial_precision(read)
        return [item.outcome() for item in read]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures of the groups that can be computed."""
        read = self._read(items)
        fields = _ordered(about)
        labels = "none" if self.in_run else _authors_of(read, "labels_by")
        facts = _authors_of(read, "fact_scores_by")
        counted = "annotated" if any(item.annotated for item in read) else "all with evidence"
        if any(OWN in item.row for item in read):
            counted = "all"
        fields_of_group: dict[str, dict[str, object]] = {
            AUTOAIS: {"unlabeled": self.unlabeled, "counted": counted, "labels": labels},
            AUTOAIS_AGREEMENT: {"unlabeled": self.unlabeled, "labels": labels},
            FACT_SCORE_AGREEMENT: {"threshold": THRESHOLD, "fact_scores": facts},
            FACT_SCORE: {"fact_scores": facts},
            ROUGE: {
                "rouge": backend_version(),
                "stemmer": "none",
                "bootstrap": BOOTSTRAP_SAMPLES,
                "bootstrap_seed": 0,
            },
        }
        return {
            group: signature(
                f"expertqa_{SIGNED_AS.get(group, group)}", **fields, **fields_of_group[group]
            )
            for group in self._computable(read)
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
        computable = {
            AUTOAIS: labeled if annotated else self.in_run or bool(claims),
            AUTOAIS_AGREEMENT: annotated and labeled,
            FACT_SCORE_AGREEMENT: annotated and fact_scored,
            ROUGE: answered and any(item.row["reference"] is not None for item in read),
            FACT_SCORE: fact_scored,
        }
        return [group for group in computable if computable[group] and group in self.groups]


def _ordered(about: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of signatures in the order of earlier runs: the model before the generation options."""
    fields = {name: value for name, value in about.items() if name != "benchmark"}
    if "model" not in fields:
        return fields
    fields.setdefault("sentences", sentence_splitter()[0])
    names = [name for name in fields if name != "model"]
    names.insert(names.index("sentences") + 1, "model")
    return {name: fields[name] for name in names}


def _read_item(item: Item, in_run: bool) -> ReadItem:
    if item.fields is None:
        return ReadItem(item.row, {})
    answer, claims = item.fields.get("answer"), item.fields.get("claims")
    problem = None
    if claims is not None:
        try:
            claims = read_claims(claims)
        except InputError as error:
            problem = str(error)
    if not isinstance(answer, str | None):
        problem = f"the answer is a {type(answer).__name__}; allowed: a string or null"
    if problem:
        return ReadItem(item.row, item.fields, problem=problem)
    if in_run and answer is not None and claims is None:
        split = split_claims(*split_answer(answer))
        answer, claims = split.answer, split.claims
    read = claims and [NO_CLAIM | claim for claim in claims]
    return ReadItem(item.row, item.fields, answer, read)


def _match_annotated(items: Sequence[ReadItem]) -> None:
    """Check that either all predictions have the annotated claims, or none.

    If some have them, a prediction with other claims is wrong: its labels cannot be assigned to the
    annotated claims.
    """
    with_claims = [item for item in items if item.claims is not None]
    for item in with_claims:
        item.annotated = bool(item.claims) and _fits(item.claims or (), item.row)
    if not any(item.annotated for item in with_claims):
        return
    for item in with_claims:
        if not item.claims:
            item.annotated = not annotated_claims(item.row)
        if not item.annotated:
            item.claims = None
            item.problem = "its claims are not the annotated claims of the question's answer"


def _fits(claims: Sequence[Row], row: Row) -> bool:
    judged = annotated_claims(row)
    texts = [claim["claim_string"].strip() for claim in judged]
    return is_judged(judged) and texts == [claim["claim"].strip() for claim in claims]


def _answers(items: Sequence[ReadItem], name: str) -> list[tuple[ReadItem, Answer]]:
    """Return the answers whose claims have a field of the predictions' claims as verdicts.

    If predictions have the annotated claims, all annotated questions have an answer, also without
    a prediction.
    """
    annotated = any(item.annotated for item in items)
    answers = []
    for item in items:
        if annotated and item.row.get("answers"):
            answer = item.row["answers"][0]
            system, text, judged = answer["system"], answer["answer_string"], answer["claims"] or ()
        elif annotated or item.claims is None:
            continue
        else:
            system, text = "model", item.text
            judged = [UNJUDGED | claim for claim in item.claims]
            if OWN in item.row:
                judged = [claim | {"evidence": claim["evidence"] or UNSTATED} for claim in judged]
        verdicts = [claim[name] for claim in item.claims] if item.claims else [None] * len(judged)
        claims = tuple(map(Claim, judged, verdicts))
        answers.append((item, Answer(system, abstains(text), claims)))
    return answers


def _score_autoais(items: Sequence[ReadItem], unlabeled: str) -> None:
    answers = _answers(items, "label")
    labeled = any(claim.verdict for _, answer in answers for claim in answer.claims)
    for item, answer in answers:
        score = score_answer(answer, unlabeled)
        with_evidence = score.claims - score.claims_without_evidence
        if OWN in item.row:
            with_evidence = sum(bool(claim["evidence"]) for claim in item.claims or ())
        item.scores |= {
            "claims": score.claims,
            "claims_with_evidence": with_evidence,
            "abstains": int(answer.abstains),
        }
        if not labeled:
            continue
        columns: dict[str, float] = {
            "claims_counted": len(score.values),
            "claims_supported": sum(score.values),
        }
        if score.mean is not None:
            columns["autoais_macro"] = score.mean
        item.scores |= columns | citation_columns(item.claims or (), unlabeled)
        if not answer.abstains:
            item.scores |= {f"{name}_without_abstentions": n for name, n in columns.items()}


def _without_partial_precision(items: Sequence[ReadItem]) -> list[str]:
    """Leave out citation precision unless all answers with citation recall have it.

    The answers that need no labels of single pieces of evidence are not a sample of all answers. Return
    why it is left out, if some claims have these labels.
    """
    lacking = [
        item
        for item in items
        if "citation_recall" in item.scores and "citation_precision" not in item.scores
    ]
    if not lacking:
        return []
    for item in items:
        item.scores.pop("citation_precision", None)
    if not any(claim.get(EVIDENCE_LABELS) for item in items for claim in item.claims or ()):
        return []
    return [
        "no citation_precision: answers with an entailed claim whose pieces of evidence have no labels: "
        f"{len(lacking)} ({some(item.row['id'] for item in lacking)}); "
        "`qabench expertqa attribute --citations` labels them"
    ]


def _count(item: ReadItem, group: str, claims: Sequence[JudgedClaim]) -> None:
    """Count the claims for which the model and the experts agree."""
    item.scores |= {f"{group}.{count}": n for count, n in agreement_counts(claims).items()}


def _score_rouge(items: Sequence[ReadItem]) -> None:
    scored = [item for item in items if item.row["reference"] is not None]
    references = [item.row["reference"] for item in scored]
    result = lfqa_rouge(references, [item.answer for item in scored])
    for item, scores in zip(scored, result["per_question"], strict=True):
        item.scores |= scores


def _wordless(items: Sequence[ReadItem]) -> list[str]:
    scored = [item for item in items if item.row["reference"] is not None]
    ids = [str(item.row["id"]) for item in scored]
    answers = [item.answer for item in scored]
    return wordless_problems(ids, answers, [item.row["reference"] for item in scored])


def _score_facts(items: Sequence[ReadItem]) -> None:
    all_claims = [claim for item in items for claim in item.claims or ()]
    has_atomic_claims = any(claim.get("atomic_claims") for claim in all_claims)
    for item in items:
        for name in ("fact_score", "fact_score_readable"):
            all_scores = [claim[name] for claim in item.claims or ()]
            scores = [score for score in all_scores if score is not None]
            if scores:
                item.scores |= {f"{name}_sum": sum(scores), f"claims_with_{name}": len(scores)}
        if has_atomic_claims and item.claims is not None:
            item.scores |= fact_columns(item.claims, abstains(item.text))


def _authors_of(items: Sequence[ReadItem], name: str) -> str:
    """Return the models that made the labels, as stated in a field of the lines.

    "unstated" without this field.
    """
    models = [item.fields.get(name) for item in items]
    stated = ",".join(dict.fromkeys(str(model) for model in models if model))
    return f"stated:{stated}" if stated else "unstated"


def _unlabeled(items: Sequence[ReadItem], treatment: str) -> list[str]:
    """Count the claims that have evidence, but no label."""
    claims = [claim for item in items if "claims_counted" in item.scores for claim in item.claims or ()]
    lacking = sum(claim["label"] is None and bool(claim["evidence"]) for claim in claims)
    counted = "they count as N" if treatment == "N" else "they are left out"
    problems = []
    if lacking:
        problems.append(
            f"claims with evidence and without a label: {lacking} ({counted} where claims count)"
        )
    # One's own judge may have seen evidence that the file does not have.
    own_claims = [claim for item in items if OWN in item.row for claim in item.claims or ()]
    labels = [claim["label"] for claim in own_claims if not claim["evidence"]]
    if claims and any(labels) and None in labels:
        problems.append(f"claims without evidence and without a label: {labels.count(None)} ({counted})")
    return problems
