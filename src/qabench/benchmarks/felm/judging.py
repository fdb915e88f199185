"""FELM's segments as items that an evaluator and people judged: is the segment factual?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qabench.benchmarks.felm.method import FelmMethod
from qabench.benchmarks.judging import JudgeCall, Judging
from qabench.data.rows import Row
from qabench.errors import unknown_name
from qabench.evaluation import Evaluation
from qabench.evaluation.judged import JudgedItem, JudgedScore
from qabench.evaluation.records import ANSWERED, CUT_OFF
from qabench.evaluation.scoring import Question
from qabench.llm.caller import Caller
from qabench.llm.exchange import Answered, ChatRequest


class FelmJudging(Judging):
    """An evaluator's verdict on each segment, next to its label."""

    labeled = "Is each segment of a response factual? Labels of the authors' annotators."
    # cot-cons is missing: the cache would return one reply for all its samples. `qabench run` has
    # it.
    methods = ("raw", "cot", "link", "content")

    def calls(
        self, questions: Sequence[Question], caller: Caller, method: str | None, prompt: str
    ) -> list[JudgeCall]:
        """Return one request per response, with the authors' prompt of the method."""
        chosen = method or self.methods[0]
        if chosen not in self.methods:
            raise unknown_name("a judge cannot be asked by the method", chosen, self.methods)
        asking = FelmMethod(chosen, prompt=prompt)
        calls = []
        for question in questions:
            messages = asking.messages(question.row)
            request = ChatRequest(caller.model, messages, asking.parameters)
            calls.append(JudgeCall(question.id, request))
        return calls

    def predictions(
        self, questions: Sequence[Question], calls: Sequence[JudgeCall], replies: Sequence[Answered]
    ) -> list[Row]:
        """Return the replies by response. A response whose call failed has no reply."""
        predictions: list[Row] = []
        for call, reply in zip(calls, replies, strict=True):
            if reply.text is not None:
                predictions.append({"id": call.question_id, "reply": reply.text})
        return predictions

    def options(self, model: str) -> Mapping[str, Any]:
        """Return the option for the evaluator, whose name decides how replies are read."""
        return {"evaluator": model}

    def scores(self, evaluation: Evaluation) -> list[JudgedScore]:
        """Return the verdict on each segment, next to the dataset's label."""
        items = []
        for record in evaluation.records:
            segments = record.detail.get("segments") or ()
            prefix = record.id if record.epoch == 1 else f"{record.id}/sample {record.epoch}"
            length = sum(len(segment["text"] or "") for segment in segments)
            for number, segment in enumerate(segments, start=1):
                # A segment without a readable verdict counts as factual, as in the authors' script.
                verdict = segment.get("verdict")
                items.append(
                    JudgedItem(
                        id=f"{prefix}/{number}",
                        question_id=record.id,
                        verdict=float(verdict is not False),
                        label=float(segment["label"]),
                        text=segment["text"],
                        question=record.question,
                        groups={"domain": record.groups.get("domain", ())},
                        length=length,
                        readable=verdict is not None,
                        answered=record.status in (ANSWERED, CUT_OFF),
                        cluster=record.cluster,
                    )
                )
        return [JudgedScore("factual", "Factual segments", "factual", "segments", items)]
