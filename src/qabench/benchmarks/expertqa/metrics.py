"""Turn the inputs of ExpertQA's metrics into items, and outcomes into counts and other results.

A row of the dataset has answers of several systems. The metrics score each answer by the verdicts
on its claims, which are in the predictions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.expertqa.agreement import (
    FIELDS,
    AnswerAutoAIS,
    JudgedClaim,
    agreement_columns,
    check_unlabeled,
    judged_labels,
    read_answers,
    score_answer,
    scored_part,
)
from qabench.benchmarks.expertqa.claim_format import read_claims
from qabench.benchmarks.expertqa.claim_lines import ClaimsLine
from qabench.benchmarks.expertqa.claims import cited, sentence_splitter, split_claims
from qabench.benchmarks.expertqa.factscore import FIELDS as FACT_FIELDS
from qabench.benchmarks.expertqa.factscore import THRESHOLD, judged_scores
from qabench.benchmarks.expertqa.fields import EVIDENCE_FIELDS, answer_of, sources_of
from qabench.benchmarks.expertqa.labels import share_supported, supported_outcomes, with_labels
from qabench.benchmarks.expertqa.lfqa import LFQA_ROUGE_TYPES, LfqaScorer, bootstrapped
from qabench.benchmarks.expertqa.scorer import AUTOAIS, AUTOAIS_AGREEMENT, FACT_SCORE_AGREEMENT
from qabench.data.answers import is_list_of
from qabench.data.rows import Json, Row
from qabench.errors import InputError
from qabench.evaluation.scoring import Item, Outcome, Progress, Scorer
from qabench.models import entailment


@dataclass
class AnnotationScorer(Scorer):
    """Scores annotated answers by verdicts on their claims. ``row["answer"]`` is an ``Answer``.

    Attributes:
        group: the group of scores.
        on_unlabeled: how a claim with evidence but no label is treated.
    """

    group: str
    on_unlabeled: str = "N"

    def __post_init__(self) -> None:
        check_unlabeled(self.on_unlabeled)

    def outcome(self, item: Item) -> Outcome:
        """Return the columns of one answer."""
        answer = item.row["answer"]
        if self.group == AUTOAIS:
            score = score_answer(answer, self.on_unlabeled)
            return Outcome(score.columns(), result=score)
        if self.group == AUTOAIS_AGREEMENT:
            claims = judged_labels(answer, self.on_unlabeled)
        else:
            claims = judged_scores(answer)
        # An answer without claims has no agreement, so it gets no columns.
        if not claims:
            return Outcome({}, result=claims)
        return Outcome(agreement_columns(self.group, claims), result=claims)

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the signature fields that describe labels or fact scores."""
        if group == FACT_SCORE_AGREEMENT:
            return {"threshold": THRESHOLD, "fact_scores": "given"}
        return {"unlabeled": self.on_unlabeled, "labels": "given"}


def annotation_scorer(groups: Sequence[str], **options: Any) -> AnnotationScorer:
    """Return the scorer for a metric's group of scores."""
    (group,) = groups
    return AnnotationScorer(group, **options)


def labeled_answers(references: Sequence[Any], predictions: Sequence[Any]) -> list[Item]:
    """Return each answer of the references with the labels of its claims, as an item."""
    return _answers(references, predictions, "autoais_label", FIELDS)


def fact_scored_answers(references: Sequence[Any], predictions: Sequence[Any]) -> list[Item]:
    """Return each answer of the references with the fact scores of its claims, as an item."""
    return _answers(references, predictions, "fact_score", FACT_FIELDS)


def _answers(
    references: Sequence[Any], predictions: Sequence[Any], verdict: str, fields: Sequence[str]
) -> list[Item]:
    items = []
    for position, answers in enumerate(read_answers(references, predictions, verdict, fields)):
        for answer in answers:
            row = {"answer": answer, "system": answer.system, "position": position}
            items.append(Item(row, {}))
    return items


def labeled_part(references: Sequence[Any], predictions: Sequence[Any]) -> list[Any]:
    """Return the part of the references that scores from labels depend on, for the digest."""
    return scored_part(references, FIELDS)


def fact_scored_part(references: Sequence[Any], predictions: Sequence[Any]) -> list[Any]:
    """Return the part of the references that agreement of fact scores depends on, for the digest."""
    return scored_part(references, FACT_FIELDS)


