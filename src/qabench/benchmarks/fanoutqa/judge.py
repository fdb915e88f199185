"""The FanOutQA judge: a language model that compares answers with references.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116), and
``fanoutqa.eval.scorer.score_gpt``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.benchmarks.fanoutqa.prompts import judge_prompt
from qabench.data.answers import UNANSWERED, check_pairs, text_of
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.evaluation.scoring import Progress
from qabench.io.limits import json_of
from qabench.io.redaction import quoted
from qabench.llm.caller import Caller, Prices, caller_for
from qabench.llm.client import Plan, Usage, merged, models_of, usage_text
from qabench.llm.exchange import ChatRequest
from qabench.llm.routing import client_for
from qabench.prompts.prompt import AUTO, Prompt

# The official scorer's default. Another judge is a deviation.
MODEL = "gpt-4o-2024-11-20"
# The authors' scorer reads this variable, too, so that its environment also works here.
MODEL_VARIABLE = "FANOUTQA_JUDGE_MODEL"
# The parameters that the official scorer sends with each request.
PARAMETERS: Mapping[str, Any] = {"temperature": 0, "seed": 31415}
VERDICTS = {
    "a": "subset",
    "b": "superset",
    "c": "same",
    "d": "disagreement",
    "e": "irrelevant differences",
    "f": "no answer",
}
# In the official scorer, an answer scores 1 if it has more details than the reference, the same
# details, or differences that do not matter. A subset (a) scores 0.
FULL_MARKS = frozenset("bce")
# The official scorer cuts answers after this many characters, so the judge never reads the rest.
MAX_ANSWER_CHARACTERS = 4000


@dataclass(frozen=True, slots=True)
class Judgment:
    """The judgment of one answer.

    Attributes:
        verdict: a value of ``VERDICTS``. None if there is no readable verdict, or if the question
            is unanswered.
        score: the official score of the reply, 1 or 0, even if it is unreadable, and 0 for an
            unanswered question. None if the judge gave no reply.
        readable: the score of a readable verdict, 1 or 0, and 0 for an unanswered question. None if
            there is no readable verdict.
        reason: why there is no readable verdict. None if there is one, or if the question is
            unanswered.
        reply: the judge's text, or None if it was not asked or did not reply.
    """

    verdict: str | None
    score: int | None
    readable: int | None
    reason: str | None = None
    reply: str | None = None


NOT_ANSWERED = Judgment(None, 0, 0)


def official_score(reply: str) -> int:
    """Return 1 if the reply's last character is b, c or e, in either case, else 0."""
    # The slice also works for an empty reply, which scores 0 here. The official scorer fails on it.
    return int(reply.strip()[-1:].lower() in FULL_MARKS)


def read_judgment(
    reply: str, finish_reason: str | None = None, refusal: str | None = None
) -> Judgment:
    """Read the judgment in a reply.

    The official score depends only on the last character, so "I cannot judge" scores 1. A verdict
    is readable if the last character is one of the six letters and not part of a word.

    The server reports ``finish_reason`` and ``refusal``. A truncated reply and a refusal have no
    readable verdict.
    """
    text = reply.strip()
    letter = text[-1:].lower()
    reason = None
    if refusal or finish_reason == "content_filter":
        reason = f"the judge refused: {quoted(refusal or text or 'content filter', 80)}"
    elif finish_reason == "length":
        reason = "the reply was truncated"
    elif not text:
        reason = "the reply is empty"
    # In the official scorer, the last character decides even if it is the end of a word.
    elif letter not in VERDICTS or text[-2:-1].isalnum():
        reason = f"the reply does not end with a letter from A to F: {text[-40:]!r}"
    if reason:
        return Judgment(None, official_score(reply), None, reason, reply)
    return Judgment(VERDICTS[letter], official_score(reply), int(letter in FULL_MARKS), None, reply)


