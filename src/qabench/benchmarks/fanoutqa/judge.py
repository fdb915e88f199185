"""The FanOutQA judge: a language model that compares answers with references.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116); ``fanoutqa.eval.scorer.score_gpt``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from qabench.answers import check_pairs, text_of
from qabench.benchmarks.fanoutqa.prompts import AUTO, judge_prompt
from qabench.benchmarks.fanoutqa.verdicts import (
    MAX_ANSWER_CHARACTERS,
    NOT_ANSWERED,
    JudgeScore,
    is_judged,
    judge_fields,
    judge_score,
    no_judgment,
    read_judgment,
)
from qabench.errors import InputError
from qabench.llm.cache import ReplyCache
from qabench.llm.client import Caller, Plan, Prices, Progress, Usage, caller_for, merged, models_of, run_sync
from qabench.llm.exchange import ChatRequest
from qabench.tasks.prompts import Prompt

MODEL = "gpt-4o-2024-11-20"
MODEL_VARIABLE = "FANOUTQA_JUDGE_MODEL"
PARAMETERS: Mapping[str, Any] = {"temperature": 0, "seed": 31415}


@dataclass(frozen=True)
class Judge:
    """A judge: the model, its prompt, and the parameters of a request; see ``judge_for``."""

    caller: Caller
    prompt: Prompt
    parameters: Mapping[str, Any]
    llm_cache_key: str = ""

    def signature(self) -> dict[str, object]:
        """Return the fields of a signature: everything that the score depends on except the data."""
        return {
            "judge": self.caller.model,
            "judge_endpoint": self.caller.endpoint.base_url,
            "judge_prompt": self.prompt.label,
            **{f"judge_{name}": value for name, value in self.parameters.items()},
            "judge_cache_key": self.llm_cache_key or None,
        }

    def requests(
        self, questions: Sequence[str], references: Sequence[Any], predictions: Sequence[Any]
    ) -> dict[int, ChatRequest]:
        """Return the request for each prediction that is judged, by position.

        Raises:
            InputError: no questions, lists of different lengths, or a question that is not a string.
        """
        check_pairs(references, predictions)
        if isinstance(questions, str) or len(questions) != len(references):
            raise InputError(f"{len(questions)} questions for {len(references)} references; expected one for each")
        rows = enumerate(zip(questions, references, predictions, strict=True))
        prompts = {i: self.prompt.messages(**judge_fields(*row)) for i, row in rows if is_judged(row[2])}
        return {
            i: ChatRequest(self.caller.model, messages, self.parameters, namespace=self.llm_cache_key)
            for i, messages in prompts.items()
        }


@dataclass(frozen=True)
class Judged:
    """The judge's scores and what they cost.

    Attributes:
        judge: the judge.
        score: the scores; None if calls are needed and cannot be made.
        absent: the reason why the official score could not be computed; None if it was.
        shortened: the number of answers that were truncated for the judge.
        usage: calls, tokens and cost.
        models: the models that the server reports, with their fingerprints.
    """

    judge: Judge
    score: JudgeScore | None
    absent: str | None = None
    shortened: int = 0
    usage: Usage = field(default_factory=lambda: Usage(0, 0, 0, 0, 0, None))
    models: tuple[str, ...] = ()

    def as_dict(self, ids: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the scores, counts, and the items without a verdict, as JSON data.

        The latter are named by ``ids``, or else by their positions. Raises InputError for another number of ids.
        """
        model = {"model": self.judge.caller.model, "prompt": self.judge.prompt.label, "models": list(self.models)}
        score = self.score
        if score is None:
            return {"absent": {"gpt": self.absent}} | model
        if ids is not None and len(ids) != len(score.per_question):
            raise InputError(f"{len(ids)} ids for {len(score.per_question)} questions; expected one for each")
        unreadable = [({"id": ids[i]} if ids else {"index": i}) | {"reason": reason} for i, reason in score.unreadable]
        counts = {"questions": len(score.per_question), "scored": score.n, "readable": score.n_readable}
        counts |= {"unanswered": score.per_question.count(NOT_ANSWERED), "shortened": self.shortened}
        means = {"gpt": score.gpt, "gpt_readable": score.gpt_readable}
        scores: dict[str, Any] = {name: value for name, value in means.items() if value is not None}
        scores = {"absent": {"gpt": self.absent}} if self.absent else scores
        parts = {"counts": counts, "verdicts": score.verdicts, "unreadable": unreadable}
        return scores | parts | model | {"usage": self.usage.as_dict()}

    def deviations(self) -> list[str]:
        """Return the effect of failed calls on the official score, in sentences; [] if no call failed."""
        if self.score is None or self.score.n == (n := len(self.score.per_question)):
            return []
        return [f"{n - self.score.n} of {n} answers are left out"]

    def per_question(self) -> list[dict[str, Any]]:
        """Return {"score", "readable", "verdict", "reason", "reply"} for each question, in the order of the input."""
        return [asdict(judgment) for judgment in self.score.per_question] if self.score else []


