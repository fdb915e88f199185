"""FanOutQA's LLM judge as a scorer of Inspect; replies are kept, so that scoring again costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
from inspect_ai.scorer import Score, Scorer, Target, scorer, stderr
from inspect_ai.solver import TaskState
from inspect_ai.util import concurrency

from qabench.answers import UNANSWERED, loads
from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.benchmarks.fanoutqa.judge_run import judge_answers
from qabench.signature import signature
from qabench.tasks.common import answer_of
from qabench.tasks.metrics import mean


@scorer(name="fanoutqa_judge", metrics={"*": [mean(), stderr()]})
def fanoutqa_judge(judge: dict[str, Any] | None = None, signed: Mapping[str, Any] | None = None) -> Scorer:
    """The judge's verdict on a reply as ``gpt``: 1 where it says that the facts are the reference's, else 0.

    A sample without an answer scores 0 without a call. Where the judge gives no verdict, or cannot be asked (no key),
    the sample has no score, is in no mean, and its explanation says why.

    Args:
        judge: options of ``qabench.benchmarks.fanoutqa.judge.judge_for``; by default
            what FANOUTQA_* of the environment say.
        signed: what the signature says of the data: config, data, references. The task fills it.

    Raises:
        InputError: an option that is unknown or out of range.
    """
    chosen = judge_from(judge)
    line = signature("fanout_judge", benchmark="fanoutqa", **dict(signed or {}), **chosen.signature())

    async def score(state: TaskState, target: Target) -> Score:
        answer = answer_of(state)
        prediction = UNANSWERED if answer is None else answer
        pair = [state.metadata["question"]], [loads(state.metadata["answer"])], [prediction]
        async with concurrency("qabench judge", chosen.concurrency):
            run = await anyio.to_thread.run_sync(judge_answers, *pair, chosen)
        about = {"signatures": {"judge": line}, "unofficial": None, "usage": run.usage()}
        if run.score is None:
            return Score.unscored(reason="grader_failed", explanation=run.absent, answer=answer, metadata=about)
        (judgement,) = run.score.per_question
        about["detail"] = {"verdict": judgement.verdict, "judge": judgement.reply}
        if judgement.score is None:
            why = judgement.reason
            return Score.unscored(reason="grader_failed", explanation=why, answer=answer, metadata=about)
        return Score(value={"gpt": float(judgement.score)}, answer=answer, explanation=judgement.reply, metadata=about)

    return score
