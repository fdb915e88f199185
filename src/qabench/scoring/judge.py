"""FanOutQA's factuality judge: what a language model is asked about an answer, and what its reply is worth.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116); ``fanoutqa.eval.scorer.score_gpt``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qabench.answers import UNANSWERED, text_of
from qabench.errors import InputError

VERDICTS = {
    "a": "subset",
    "b": "superset",
    "c": "same",
    "d": "disagreement",
    "e": "irrelevant differences",
    "f": "no answer",
}
FULL_MARKS = frozenset("bce")
MAX_ANSWER_CHARACTERS = 4000
FIELDS = frozenset({"question", "reference", "answer"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """One question's.

    Attributes:
        verdict: a value of ``VERDICTS``; None for an unanswered question and where there is no verdict.
        score: 1 or 0; None where there is no verdict.
        official: 1 or 0: what the official scorer makes of the same reply.
        reason: why there is no verdict; None where there is one, or where none is needed.
        reply: the judge's text; None where it was not asked or did not reply.
    """

    verdict: str | None
    score: int | None
    official: int
    reason: str | None = None
    reply: str | None = None


NOT_ANSWERED = Judgement(None, 0, 0)


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """The judge's scores over all questions.

    Attributes:
        gpt: the mean over the questions that are scored, unanswered ones among them as 0; None where none is.
        official: the mean over all questions, 0 for the unscored: the official scorer's number.
        verdicts: how many questions got each verdict, in the order of the letters.
        unscored: (position, reason) of each question without a verdict.
        per_question: in the order of the input.
    """

    gpt: float | None
    official: float
    verdicts: dict[str, int]
    unscored: tuple[tuple[int, str], ...]
    per_question: tuple[Judgement, ...]


def is_judged(prediction: Any) -> bool:
    """Whether a judge is asked about a prediction: not about ``UNANSWERED``, nor about None, on which the official
    scorer fails; both score 0."""
    return prediction is not UNANSWERED and prediction is not None


def judge_fields(question: str, reference: Any, prediction: Any) -> dict[str, str]:
    """What stands in the prompt's fields: question, reference and the answer's first 4,000 characters, as texts.

    Raises:
        InputError: the question is not a text.
    """
    if not isinstance(question, str):
        raise InputError(f"a question is {question!r:.80}; give its text")
    answer = text_of(prediction)[:MAX_ANSWER_CHARACTERS]
    return {"question": question, "reference": text_of(reference), "answer": answer}


def official_score(reply: str) -> int:
    """1 where the reply's last character is b, c or e, in either case; else 0. As upstream, whatever else it says."""
    return int(reply.strip()[-1:].lower() in FULL_MARKS)


def read_judgement(reply: str, finish_reason: str | None = None, refusal: str | None = None) -> Judgement:
    """The judgement in a reply: its last character, if that is one of the six letters and stands alone.

    Stricter than upstream, where the last letter of any word counts: the end of "I cannot judge" is a full mark there.

    Args:
        reply: the text.
        finish_reason, refusal: as the server gives them; a reply that was cut off or refused holds no verdict.
    """
    text = reply.strip()
    letter = text[-1:].lower()
    reason = None
    if refusal or finish_reason == "content_filter":
        reason = f"the judge refused: {refusal or text or 'content filter'!r:.80}"
    elif finish_reason == "length":
        reason = "the reply was cut off before its end"
    elif not text:
        reason = "the reply is empty"
    elif letter not in VERDICTS or text[-2:-1].isalnum():
        reason = f"the reply does not end with a letter from A to F: {text[-40:]!r}"
    if reason:
        return Judgement(None, None, official_score(reply), reason, reply)
    return Judgement(VERDICTS[letter], int(letter in FULL_MARKS), official_score(reply), None, reply)


def no_judgement(reason: str) -> Judgement:
    """The judgement of a question on which the judge gave no reply."""
    return Judgement(None, None, 0, reason)


def judge_score(judgements: Sequence[Judgement]) -> JudgeScore:
    """The means over judgements; see ``JudgeScore``.

    Raises:
        InputError: there are none.
    """
    if not judgements:
        raise InputError("nothing to score: there are no questions, and a mean over none is undefined")
    scores = [judgement.score for judgement in judgements if judgement.score is not None]
    counts = Counter(judgement.verdict for judgement in judgements)
    return JudgeScore(
        gpt=sum(scores) / len(scores) if scores else None,
        official=sum(judgement.official for judgement in judgements) / len(judgements),
        verdicts={verdict: counts[verdict] for verdict in VERDICTS.values()},
        unscored=tuple((i, judgement.reason) for i, judgement in enumerate(judgements) if judgement.reason is not None),
        per_question=tuple(judgements),
    )
