"""FanOutQA's scorer for Inspect: the same functions as for files of predictions, one sample at a time."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

import anyio
from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState
from inspect_ai.util import concurrency

from qabench.answers import UNANSWERED, loads
from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.benchmarks.fanoutqa.normalizing import run_normalizer
from qabench.benchmarks.fanoutqa.scores import FAMILIES, Scorers, Scores, score_answers
from qabench.errors import InputError
from qabench.evaluation.signature import digest
from qabench.tasks.common import answer_of, texts
from qabench.tasks.metrics import means
from qabench.tasks.replies import asked_with


@scorer(name="fanoutqa", metrics=[means()])
def fanoutqa_scorer(
    metrics: str = "acc,rouge",
    lemmatizer: str = "auto",
    judge: dict[str, Any] | None = None,
    bleurt_model: str | None = None,
    signed: Mapping[str, Any] | None = None,
) -> Scorer:
    """The scores of a reply as in ``qabench score``, the strings found and missing, and the judge's reply.

    A sample without an answer (an error, a refusal, no reply) is unanswered; an empty reply is an empty answer. If the
    judge's call fails, or there is no key, the sample has no judge score, and its explanation says why.

    Args:
        metrics: some of "acc", "rouge", "bleurt" and "judge", separated by commas.
        lemmatizer: for "acc"; see ``qabench.text.resolve_lemmatizer``. Only spaCy's ``en_core_web_sm`` is official.
        judge: options of ``qabench.benchmarks.fanoutqa.judge.judge_for``.
        bleurt_model: see ``qabench.models.bleurt.load_bleurt``.
        signed: the first fields of the signatures: data, prompt and protocol. The task fills it.

    Raises:
        InputError: an unknown metric or option.
        MissingExtra: the lemmatizer is not installed.
    """
    scorers = _scorers(metrics, lemmatizer, judge, bleurt_model)
    limit = scorers.judge.caller.concurrency if scorers.judge else 16

    async def score(state: TaskState, target: Target) -> Score:
        answer = answer_of(state)
        prediction = UNANSWERED if answer is None else answer
        items = [state.metadata["question"]], [loads(state.metadata["answer"])], [prediction]
        retrieval = state.metadata.get("signed", {})
        data = {
            "benchmark": "fanoutqa",
            **(signed or {}),
            **retrieval,
            "only_score_answered": False,
            **_generation(str(state.model)),
        }
        async with concurrency("qabench scoring", limit):
            scores = await anyio.to_thread.run_sync(score_answers, *items, scorers, data)
        return _score(scores, answer)

    return score


def _score(scores: Scores, answer: str | None) -> Score:
    # Inspect requires the same names in each sample's value; NaN values are left out when logs are read.
    values = dict.fromkeys(scores.columns(), nan) | scores.rows[0]
    detail = scores.details[0]
    about: dict[str, Any] = {"detail": detail, "signatures": scores.signatures}
    if scores.judged:
        about["usage"] = scores.judged.usage.as_dict()
    said = scores.absent.get("gpt") or detail.get("judge_problem") or detail.get("judge")
    if not scores.rows[0]:
        return Score.unscored(reason="grader_failed", explanation=said, answer=answer, metadata=about)
    return Score(value=values, answer=answer, explanation=said, metadata=about)


def _scorers(metrics: str, lemmatizer: str, judge: dict[str, Any] | None, bleurt_model: str | None) -> Scorers:
    wanted = texts(metrics)
    if not wanted or set(wanted) - set(FAMILIES):
        raise InputError(f"metrics are {metrics!r}; allowed: {', '.join(FAMILIES)}, separated by commas")
    bleurt = None
    if "bleurt" in wanted:
        from qabench.models.bleurt import load_bleurt

        bleurt = load_bleurt(model=bleurt_model)
    return Scorers(
        run_normalizer(lemmatizer) if "acc" in wanted else None,
        "rouge" in wanted,
        bleurt,
        judge_from(judge) if "judge" in wanted else None,
    )


def _generation(model: str) -> dict[str, Any]:
    """Return the generation parameters of the sample's last call, for the signature.

    The limit of tokens of Claude has its own name, because it is the only one that the authors send.
    """
    plain = str | int | float
    options = {name: value if isinstance(value, plain) else digest([value]) for name, value in asked_with().items()}
    if "claude" in model.lower() and "max_tokens" in options:
        options["claude_max_tokens"] = options.pop("max_tokens")
    return options
