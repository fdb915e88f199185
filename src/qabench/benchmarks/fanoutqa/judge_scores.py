"""All of FanOutQA's scores together, in the shape of the official result.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116); ``fanoutqa.eval.scorer.Scorer.score``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qabench.answers import text_of
from qabench.benchmarks.fanoutqa.judge import Judge
from qabench.benchmarks.fanoutqa.judge_run import JudgeRun, judge_answers
from qabench.errors import InputError
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Progress
from qabench.scoring.accuracy import AccuracyScore, Normalize, accuracy
from qabench.scoring.rouge import RougeScore, rouge

Bleurt = Callable[[list[str], list[str]], Sequence[float]]
"""References and candidates, two lists of texts, to a score a pair."""


@dataclass(frozen=True)
class FanoutScores:
    """The four scores; ``absent`` says why one is not there.

    Attributes:
        bleurt: a score a question; None where there is none. bleurt_name: what computed it.
        judge, judged: the judge and what it said; None where there was none.
    """

    acc: AccuracyScore
    rouge: RougeScore
    bleurt: tuple[float, ...] | None
    bleurt_name: str | None
    judge: Judge | None
    judged: JudgeRun | None
    absent: dict[str, str]

    def as_dict(self, ids: Sequence[str] | None = None, raw: bool = False) -> dict[str, Any]:
        """{"acc", "rouge", "bleurt", "gpt"} as far as they are there, "absent", "judge" and, if asked for, "raw".

        Raises:
            InputError: there are not as many ids as questions.
        """
        if ids is not None and len(ids) != len(self.acc.per_question):
            raise InputError(f"{len(ids)} ids for {len(self.acc.per_question)} questions; give one each, or none")
        result: dict[str, Any] = {"acc": {"loose": self.acc.loose, "strict": self.acc.strict}}
        result["rouge"] = self.rouge.as_dict()
        if self.bleurt is not None:
            result["bleurt"] = sum(self.bleurt) / len(self.bleurt)
        absent = dict(self.absent)
        if self.judged:
            judged = self.judged.as_dict(ids)
            absent |= judged.pop("absent", {})
            if "gpt" in judged:
                result["gpt"] = judged.pop("gpt")
            result["judge"] = judged
        result["absent"] = absent
        if raw:
            result["raw"] = self._raw(ids)
        return result

    def _raw(self, ids: Sequence[str] | None) -> list[dict[str, Any]]:
        rows = []
        for i, (acc, kinds) in enumerate(zip(self.acc.per_question, self.rouge.per_question, strict=True)):
            row: dict[str, Any] = {"question_id": ids[i] if ids else i, "acc": acc.loose}
            row["rouge"] = {kind: asdict(prf) for kind, prf in kinds.items()}
            row["bleurt"] = self.bleurt[i] if self.bleurt else None
            row["gpt"] = self.judged.score.per_question[i].score if self.judged and self.judged.score else None
            rows.append(row)
        return rows


def all_scores(
    references: Sequence[Any],
    predictions: Sequence[Any],
    questions: Sequence[str] | None,
    *,
    normalize: Normalize,
    bleurt: Bleurt | None = None,
    judge: Judge | None = None,
    cache: ReplyCache | None = None,
    progress: Progress | None = None,
) -> FanoutScores:
    """Accuracy, ROUGE and, where they can be had, BLEURT and the judge's score of answers.

    Args:
        references, predictions: see ``qabench.scoring.accuracy.accuracy``.
        questions: their texts, for the judge; None leaves it out.
        normalize: for the accuracy. bleurt: see ``Bleurt``; None leaves it out.
        judge: None leaves it out. cache, progress: see ``judge_answers``.

    Raises:
        InputError: no questions, lists of unlike length, an empty list or dict as a reference, or a BLEURT function
            that gives another number of scores than there are questions.
    """
    acc = accuracy(references, predictions, normalize)
    rouges = rouge(references, predictions)
    absent: dict[str, str] = {}
    judged = None
    if judge is None:
        absent["gpt"] = "left out (judge=False)"
    elif questions is None:
        absent["gpt"] = "the judge needs the questions' texts: give questions=[...]"
    else:
        judged = judge_answers(questions, references, predictions, judge, cache, progress)
    values = name = None
    if bleurt is None:
        absent["bleurt"] = "no BLEURT scorer was given: bleurt=..., a function (references, candidates) -> scores"
    else:
        values, name = _bleurt_scores(bleurt, references, predictions)
    return FanoutScores(acc, rouges, values, name, judge, judged, absent)


def _bleurt_scores(
    bleurt: Bleurt, references: Sequence[Any], predictions: Sequence[Any]
) -> tuple[tuple[float, ...], str]:
    # An unanswered question is the empty text, as upstream.
    scores = tuple(float(score) for score in bleurt(list(map(text_of, references)), list(map(text_of, predictions))))
    if len(scores) != len(references):
        raise InputError(f"the BLEURT function gave {len(scores)} scores for {len(references)} questions")
    return scores, str(getattr(bleurt, "name", None) or getattr(bleurt, "__name__", type(bleurt).__name__))
