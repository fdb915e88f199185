"""ExpertQA's scorer: ROUGE, AutoAIS, agreement with experts, fact scores.

A prediction has ``answer`` (for ROUGE against the reference answer), ``claims``, or both. A claim is
``{"claim": ..., "evidence": [...], "label": "Y" or "N", "fact_score": 0.5}``, in which label and
fact_score are optional. Claims are either the annotated claims of the config, or the claims of
another system's answer. Annotated claims may be in any order, unless a text is repeated. They are
scored as in the authors' scripts, together with the agreement between labels and experts. No expert
has judged other claims, so all of them that have evidence count.

Columns of ``Outcome.scores``, from which the scores are computed:
- claims, claims_with_evidence: counts over an answer's claims.
- abstains: 1 or 0.
- claims_counted, claims_supported: the number of claims that AutoAIS counts, and the number of
  counted claims with the label Y.
- autoais_macro: claims_supported / claims_counted. Absent if no claim counts.
- claims_counted, claims_supported and autoais_macro with the suffix _without_abstentions: the same
  values. Absent for an answer that abstains.
- autoais_agreement.tp, .tn, .fp, .fn: counts of claims by label (Y is positive) and by the experts'
  support (Complete is positive). fact_score_agreement has such columns, too.
- fact_score_sum, claims_with_fact_score: the sum of the claims' fact scores, and the number of
  claims that have one. fact_score_readable has such columns, too.
- citation_recall, citation_precision, responds, facts_per_answer: see
  ``qabench.benchmarks.expertqa.citations``.
- rouge1, rouge2, rougeL, rougeLsum: F-measures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qabench.benchmarks.expertqa.agreement import (
    Answer,
    Claim,
    abstains,
    agreement_columns,
    claim_text,
    judged_labels,
    score_answer,
)
from qabench.benchmarks.expertqa.citations import EVIDENCE_LABELS, citation_columns, fact_columns
from qabench.benchmarks.expertqa.claim_format import read_claims, without_unreadable_labels
from qabench.benchmarks.expertqa.claims import sentence_splitter, split_claims
from qabench.benchmarks.expertqa.factscore import THRESHOLD, judged_scores
from qabench.benchmarks.expertqa.lfqa import BOOTSTRAP_SAMPLES, question_scores
from qabench.benchmarks.expertqa.own import OWN
from qabench.benchmarks.expertqa.prompts import split_answer
from qabench.benchmarks.expertqa.questions import annotated_claims, is_judged, reference_of
from qabench.data.rows import Json, Row
from qabench.errors import InputError, some
from qabench.evaluation import ANSWERED, EMPTY, MISSING
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.evaluation.signature import signature
from qabench.text.rouge import backend_version, wordless_problems

ROUGE, AUTOAIS, FACT_SCORE = "rouge", "autoais", "fact_score"
AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT = "autoais_agreement", "fact_score_agreement"
NO_CLAIM: Json = {"evidence": None, "label": None, "fact_score": None, "fact_score_readable": None}
# These judgments, given to claims that no expert has judged, make all claims with evidence count.
UNJUDGED = {"support": "Complete", "worthiness": "Yes"}
# A stand-in for the missing evidence of a user's own claim. Only claims with evidence count, but
# the user's judge may have seen evidence that is not in the file.
UNSTATED_EVIDENCE = ["unstated"]
OWN_NOTE = "config own: no expert has judged these claims, so all of them count, and the scores are not official"
# This field marks lines that `qabench judge` has written. In such lines, a claim may have no verdict
# because the call to the judge failed.
RECORDED_BY, JUDGE = "recorded_by", "qabench judge"
SIGNED_AS = {ROUGE: "lfqa", FACT_SCORE_AGREEMENT: "factscore_agreement"}
_ANNOTATED = (
    "predictions need the annotated claims of the config, in their order, with label or fact_score"
)
_LABELED = 'predictions need "claims", each with "label" (AutoAIS) or "fact_score" (factuality)'
NEEDS = {
    ROUGE: 'predictions need "answer", and the config needs reference answers (lfqa_random, lfqa_domain, and configs '
    'with annotated answers have them); or predictions need "claims"',
    AUTOAIS: _LABELED,
    AUTOAIS_AGREEMENT: _ANNOTATED,
    FACT_SCORE_AGREEMENT: _ANNOTATED,
    FACT_SCORE: _LABELED,
}


@dataclass
class ReadItem:
    """An item, what could be read of its prediction, and the columns computed so far.

    ``problem`` says why the prediction cannot be used. ``remark`` says what is wrong with a part of
    a usable prediction.
    """

    row: Row
    fields: Mapping[str, Any]
    answer: str | None = None
    claims: list[Json] | None = None
    annotated: bool = False
    problem: str | None = None
    remark: str | None = None
    scores: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the answer or, if there is none, its claims as one text."""
        if self.answer:
            return self.answer
        return " ".join(claim["claim"] for claim in self.claims or ())

    def outcome(self) -> Outcome:
        """Return the result for the item."""
        answer = self.answer
        # A file of claims may have no answers. In that case, show the annotated answer if the claims
        # are from it, and otherwise the claims as one text.
        if answer is None and self.annotated and self.row.get("answers"):
            answer = self.row["answers"][0]["answer_string"]
        elif answer is None and self.claims is not None:
            answer = self.text
        problem = self.problem or self.remark
        if answer is None:
            status = MISSING
            problem = problem or "the prediction has neither an answer nor claims"
        elif answer.strip():
            status = ANSWERED
        else:
            status = EMPTY
            problem = problem or "the answer is empty"
        claims = [self._shown(claim) for claim in self.claims or ()]
        return Outcome(
            scores=self.scores,
            detail={"claims": claims, "passages": []},
            problem=problem,
            status=status,
            answer=answer,
            texts=(),
            usable=self.problem is None,
        )

    def _shown(self, claim: Json) -> Json:
        """Return a claim in the form that reports and comparisons of judges read."""
        evidence = claim["evidence"] or []
        shown = {"text": claim["claim"], "evidence": evidence, "label": claim["label"]}
        if claim["fact_score"] is not None:
            shown["fact_score"] = claim["fact_score"]
        # Comparisons of judges with people leave out claims whose call failed, and count replies
        # that state no verdict, so both are marked.
        has_verdict = claim["label"] is not None or claim["fact_score"] is not None
        is_record = self.fields.get(RECORDED_BY) == JUDGE
        if claim.get("call_failed") and is_record and not has_verdict:
            shown["call_failed"] = True
        if claim.get("decisions") and claim["fact_score_readable"] is None:
            shown["fact_score_is_readable"] = False
        if claim.get("label_is_readable") is False:
            shown["label_is_readable"] = False
        return shown