def judge_for(
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    prompt: str | Path = AUTO,
    parameters: Mapping[str, Any] | None = None,
    llm_cache_key: str = "",
    **limits: Any,
) -> Judge:
    """Return the judge given by arguments and environment variables.

    Args:
        model: by default FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20, the official judge.
        base_url: an OpenAI-compatible server; see ``qabench.llm.endpoint.resolve_endpoint``.
        api_key: by default FANOUTQA_OPENAI_API_KEY; never OPENAI_API_KEY.
        prompt: "official": the authors' prompt, read from their file; "qabench": this project's; "auto": official if
            the file is available; or a file: TOML (``user``, ``system``), a version of the authors'
            fanoutqa/eval/llm.py, or the user message as plain text, with the fields {question}, {reference}, {answer}.
        parameters: added to temperature 0 and seed 31415; None as a value removes one of them.
        llm_cache_key: replies cached under another key are not used.
        **limits: concurrency, retries, timeout (seconds per call), max_calls, prices (``Prices``, or a
            pair: the price per million prompt tokens and per million reply tokens).

    Raises:
        InputError: an option that is unknown or out of range, or a prompt that cannot be used.
        SourceUnavailable: prompt="official", and the authors' file is not available.
    """
    if isinstance(limits.get("prices"), list | tuple) and len(limits["prices"]) == 2:
        limits["prices"] = Prices(*limits["prices"])
    caller = caller_for(model or os.environ.get(MODEL_VARIABLE) or MODEL, base_url, api_key, **limits)
    return Judge(caller, judge_prompt(prompt), merged(PARAMETERS, parameters), llm_cache_key)


def judge_from(options: Any) -> Judge:
    """Call ``judge_for`` with a dict of its arguments, or None for no arguments. Raises InputError for another type."""
    if options is not None and not isinstance(options, dict):
        raise InputError(f"judge is {options!r:.80}; allowed: a dict of the judge's options")
    return judge_for(**(options or {}))


def plan_judging(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    judge: Judge,
    cache: ReplyCache | None = None,
) -> Plan:
    """Estimate the calls of ``judge_answers`` and their cost. Needs no key and makes no calls."""
    requests = judge.requests(questions, references, predictions)
    return judge.caller.client(cache).plan(list(requests.values()))


def judge_answers(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    judge: Judge,
    cache: ReplyCache | None = None,
    progress: Progress | None = None,
) -> Judged:
    """Let a model judge answers; see ``qabench.benchmarks.fanoutqa.verdicts`` for the scores of its replies.

    Unanswered questions score 0 without a call. Cached replies cost nothing and need no key. Works inside a running
    event loop (notebooks).

    Args:
        questions: the text of each question.
        references, predictions: one for each question; see ``qabench.benchmarks.fanoutqa.accuracy``.
        judge: see ``judge_for``.
        cache: by default the user's.
        progress: called with the number of finished judgments, and of all judgments.

    Returns:
        The scores. The official one is absent, with the reason, if calls are needed and there is no key, or if every
        call failed. An answer whose call failed has no score. Raises InputError as ``Judge.requests``, and MissingExtra
        if calls are needed and the openai package is not installed.
    """
    requests = judge.requests(questions, references, predictions)
    client = judge.caller.client(cache)
    unusable = judge.caller.endpoint.why_unusable
    if unusable and client.plan(list(requests.values())).calls:
        return Judged(judge, None, absent=unusable)
    outcomes = run_sync(client.complete(list(requests.values()), progress)) if requests else []
    judgments = {
        i: read_judgment(reply.text, reply.finish_reason, reply.refusal)
        if (reply := outcome.reply)
        else no_judgment(outcome.reason or "no reply")
        for i, outcome in zip(requests, outcomes, strict=True)
    }
    score = judge_score([judgments.get(i, NOT_ANSWERED) for i in range(len(questions))])
    failed = bool(outcomes) and not any(outcome.reply for outcome in outcomes)
    return Judged(
        judge,
        score,
        absent=f"all {len(outcomes)} calls failed: {outcomes[0].reason}" if failed else None,
        shortened=sum(len(text_of(predictions[i])) > MAX_ANSWER_CHARACTERS for i in requests),
        usage=client.usage(outcomes),
        models=tuple(models_of(outcomes)),
    )
