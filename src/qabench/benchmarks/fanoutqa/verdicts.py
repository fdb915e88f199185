"""FanOutQA's factuality judge: the fields of its prompt, and the scores of its replies.

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
class Judgment:
    """The judgment of one answer.

    Attributes:
        verdict: a value of ``VERDICTS``; None for an unanswered question and if there is no readable verdict.
        score: 1 or 0: the official score of the reply, readable or not; None if the judge gave no reply.
        readable: 1 or 0: the score of the verdict, 0 for an unanswered question; None if there is no readable verdict.
        reason: why there is no readable verdict; None if there is one, or if the question is unanswered.
        reply: the judge's text; None if it was not asked or did not reply.
    """

    verdict: str | None
    score: int | None
    readable: int | None
    reason: str | None = None
    reply: str | None = None


NOT_ANSWERED = Judgment(None, 0, 0)


@dataclass(frozen=True, slots=True)
class JudgeScore:
    """The judge's scores over all questions.

    Attributes:
        gpt: the official score: the mean over all questions, in which unanswered questions and replies without a
            readable verdict count as the official scorer counts them (mostly 0). Questions whose judge call failed are
            not in it: there is no reply to count. None if every call failed.
        gpt_readable: the mean over readable verdicts and unanswered questions (0); None if there are none.
        n: the number of questions that ``gpt`` is a mean over.
        n_readable: the number of questions that ``gpt_readable`` is a mean over.
        verdicts: the number of questions with each verdict, in the order of the letters.
        unreadable: (position, reason) of each question without a readable verdict, failed calls included.
        per_question: in the order of the input.
    """

    gpt: float | None
    gpt_readable: float | None
    n: int
    n_readable: int
    verdicts: dict[str, int]
    unreadable: tuple[tuple[int, str], ...]
    per_question: tuple[Judgment, ...]


def is_judged(prediction: Any) -> bool:
    """Tell whether a prediction is sent to the judge.

    ``UNANSWERED`` scores 0 without a call. So does None, on which the official scorer fails.
    """
    return prediction is not UNANSWERED and prediction is not None


def judge_fields(question: str, reference: Any, prediction: Any) -> dict[str, str]:
    """Return the values of the prompt's fields: question, reference, and the first 4,000 characters of the answer."""
    if not isinstance(question, str):
        raise InputError(f"a question is {question!r:.80}; it must be a string")
    answer = text_of(prediction)[:MAX_ANSWER_CHARACTERS]
    return {"question": question, "reference": text_of(reference), "answer": answer}


def official_score(reply: str) -> int:
    """Return 1 if the reply's last character is b, c or e, in either case; else 0. An empty reply scores 0."""
    return int(reply.strip()[-1:].lower() in FULL_MARKS)


def read_judgment(reply: str, finish_reason: str | None = None, refusal: str | None = None) -> Judgment:
    """Read the judgment in a reply.

    The official score depends only on the last character. A verdict is readable if that character is one of the six
    letters and is not part of a word: officially, "I cannot judge" scores 1.

    ``finish_reason`` and ``refusal`` are those that the server reports; a truncated reply and a refusal have no
    readable verdict.
    """
    text = reply.strip()
    letter = text[-1:].lower()
    reason = None
    if refusal or finish_reason == "content_filter":
        reason = f"the judge refused: {refusal or text or 'content filter'!r:.80}"
    elif finish_reason == "length":
        reason = "the reply was truncated"
    elif not text:
        reason = "the reply is empty"
    elif letter not in VERDICTS or text[-2:-1].isalnum():
        reason = f"the reply does not end with a letter from A to F: {text[-40:]!r}"
    if reason:
        return Judgment(None, official_score(reply), None, reason, reply)
    return Judgment(VERDICTS[letter], official_score(reply), int(letter in FULL_MARKS), None, reply)


def no_judgment(reason: str) -> Judgment:
    """Return the judgment of a question on which the judge gave no reply."""
    return Judgment(None, None, None, reason)


def judge_score(judgments: Sequence[Judgment]) -> JudgeScore:
    """Compute the means over judgments; see ``JudgeScore``. Raises InputError if there are none."""
    if not judgments:
        raise InputError("nothing to score: no questions")
    scores = [judgment.score for judgment in judgments if judgment.score is not None]
    readable = [judgment.readable for judgment in judgments if judgment.readable is not None]
    counts = Counter(judgment.verdict for judgment in judgments)
    return JudgeScore(
        gpt=sum(scores) / len(scores) if scores else None,
        gpt_readable=sum(readable) / len(readable) if readable else None,
        n=len(scores),
        n_readable=len(readable),
        verdicts={verdict: counts[verdict] for verdict in VERDICTS.values()},
        unreadable=tuple((i, judgment.reason) for i, judgment in enumerate(judgments) if judgment.reason is not None),
        per_question=tuple(judgments),
    )
