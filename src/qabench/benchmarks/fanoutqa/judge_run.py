"""The FanOutQA judge at work: from questions, references and answers to scores, through a client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from qabench.answers import text_of
from qabench.benchmarks.fanoutqa.judge import Judge
from qabench.errors import InputError
from qabench.llm.budget import Plan
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Progress
from qabench.llm.exchange import ChatRequest, Outcome
from qabench.llm.running import run_sync
from qabench.scoring.judge import (
    MAX_ANSWER_CHARACTERS,
    NOT_ANSWERED,
    Judgement,
    JudgeScore,
    is_judged,
    judge_fields,
    judge_score,
    no_judgement,
    read_judgement,
)
from qabench.scoring.pairs import check_pairs


@dataclass(frozen=True)
class JudgeRun:
    """Scores and what they took.

    Attributes:
        absent: why there are no scores; ``score`` is None then.
        shortened: how many answers were longer than what the judge gets to see.
        calls: HTTP calls made, retries among them. cached: replies that were known before.
        prompt_tokens, completion_tokens: of the calls made. cost: by the prices given; None without.
        models: the models that the server says it ran, with their fingerprints.
    """

    judge: Judge
    score: JudgeScore | None
    absent: str | None = None
    shortened: int = 0
    calls: int = 0
    retried: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    models: tuple[str, ...] = ()

    def usage(self) -> dict[str, Any]:
        """What was spent, as JSON data."""
        names = ("calls", "retried", "cached", "prompt_tokens", "completion_tokens", "cost")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def as_dict(self, ids: Sequence[str] | None = None) -> dict[str, Any]:
        """The scores, what was not scored and why, and which judge it was; as JSON data.

        Raises:
            InputError: there are not as many ids as questions.
        """
        about = {"model": self.judge.model, "prompt": self.judge.prompt.label, "models": list(self.models)}
        if self.score is None:
            return {"absent": {"gpt": self.absent}} | about
        score = self.score
        if ids is not None and len(ids) != len(score.per_question):
            raise InputError(f"{len(ids)} ids for {len(score.per_question)} questions; give one each, or none")
        named = [({"id": ids[i]} if ids else {"index": i}) | {"reason": reason} for i, reason in score.unscored]
        counts = {"questions": len(score.per_question), "scored": len(score.per_question) - len(named)}
        counts |= {"unscored": len(named), "unanswered": sum(q is NOT_ANSWERED for q in score.per_question)}
        counts |= {"shortened": self.shortened}
        gpt = {"gpt": score.gpt} if score.gpt is not None else {"absent": {"gpt": "no reply holds a verdict"}}
        parts = {"official": score.official, "counts": counts, "verdicts": score.verdicts, "unscored": named}
        return gpt | parts | about | {"usage": self.usage()}

    def per_question(self) -> list[dict[str, Any]]:
        """{"score", "official", "verdict", "reason", "reply"} a question, in the order of the input."""
        return [asdict(judgement) for judgement in self.score.per_question] if self.score else []


def plan_judging(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    judge: Judge,
    cache: ReplyCache | None = None,
) -> Plan:
    """What ``judge_answers`` would do and cost, without a call and without a key; arguments as there."""
    return judge.client(cache).plan(list(_requests(questions, references, predictions, judge).values()), judge.prices)


def judge_answers(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    judge: Judge,
    cache: ReplyCache | None = None,
    progress: Progress | None = None,
) -> JudgeRun:
    """Lets a model judge answers; see ``qabench.scoring.judge`` for what its replies are worth.

    Unanswered questions score 0 without a call. Replies that are in the cache cost nothing, and need no key. Works
    within a running event loop too (notebooks).

    Args:
        questions: their texts. references, predictions: one each a question; see ``qabench.scoring.accuracy``.
        judge: see ``judge_for``.
        cache: by default the user's.
        progress: is told of the judgements done and of all.

    Returns:
        The scores; absent, with the reason, where calls are needed and there is no key.

    Raises:
        InputError: no questions, lists of unlike length, a question that is no text.
        MissingExtra: calls are needed and the openai package is not installed.
    """
    requests = _requests(questions, references, predictions, judge)
    client = judge.client(cache)
    if judge.endpoint.why_unusable and client.plan(list(requests.values())).calls:
        return JudgeRun(judge, None, absent=judge.endpoint.why_unusable)
    judgements = {i: NOT_ANSWERED for i in range(len(questions)) if i not in requests}
    outcomes: list[Outcome] = []
    for sample in range(judge.reasks + 1):
        asked = [i for i in requests if i not in judgements or _has_no_verdict(judgements[i])]
        if not asked:
            break
        batch = [_sample(requests[i], sample) for i in asked]
        answered = run_sync(client.complete(batch, progress))
        outcomes += answered
        for i, outcome in zip(asked, answered, strict=True):
            if outcome.reply or i not in judgements:
                judgements[i] = _judgement(outcome)
    meter = client.meter
    return JudgeRun(
        judge=judge,
        score=judge_score([judgements[i] for i in range(len(questions))]),
        shortened=sum(len(text_of(predictions[i])) > MAX_ANSWER_CHARACTERS for i in requests),
        calls=meter.calls,
        retried=client.retried,
        cached=sum(outcome.cached for outcome in outcomes),
        prompt_tokens=meter.prompt_tokens,
        completion_tokens=meter.completion_tokens,
        cost=judge.prices.cost(meter.prompt_tokens, meter.completion_tokens) if judge.prices else None,
        models=_models(outcomes),
    )


def _requests(
    questions: Sequence[str], references: Sequence[Any], predictions: Sequence[Any], judge: Judge
) -> dict[int, ChatRequest]:
    check_pairs(references, predictions)
    if isinstance(questions, str) or len(questions) != len(references):
        raise InputError(f"{len(questions)} questions for {len(references)} references; give the text of each one")
    rows = enumerate(zip(questions, references, predictions, strict=True))
    return {i: judge.request(judge_fields(*row)) for i, row in rows if is_judged(row[2])}


def _sample(request: ChatRequest, sample: int) -> ChatRequest:
    """The same question for another reply: with another seed, or it would be the same reply."""
    parameters = dict(request.parameters)
    if isinstance(parameters.get("seed"), int):
        parameters["seed"] += sample
    return replace(request, parameters=parameters, sample=sample)


def _judgement(outcome: Outcome) -> Judgement:
    reply = outcome.reply
    if reply is None:
        return no_judgement(outcome.reason or "no reply")
    return read_judgement(reply.text, reply.finish_reason, reply.refusal)


def _has_no_verdict(judgement: Judgement) -> bool:
    return judgement.score is None and judgement.reply is not None


def _models(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    replies = [outcome.reply for outcome in outcomes if outcome.reply and outcome.reply.model]
    return tuple(sorted({" ".join(filter(None, (reply.model, reply.fingerprint))) for reply in replies}))