@dataclass
class ExpertqaScorer(Scorer):
    """Scores answers and claims.

    See the module for predictions and columns. A prediction with a field of another type is not
    usable, and counts as missing.

    Attributes:
        groups: the groups of scores that are computed if the predictions and the config allow it.
        unlabeled: how a claim that counts but has no label is treated: "N", as in the authors'
            script, or "exclude".
        in_run: whether answers are scored during a run. If so, an answer without claims, such as an
            agent's, is split into claims, and an unanswered question has a ROUGE of 0 even if no
            question is answered.
    """

    groups: Sequence[str]
    unlabeled: str = "N"
    in_run: bool = False
    needs = NEEDS

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the columns of each item. ``progress`` is not used."""
        read = self._read(items)
        groups = self._computable(read)
        # Each group adds its columns to the items.
        if AUTOAIS in groups:
            _score_autoais(read, self.unlabeled)
        if AUTOAIS_AGREEMENT in groups:
            for item, answer in _answers(read, "label"):
                claims = judged_labels(answer, self.unlabeled)
                item.scores |= agreement_columns(AUTOAIS_AGREEMENT, claims)
        if FACT_SCORE_AGREEMENT in groups:
            for item, answer in _answers(read, "fact_score"):
                claims = judged_scores(answer)
                item.scores |= agreement_columns(FACT_SCORE_AGREEMENT, claims)
        wordless: list[str] = []
        if ROUGE in groups:
            wordless = _score_rouge(read)
        if FACT_SCORE in groups:
            _score_facts(read)
        self.problems = [*_unlabeled(read, self.unlabeled), *wordless]
        if any(OWN in item.row for item in read):
            self.notes = [OWN_NOTE]
        # Citation precision is removed unless all answers have it.
        self.problems += _without_partial_precision(read)
        return [item.outcome() for item in read]

    def signatures(self, items: Sequence[Item], about: Mapping[str, object]) -> dict[str, str]:
        """Return the signatures of the groups that can be computed."""
        read = self._read(items)
        fields = _ordered(about)
        # The claims of a run have no labels yet. `qabench expertqa attribute` labels exported
        # claims.
        labels = "none" if self.in_run else _authors_of(read, "labels_by")
        facts = _authors_of(read, "fact_scores_by")
        counted = "all with evidence"
        if any(OWN in item.row for item in read):
            counted = "all"
        elif any(item.annotated for item in read):
            counted = "annotated"
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
        signatures = {}
        for group in self._computable(read):
            name = f"expertqa_{SIGNED_AS.get(group, group)}"
            signatures[group] = signature(name, **fields, **fields_of_group[group])
        return signatures

    def _read(self, items: Sequence[Item]) -> list[ReadItem]:
        read = [_read_item(item, self.in_run) for item in items]
        _match_annotated(read)
        return read

    def _computable(self, read: Sequence[ReadItem]) -> list[str]:
        """Return the groups of scores that the predictions and the config allow."""
        claims = _claims(read)
        annotated = any(item.annotated for item in read)
        labeled = any(claim["label"] for claim in claims)
        fact_scored = any(claim["fact_score"] is not None for claim in claims)
        answered = self.in_run or any(item.answer is not None for item in read)
        referenced = any(reference_of(item.row) is not None for item in read)
        # Without labels, the group AutoAIS still has the share of claims with evidence. For
        # annotated claims, this share depends only on the dataset, not on the predictions.
        autoais = labeled
        if not annotated:
            autoais = self.in_run or bool(claims)
        computable = {
            AUTOAIS: autoais,
            AUTOAIS_AGREEMENT: annotated and labeled,
            FACT_SCORE_AGREEMENT: annotated and fact_scored,
            ROUGE: answered and referenced,
            FACT_SCORE: fact_scored,
        }
        return [group for group in computable if computable[group] and group in self.groups]


def _claims(items: Iterable[ReadItem]) -> list[Json]:
    claims: list[Json] = []
    for item in items:
        claims += item.claims or ()
    return claims


def _ordered(about: Mapping[str, object]) -> dict[str, object]:
    """Return the signature fields in a fixed order: the model before the generation options."""
    fields = dict(about)
    fields.pop("benchmark", None)
    if "model" not in fields:
        return fields
    model = fields.pop("model")
    fields.setdefault("sentences", sentence_splitter()[0])
    # Signatures of earlier versions have the model after the sentence splitter. The order must
    # stay, so that equal runs have equal signatures.
    ordered = {}
    for name, value in fields.items():
        ordered[name] = value
        if name == "sentences":
            ordered["model"] = model
    return ordered


def _read_item(item: Item, in_run: bool) -> ReadItem:
    if item.fields is None:
        return ReadItem(item.row, {})
    answer, claims = item.fields.get("answer"), item.fields.get("claims")
    # An unreadable label only causes a remark. Unreadable claims make the prediction unusable.
    problem = remark = None
    if claims is not None:
        claims, remark = without_unreadable_labels(claims)
        try:
            claims = read_claims(claims)
        except InputError as error:
            problem = str(error)
    if not isinstance(answer, str | None):
        problem = f"the answer is a {type(answer).__name__}; allowed: a string or null"
    if problem:
        return ReadItem(item.row, item.fields, problem=problem)
    # AutoAIS needs claims with evidence, so the text that an agent returns is split.
    if in_run and answer is not None and claims is None:
        split = split_claims(*split_answer(answer))
        answer, claims = split.answer, split.claims
    # Missing claims (None) and an empty list of claims are different predictions.
    complete_claims = claims
    if claims:
        complete_claims = [NO_CLAIM | claim for claim in claims]
    return ReadItem(item.row, item.fields, answer, complete_claims, remark=remark)


def _match_annotated(items: Sequence[ReadItem]) -> None:
    """Find out whether the claims of predictions are the annotated ones.

    If some predictions have the annotated claims, a prediction with other claims is unusable,
    because its labels cannot be assigned to the annotated claims.
    """
    with_claims = []
    some_are_annotated = False
    for item in items:
        if item.claims is None:
            continue
        with_claims.append(item)
        item.claims = _in_annotated_order(item.claims, item.row)
        item.annotated = bool(item.claims) and _fits(item.claims, item.row)
        some_are_annotated = some_are_annotated or item.annotated
    if not some_are_annotated:
        return
    for item in with_claims:
        # An answer without claims fits a question whose annotated answer has none.
        if not item.claims:
            item.annotated = not annotated_claims(item.row)
        if not item.annotated:
            item.claims = None
            item.problem = "its claims are not the annotated claims of the question's answer"


def _in_annotated_order(claims: list[Json], row: Row) -> list[Json]:
    """Return claims in the order of the annotated claims, if both have the same texts.

    Metrics match claims in the same way. A text that is repeated could belong to any of its claims,
    so such claims must be in the annotated order already.
    """
    texts = [claim_text(claim["claim_string"]) for claim in annotated_claims(row)]
    by_text = {claim_text(claim["claim"]): claim for claim in claims}
    if len(by_text) != len(claims) or len(claims) != len(texts) or by_text.keys() != set(texts):
        return claims
    return [by_text[text] for text in texts]


def _fits(claims: Sequence[Row], row: Row) -> bool:
    judged = annotated_claims(row)
    annotated_texts = [claim_text(claim["claim_string"]) for claim in judged]
    texts = [claim_text(claim["claim"]) for claim in claims]
    return is_judged(judged) and texts == annotated_texts


def _answers(items: Sequence[ReadItem], name: str) -> list[tuple[ReadItem, Answer]]:
    """Return the answers to score. The field ``name`` of a claim in the predictions is its verdict.

    If predictions have the annotated claims, every annotated question has an answer, even without a
    prediction.
    """
    annotated = any(item.annotated for item in items)
    answers = []
    for item in items:
        if annotated and item.row.get("answers"):
            # A question without a prediction stays in the mean, as an answer without verdicts. In
            # the annotated configs, each row has the answer of exactly one system.
            answer = item.row["answers"][0]
            system, text = answer["system"], answer["answer_string"]
            judged = list(answer["claims"] or ())
        elif annotated or item.claims is None:
            continue
        else:
            system, text = "model", item.text
            judged = []
            for own_claim in item.claims:
                claim: Json = UNJUDGED | own_claim
                if OWN in item.row:
                    claim["evidence"] = claim["evidence"] or UNSTATED_EVIDENCE
                judged.append(claim)
        if item.claims:
            verdicts = [claim[name] for claim in item.claims]
        else:
            verdicts = [None] * len(judged)
        claims = tuple(map(Claim, judged, verdicts))
        answers.append((item, Answer(system, abstains(text), claims)))
    return answers


def _score_autoais(items: Sequence[ReadItem], unlabeled: str) -> None:
    answers = _answers(items, "label")
    # If no claim has a label, nothing was judged, and a mean of 0 would be misleading.
    labeled = False
    for _, answer in answers:
        for claim in answer.claims:
            labeled = labeled or bool(claim.verdict)
    for item, answer in answers:
        score = score_answer(answer, unlabeled)
        with_evidence = score.claims - score.claims_without_evidence
        if OWN in item.row:
            # ``_answers`` may have added stand-ins for missing evidence, which must not be counted.
            with_evidence = sum(bool(claim["evidence"]) for claim in item.claims or ())
        item.scores["claims"] = score.claims
        item.scores["claims_with_evidence"] = with_evidence
        item.scores["abstains"] = int(answer.abstains)
        # The counts above need no labels, but the following columns do.
        if not labeled:
            continue
        item.scores.update(score.columns())
        item.scores.update(citation_columns(item.claims or (), unlabeled))


def _without_partial_precision(items: Sequence[ReadItem]) -> list[str]:
    """Remove citation precision unless all answers with citation recall have it.

    Answers whose precision needs no labels of single pieces of evidence are not a random sample, so
    their mean would be biased. Returns the reason if some claims have such labels, else nothing.
    """
    ids = []
    for item in items:
        if "citation_recall" in item.scores and "citation_precision" not in item.scores:
            ids.append(item.row["id"])
    if not ids:
        return []
    for item in items:
        item.scores.pop("citation_precision", None)
    if not any(claim.get(EVIDENCE_LABELS) for claim in _claims(items)):
        return []
    return [
        "no citation_precision: answers with an entailed claim whose pieces of evidence have no labels: "
        f"{len(ids)} ({some(ids)}); "
        "`qabench expertqa attribute --citations` labels them"
    ]


def _score_rouge(items: Sequence[ReadItem]) -> list[str]:
    """Score the answers that have a reference. Return problems with texts that have no words."""
    scored: list[ReadItem] = []
    ids: list[str] = []
    references: list[str] = []
    answers: list[str | None] = []
    for item in items:
        reference = reference_of(item.row)
        if reference is not None:
            scored.append(item)
            ids.append(str(item.row["id"]))
            references.append(str(reference))
            answers.append(item.answer)
    for item, scores in zip(scored, question_scores(references, answers), strict=True):
        item.scores |= scores
    # ROUGE's tokenizer reads only a-z and 0-9, so a text in another script scores 0.
    return wordless_problems(ids, answers, references)


def _score_facts(items: Sequence[ReadItem]) -> None:
    has_atomic_claims = any(claim.get("atomic_claims") for claim in _claims(items))
    for item in items:
        claims = item.claims or ()
        for name in ("fact_score", "fact_score_readable"):
            # Claims without a fact score, such as those without atomic claims, are left out.
            scores = [claim[name] for claim in claims if claim[name] is not None]
            if scores:
                item.scores[f"{name}_sum"] = sum(scores)
                item.scores[f"claims_with_{name}"] = len(scores)
        if has_atomic_claims and item.claims is not None:
            item.scores |= fact_columns(item.claims, abstains(item.text))


def _authors_of(items: Sequence[ReadItem], name: str) -> str:
    """Return the models that, according to the field ``name`` of the lines, made the labels."""
    # A dict as an ordered set.
    models: dict[str, None] = {}
    for item in items:
        model = item.fields.get(name)
        if model:
            models[str(model)] = None
    if not models:
        return "unstated"
    return f"stated:{','.join(models)}"


def _unlabeled(items: Sequence[ReadItem], treatment: str) -> list[str]:
    """Return sentences about claims without a label, and how they are treated."""
    is_scored = False
    n_with_evidence = 0
    own_labels_without_evidence = []
    for item in items:
        for claim in item.claims or ():
            if "claims_counted" in item.scores:
                is_scored = True
                n_with_evidence += claim["label"] is None and bool(claim["evidence"])
            # A user's judge may have labeled such claims by evidence that is not in the file.
            if OWN in item.row and not claim["evidence"]:
                own_labels_without_evidence.append(claim["label"])
    counted = "they count as N" if treatment == "N" else "they are left out"
    problems = []
    if n_with_evidence:
        problems.append(
            f"claims with evidence and without a label: {n_with_evidence} ({counted} where claims count)"
        )
    # If no claim without evidence has a label, the judge only labels claims with evidence, so no
    # label is missing.
    n_without_evidence = own_labels_without_evidence.count(None)
    if is_scored and any(own_labels_without_evidence) and n_without_evidence:
        problems.append(
            f"claims without evidence and without a label: {n_without_evidence} ({counted})"
        )
    return problems