@dataclass(frozen=True)
class Judge:
    """A judge: the model, its prompt, and the parameters of a request. See ``judge_for``."""

    caller: Caller
    prompt: Prompt
    parameters: Mapping[str, Any]
    llm_cache_key: str = ""

    def signature(self) -> dict[str, object]:
        """Return the signature fields: everything that the score depends on except the data."""
        fields: dict[str, object] = {
            "judge": self.caller.model,
            "judge_endpoint": self.caller.endpoint.base_url,
            "judge_prompt": self.prompt.label,
        }
        for name, value in self.parameters.items():
            fields[f"judge_{name}"] = value
        # Replies under another key are other samples of the same judge.
        fields["judge_cache_key"] = self.llm_cache_key or None
        return fields

    def requests(
        self, questions: Sequence[str], references: Sequence[Any], predictions: Sequence[Any]
    ) -> dict[int, ChatRequest]:
        """Return the request for each prediction that is judged (see ``is_judged``), by position.

        As in the official scorer, the judge gets the first 4,000 characters of an answer.

        Raises:
            InputError: no questions, lists of different lengths, or a question that is not a
                string.
        """
        check_pairs(references, predictions)
        if len(questions) != len(references):
            raise InputError(
                f"{len(questions)} questions for {len(references)} references; expected one for each"
            )
        requests = {}
        rows = zip(questions, references, predictions, strict=True)
        for i, (question, reference, prediction) in enumerate(rows):
            if not is_judged(prediction):
                continue
            if not isinstance(question, str):
                raise InputError(f"a question is {question!r:.80}; it must be a string")
            messages = self.prompt.messages(
                question=question,
                reference=text_of(reference),
                answer=text_of(prediction)[:MAX_ANSWER_CHARACTERS],
            )
            requests[i] = ChatRequest(
                self.caller.model, messages, self.parameters, namespace=self.llm_cache_key
            )
        return requests


def is_judged(prediction: Any) -> bool:
    """Tell whether a prediction is sent to the judge, as all but unanswered questions are."""
    return prediction is not UNANSWERED and prediction is not None


@dataclass(frozen=True)
class Judged:
    """The judge's scores, and what they cost.

    Attributes:
        judge: the judge.
        per_question: the judgments in the order of the input, or () if calls are needed and cannot
            be made.
        absent: the reason why the official score could not be computed, or None if it was.
        shortened: the number of answers that were truncated for the judge.
        usage: the calls, tokens and cost so far.
        needed: the calls that were not made, with estimated tokens and cost.
        models: the models that the server reports, with their fingerprints.
    """

    judge: Judge
    per_question: tuple[Judgment, ...]
    absent: str | None
    shortened: int
    usage: Usage
    needed: Plan
    models: tuple[str, ...] = ()

    @property
    def scores(self) -> list[int]:
        """Return the official scores: of all replies, and 0 for unanswered questions.

        Unreadable replies count, too, mostly as 0. Questions whose call failed have no reply, and
        so no score.
        """
        return [judgment.score for judgment in self.per_question if judgment.score is not None]

    def as_dict(self) -> Json:
        """Return counts, verdicts, usage and unreadable replies, or why there is no score."""
        about = {
            "model": self.judge.caller.model,
            "prompt": self.judge.prompt.label,
            "models": list(self.models),
        }
        if not self.per_question:
            return {"absent": {"gpt": self.absent}} | about
        readable = 0
        unreadable = []
        for i, judgment in enumerate(self.per_question):
            if judgment.readable is not None:
                readable += 1
            if judgment.reason is not None:
                unreadable.append({"index": i, "reason": judgment.reason})
        result: Json = {}
        if self.absent:
            result["absent"] = {"gpt": self.absent}
        verdicts = Counter(judgment.verdict for judgment in self.per_question)
        result["counts"] = {
            "questions": len(self.per_question),
            "scored": len(self.scores),
            "readable": readable,
            "unanswered": self.per_question.count(NOT_ANSWERED),
            "shortened": self.shortened,
        }
        result["verdicts"] = {verdict: verdicts[verdict] for verdict in VERDICTS.values()}
        result["unreadable"] = unreadable
        result["usage"] = self.usage.as_dict()
        return result | about

    def deviations(self) -> list[str]:
        """Return a sentence about the answers whose call failed, or [] if no call failed."""
        failed = len(self.per_question) - len(self.scores)
        if not failed:
            return []
        return [f"{failed} of {len(self.per_question)} answers are left out"]

    def notes(self) -> list[str]:
        """Return the cost of the calls, and the estimated cost of calls that were not made."""
        cached = f" ({self.usage.cached} replies from the cache)"
        lines = []
        if self.usage.calls or self.usage.cached:
            lines.append(f"judge: {usage_text(self.usage, cached)}")
        if self.needed.calls:
            lines.append(f"judge: not made: {usage_text(self.needed)} (estimates)")
        return lines