def agreement_keys(group: str, positive: str) -> dict[str, str]:
    """Map the keys of a metric's result to the names of the agreement scores of both classes."""
    keys = {"accuracy": f"{group}.accuracy"}
    for label in (positive, f"not_{positive}"):
        for measure in ("precision", "recall", "f1"):
            keys[f"{label}.{measure}"] = f"{group}.{label}.{measure}"
    return keys


def autoais_counts(outcomes: Sequence[Outcome]) -> Json:
    """Return the numbers of answers and of claims."""
    counts = {
        "answers": len(outcomes),
        "abstaining_answers": 0,
        "claims": 0,
        "claims_without_evidence": 0,
        "counted_claims": 0,
        "unlabeled": 0,
    }
    for outcome in outcomes:
        score: AnswerAutoAIS = outcome.result
        counts["abstaining_answers"] += score.abstains
        counts["claims"] += score.claims
        counts["claims_without_evidence"] += score.claims_without_evidence
        counts["counted_claims"] += len(score.values)
        counts["unlabeled"] += score.unlabeled
    return counts


def autoais_of_answer(item: Item, outcome: Outcome) -> list[Json]:
    """Return the score of an answer."""
    score: AnswerAutoAIS = outcome.result
    return [score.as_dict()]


def agreement_counts(outcomes: Sequence[Outcome]) -> Json:
    """Count claims by the label's verdict and the expert's verdict, and the claims that are skipped."""
    claims = _claims(outcomes)
    counts = agreement_columns("", claims)
    # ``agreement_columns`` returns the four counts in this order.
    tp, tn, fp, fn = counts.values()
    return _counted(claims, "complete", tp, tn, fp, fn) | {
        "tp": tp,
        "tn": tn,
        "fp": fp,
        "fn": fn,
        "unlabeled": sum(claim.unlabeled for claim in claims),
    }


def fact_score_counts(outcomes: Sequence[Outcome]) -> Json:
    """Count the claims in each class according to the experts, and the claims that are skipped."""
    claims = _claims(outcomes)
    return _counted(claims, "correct", *agreement_columns("", claims).values())


def _claims(outcomes: Sequence[Outcome]) -> list[JudgedClaim]:
    claims: list[JudgedClaim] = []
    for outcome in outcomes:
        claims += outcome.result
    return claims


def _counted(
    claims: Sequence[JudgedClaim], positive: str, tp: int, tn: int, fp: int, fn: int
) -> Json:
    skipped: Counter[str] = Counter()
    for claim in claims:
        if claim.skipped is not None:
            skipped[claim.skipped] += 1
    return {
        "claims": tp + tn + fp + fn,
        "skipped": dict(skipped),
        f"{positive}.support": tp + fn,
        f"not_{positive}.support": tn + fp,
    }


def claims_of_answer(item: Item, outcome: Outcome) -> list[Json]:
    """Return the model's and the expert's verdict on each claim of an answer."""
    return [claim.as_dict() for claim in outcome.result]


@dataclass
class OwnClaimsScorer(Scorer):
    """Scores labeled claims that no expert has judged, so that all claims count.

    An item's row has the claims and, in ``labels``, the name of the model that labeled them, or
    "given".
    """

    def score(self, items: Sequence[Item], progress: Progress | None = None) -> list[Outcome]:
        """Return the columns of each answer."""
        return supported_outcomes([dict(item.row) for item in items])

    def metric_fields(self, group: str, items: Sequence[Item]) -> Mapping[str, object]:
        """Return the signature fields for counted claims, sentence splitter, and author of labels."""
        return {
            "unlabeled": "N",
            "counted": "all claims",
            "sentences": sentence_splitter()[0],
            "labels": items[0].row["labels"],
        }


def own_claims_scorer(groups: Sequence[str]) -> OwnClaimsScorer:
    """Return the scorer of claims that no expert has judged."""
    return OwnClaimsScorer()


def own_answers(references: Sequence[Any], predictions: Sequence[Any]) -> list[Item]:
    """Return answers of any system as items. Unless all claims have labels, a model labels them.

    Raises:
        InputError: a prediction has another format.
        MissingExtra: a package that the model needs is not installed.
        QabenchError: the model cannot be loaded.
    """
    lines = lines_with_claims(predictions)
    labels_in_lines = []
    for line in lines:
        for claim in line["claims"]:
            labels_in_lines.append(claim.get("label"))
    # If some labels are missing, the model labels all claims, so that one judge has labeled them.
    if labels_in_lines and None not in labels_in_lines:
        labels = "given"
    else:
        model = entailment.load_entailment()
        lines, labels = with_labels(lines, model), model.name
    items = []
    for position, line in enumerate(lines):
        row = {"claims": line["claims"], "labels": labels, "position": position}
        items.append(Item(row, {}))
    return items


