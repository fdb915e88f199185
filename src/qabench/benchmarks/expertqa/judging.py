"""ExpertQA's claims as items that a model and experts judged.

There are two verdicts: whether the evidence supports the claim (labels against support), and
whether the claim is correct (fact scores against correctness). As in the authors' agreement scores,
claims that are not worth a citation have no verdict on support, and void claims have no verdict on
correctness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks.expertqa.agreement import (
    Answer,
    Claim,
    JudgedClaim,
    abstains,
    claim_text,
    judged_labels,
)
from qabench.benchmarks.expertqa.fact_requests import FactScorer
from qabench.benchmarks.expertqa.facts import DEFAULT_FIELD
from qabench.benchmarks.expertqa.factscore import judged_scores, reply_is_true, states_verdict
from qabench.benchmarks.expertqa.questions import annotated_claims, load_questions
from qabench.benchmarks.expertqa.scorer import JUDGE, RECORDED_BY
from qabench.benchmarks.judging import JudgeCall, Judging
from qabench.data.rows import Row
from qabench.errors import InputError, SourceError, unknown_name
from qabench.evaluation import Evaluation, Record
from qabench.evaluation.judged import JudgedItem, JudgedScore
from qabench.evaluation.scoring import Question
from qabench.llm.caller import Caller
from qabench.llm.exchange import Answered
from qabench.prompts.prompt import AUTO, OFFICIAL

# A verdict is one word. With the authors' limit of 2,048 tokens, models could write explanations.
MAX_TOKENS = 512
# The outcome of a claim that was not in the sample of claims that the judge was asked about.
NOT_ASKED = Answered(reason="not asked")


class ExpertQAJudging(Judging):
    """A model's verdicts on the annotated claims, next to the experts' judgments.

    The judge is asked once per claim, with the authors' prompt for verdicts, the whole claim and
    its evidence. The reply is compared with two judgments of the experts: support and correctness.
    """

    labeled = "Is each claim supported by its evidence, and is it correct? Judgments of experts."
    methods = ("claims",)

    def calls(
        self, questions: Sequence[Question], caller: Caller, method: str | None, prompt: str
    ) -> list[JudgeCall]:
        """Return one request per annotated claim."""
        chosen = method or self.methods[0]
        if chosen not in self.methods:
            raise unknown_name("a judge cannot be asked by the method", chosen, self.methods)
        if prompt not in (AUTO, OFFICIAL):
            raise InputError(f"the prompt is {prompt!r}; allowed for claims: official, auto")
        sampling = {"temperature": 0, "max_tokens": MAX_TOKENS}
        scorer = FactScorer(caller, caller.model, sampling)
        calls = []
        for question in questions:
            field = question.row.get("field") or DEFAULT_FIELD
            for position, claim in enumerate(annotated_claims(question.row)):
                evidence = "\n\n".join(claim["evidence"] or ())
                request = scorer.judge(claim["claim_string"], evidence, field)
                calls.append(JudgeCall(question.id, request, position))
        return calls

    def predictions(
        self, questions: Sequence[Question], calls: Sequence[JudgeCall], replies: Sequence[Answered]
    ) -> list[Row]:
        """Return each question's claims, with label and fact score from the judge's replies."""
        by_claim = {}
        for call, reply in zip(calls, replies, strict=True):
            by_claim[call.question_id, call.part] = reply
        rows: list[Row] = []
        for question in questions:
            claims = []
            for position, claim in enumerate(annotated_claims(question.row)):
                shown = {"claim": claim["claim_string"], "evidence": list(claim["evidence"] or ())}
                reply = by_claim.get((question.id, position), NOT_ASKED)
                if reply.text is None:
                    shown["call_failed"] = reply.reason or "no reply"
                else:
                    shown |= _verdict(claim, reply.text)
                claims.append(shown)
            if claims:
                rows.append({"id": question.id, "claims": claims, RECORDED_BY: JUDGE})
        return rows

    def scores(self, evaluation: Evaluation) -> list[JudgedScore]:
        """Return the verdicts on support and correctness, by claim."""
        split = evaluation.arguments.get("split")
        try:
            questions = load_questions(evaluation.config, split).rows
        except (InputError, SourceError):
            # The config ``own`` has no questions, because no expert has judged a user's own claims.
            questions = []
        by_id = {question.id: question for question in questions}
        judged = _judged(evaluation, by_id)
        return judged or super().scores(evaluation)


def _verdict(claim: Row, reply: str) -> Row:
    """Return the verdict in a reply as label and fact score of a claim, as files of claims have them."""
    is_true, is_readable = reply_is_true(reply), states_verdict(reply)
    decision = {
        "atom": claim["claim_string"],
        "is_supported": is_true,
        "readable": is_readable,
        "reply": reply,
    }
    score = float(is_true)
    label = "Y" if is_true else "N"
    readable_score = score if is_readable else None
    return {
        "label": label,
        "label_is_readable": is_readable,
        "fact_score": score,
        "fact_score_readable": readable_score,
        "decisions": [decision],
    }


def _judged(evaluation: Evaluation, rows: Mapping[str, Question]) -> list[JudgedScore]:
    """Return a model's verdicts on the annotated claims, next to the experts' judgments.

    Args:
        evaluation: an evaluation of predictions with the annotated claims.
        rows: the questions of the config by id.
    """
    # A claim can be in both lists, because the two verdicts are independent.
    supported: list[JudgedItem] = []
    correct: list[JudgedItem] = []
    for record in evaluation.records:
        claims = record.detail.get("claims") or ()
        row = rows[record.id].row if record.id in rows else {}
        if not row.get("answers"):
            continue
        annotated = row["answers"][0]["claims"] or ()
        # If the claims are not the annotated ones, such as those of another system's answer, no
        # expert has judged them.
        annotated_texts = [claim_text(claim["claim_string"]) for claim in annotated]
        if annotated_texts != [claim_text(claim["text"]) for claim in claims]:
            continue
        text = row["answers"][0]["answer_string"]
        labels = [claim.get("label") for claim in claims]
        scores = [claim.get("fact_score") for claim in claims]
        system = row["answers"][0]["system"]
        for items, name, verdicts, judge in (
            (supported, "label", labels, lambda answer: judged_labels(answer, "exclude")),
            (correct, "fact_score", scores, judged_scores),
        ):
            if all(verdict is None for verdict in verdicts):
                continue
            answer = Answer(system, abstains(text), tuple(map(Claim, annotated, verdicts)))
            readable = [claim.get(f"{name}_is_readable") is not False for claim in claims]
            judged = judge(answer)
            for number, claim in enumerate(claims):
                if claim.get("call_failed"):
                    # A claim with neither evidence nor label counts as N, but here the call failed.
                    judged[number] = JudgedClaim(system, skipped="no reply")
            items += _items(record, annotated, judged, readable, text, system)
    results = []
    if supported:
        title = "Claims supported by their evidence"
        results.append(JudgedScore("supported", title, "supported", "claims", supported))
    if correct:
        results.append(JudgedScore("correct", "Correct claims", "correct", "claims", correct))
    return results


def _items(
    record: Record,
    claims: Sequence[Row],
    verdicts: Sequence[JudgedClaim],
    readable: Sequence[bool],
    text: str,
    system: str,
) -> list[JudgedItem]:
    items = []
    each_claim = enumerate(zip(claims, verdicts, readable, strict=True), start=1)
    for number, (claim, verdict, is_readable) in each_claim:
        if verdict.skipped is not None or verdict.predicted is None:
            continue
        label = None
        if verdict.gold is not None:
            label = float(verdict.gold)
        groups: dict[str, Any] = dict(record.groups)
        groups["system"] = [system]
        items.append(
            JudgedItem(
                id=f"{record.id}/{number}",
                question_id=record.id,
                verdict=float(verdict.predicted),
                label=label,
                text=claim["claim_string"],
                question=record.question,
                reference="\n\n".join(claim["evidence"] or ()),
                groups=groups,
                length=len(text),
                readable=is_readable,
                cluster=record.cluster,
            )
        )
    return items