def judge_for(
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    prompt: str | Path = AUTO,
    parameters: Mapping[str, Any] | None = None,
    llm_cache_key: str = "",
    **limits: Any,
) -> Judge:
    """Return the judge that arguments and environment variables describe.

    Args:
        model: by default FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20, the official judge.
        base_url: an OpenAI-compatible server. See ``qabench.llm.endpoint.resolve_endpoint``.
        api_key: by default FANOUTQA_OPENAI_API_KEY. Never OPENAI_API_KEY.
        prompt: "official" (the authors' prompt, read from their file), "qabench" (this project's),
            "auto" (official if the authors' file is available), or a path. The file at the path is
            TOML with ``user`` and ``system``, or the user message as plain text. Its fields are
            {question}, {reference} and {answer}.
        parameters: changes to the parameters of a request, which are temperature 0 and seed 31415.
            The value None removes a parameter.
        llm_cache_key: only replies that were cached under this key are reused.
        **limits: concurrency, retries, timeout (seconds per call), max_calls, prices (``Prices``,
            or a pair: the price per million prompt tokens and per million reply tokens).

    Raises:
        InputError: an option that is unknown or out of range, or a prompt that cannot be used.
        SourceUnavailable: prompt="official", and the authors' file is not available.
    """
    # A pair of prices is easier to write in JSON than an object.
    prices = limits.get("prices")
    if prices is not None and not isinstance(prices, Prices):
        limits["prices"] = Prices(*prices)
    caller = caller_for(
        model or os.environ.get(MODEL_VARIABLE) or MODEL, base_url, api_key, **limits
    )
    return Judge(caller, judge_prompt(prompt), merged(PARAMETERS, parameters), llm_cache_key)


def judge_from(options: Any, **named: Any) -> Judge:
    """Call ``judge_for`` with options in a dict or in JSON text, which override ``named``.

    Raises:
        InputError: the options are neither a dict nor JSON text nor None, or a value has another
            type.
    """
    try:
        values = json_of(options) if isinstance(options, str) else options
        if not isinstance(values, Mapping | None):
            raise TypeError(f"it is a {type(values).__name__}")
        return judge_for(**{**named, **(values or {})})
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(
            f"judge is {options!r:.80}; allowed: a dict, or a JSON object, of the judge's options ({error})"
        ) from None


def judge_answers(
    questions: Sequence[str],
    references: Sequence[Any],
    predictions: Sequence[Any],
    judge: Judge,
    progress: Progress | None = None,
) -> Judged:
    """Let a model judge answers.

    Unanswered questions score 0 without a call. Cached replies cost nothing and need no key. This
    function also works inside a running event loop, such as a notebook's.

    There is no official score, only the reason, if calls are needed and there is no key, or if all
    calls failed. If only some calls failed, their answers have no score.

    Raises:
        InputError: see ``Judge.requests``.
        MissingExtra: calls are needed, and the openai package is not installed.
    """
    requests = judge.requests(questions, references, predictions)
    asked = list(requests.values())
    client = client_for(judge.caller)
    unusable = judge.caller.endpoint.why_unusable
    # Without a key, the score is absent. Upstream reports 0, as if all answers were wrong.
    if unusable and (needed := client.plan(asked)).calls:
        return Judged(judge, (), unusable, 0, client.usage([]), needed)
    outcomes = client.complete(asked, progress) if requests else []
    judgments = [NOT_ANSWERED] * len(questions)
    without_reply = []
    for (i, request), outcome in zip(requests.items(), outcomes, strict=True):
        if reply := outcome.reply:
            judgments[i] = read_judgment(reply.text, reply.finish_reason, reply.refusal)
        else:
            judgments[i] = Judgment(None, None, None, outcome.reason or "no reply")
            without_reply.append(request)
    # If some calls fail, their answers are left out. If all fail, the server is the problem.
    absent = None
    if outcomes and len(without_reply) == len(outcomes):
        absent = f"all {len(outcomes)} calls failed: {outcomes[0].reason}"
    n_shortened = 0
    for i in requests:
        n_shortened += len(text_of(predictions[i])) > MAX_ANSWER_CHARACTERS
    return Judged(
        judge,
        tuple(judgments),
        absent=absent,
        shortened=n_shortened,
        usage=client.usage(outcomes),
        needed=client.plan(without_reply),
        models=tuple(models_of(outcomes)),
    )