def lines_with_claims(rows: Sequence[Any]) -> list[ClaimsLine]:
    """Return rows {"answer" or "claims", "evidence"} of any system as lines of a file of claims.

    Claims are strings, or {"claim", "evidence", "label"} if they have individual evidence and
    labels. An answer is split into claims. If its citation marks refer to the evidence, each claim
    gets the pieces that it cites. Otherwise, each claim gets all evidence of the row. The module
    ``fields`` lists other names for these fields.

    Raises:
        InputError: a row has another format.
    """
    lines: list[ClaimsLine] = []
    for number, row in enumerate(rows):
        lines.append({"claims": _claims_of_row(row, f"predictions[{number}]")})
    return lines


def _claims_of_row(row: Any, place: str) -> list[Json]:
    """Return the claims of a row. Errors name ``place``, the position of the row."""
    allowed = (
        "allowed: an object with answer (a string) or claims (a list), and evidence (a list of "
        "strings)"
    )
    if not isinstance(row, Mapping):
        raise InputError(f"{place} is {row!r:.80}; {allowed}")
    answer: Any = answer_of(row)[0]
    claims: Any = row.get("claims")
    if not (is_list_of(claims, object) or isinstance(answer, str)):
        raise InputError(f"{place} is {row!r:.80}; {allowed}")
    try:
        evidence = sources_of(row).texts
    except InputError as error:
        raise InputError(f"{place} is {row!r:.80}; {allowed} ({error})") from None
    try:
        if not is_list_of(claims, object):
            claims = _split(answer, evidence)
        return read_claims(_with_evidence(claims, evidence))
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


def _split(answer: str, evidence: list[str]) -> Sequence[Any]:
    """Return the claims of an answer: objects if its marks cite the evidence, otherwise strings."""
    claims = split_claims(answer, evidence).claims
    if cited(answer, evidence):
        return claims
    # Without marks, it is unknown which evidence belongs to which claim.
    return [claim["claim"] for claim in claims]


def _with_evidence(claims: Sequence[Any], evidence: list[str]) -> list[Json]:
    """Return claims as objects. A claim without its own evidence gets the evidence of the row."""
    with_evidence = []
    for claim in claims:
        if not isinstance(claim, dict):
            with_evidence.append({"evidence": evidence, "claim": claim})
        elif any(name in claim for name in EVIDENCE_FIELDS):
            with_evidence.append(claim)
        else:
            with_evidence.append({"evidence": evidence, **claim})
    return with_evidence


def own_part(references: Sequence[Any], predictions: list[Any]) -> list[Any]:
    """Return what the signature digests: the predictions, because there are no references."""
    return predictions


def own_totals(scorer: Scorer, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Json:
    """Return macro and micro AutoAIS with intervals, and counts. See ``share_supported``."""
    return share_supported(outcomes)


def own_claims(item: Item, outcome: Outcome) -> list[Json]:
    """Return the labeled claims of an answer."""
    claims: list[Json] = item.row["claims"]
    return claims


def lfqa_scorer(groups: Sequence[str], **options: Any) -> LfqaScorer:
    """Return the scorer for ROUGE."""
    return LfqaScorer(**options)


def lfqa_row(answer: Any) -> Row:
    """Return a reference answer as the row that the scorer reads."""
    return {"reference": answer}


def rouge_of_question(item: Item, outcome: Outcome) -> Json:
    """Return the ROUGE F-measures of a question."""
    return dict(outcome.scores)


def lfqa_totals(scorer: LfqaScorer, items: Sequence[Item], outcomes: Sequence[Outcome]) -> Json:
    """Return the official scores for the scorer's seed, the plain means, and the intervals."""
    columns = {}
    for kind in LFQA_ROUGE_TYPES:
        columns[kind] = [outcome.scores[kind] for outcome in outcomes]
    bounds = bootstrapped(columns, scorer.seed)
    # As in evaluate's "rouge", the score with the type's name as key is the median of bootstrap
    # samples. The plain mean has the key "mean.TYPE".
    totals: Json = {kind: bounds[kind].median for kind in columns}
    for kind, values in columns.items():
        totals[f"mean.{kind}"] = sum(values) / len(values)
    for kind in columns:
        totals[f"interval.{kind}"] = [bounds[kind].low, bounds[kind].high]
    totals["unanswered"] = sum(item.fields is None for item in items)
    return totals
