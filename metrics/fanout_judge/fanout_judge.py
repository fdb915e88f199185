"""FanOutQA's factuality judge as an ``evaluate`` metric."""

from __future__ import annotations

from typing import Any

import evaluate

from qabench.benchmarks.fanoutqa.judge import judge_from
from qabench.benchmarks.fanoutqa.judge_run import judge_answers
from qabench.errors import InputError
from qabench.metric_module import MetricModule, decoded
from qabench.scoring.judge import is_judged
from qabench.signature import digest

_DESCRIPTION = """
A language model compares each answer with the reference answer and picks one of six cases: subset, superset, same,
disagreement, irrelevant differences, no answer. Superset, same and irrelevant differences score 1, the others 0.
"""
_KWARGS_DESCRIPTION = """
Args:
    predictions: a list with the answer's text for each question; None for an unanswered one, which scores 0 without a
        call. Of longer answers the first 4,000 characters are judged.
    references: the dataset's `answer` column (JSON text), or the answers as Python objects.
    questions: the questions' texts, one each (the dataset's `question` column); needed unless all are unanswered.
    ids: the questions' ids, by which unscored ones are named; without them it is their positions.
    model: by default the one that FANOUTQA_JUDGE_MODEL names, else gpt-4o-2024-11-20, the official one.
    base_url: an OpenAI-compatible server; "huggingface" for Hub-hosted models. By default what
        FANOUTQA_OPENAI_API_BASE names, else OpenAI.
    api_key: by default FANOUTQA_OPENAI_API_KEY, never OPENAI_API_KEY; for "huggingface" the Hub's token.
    prompt: "own", "official" (read from the installed fanoutqa distribution), or a file with the fields {question},
        {reference} and {answer}.
    judge: a dict of further options: parameters, llm_cache_key, reasks, concurrency, retries, timeout, max_calls,
        max_tokens, prices; see qabench.benchmarks.fanoutqa.judge.judge_for.
    per_question: also give each question's score, verdict and the judge's reply.
    references_format: "json" or "python" says which form the references have; "auto" takes them for JSON when all are.
Returns:
    gpt: float in [0, 1], the mean over the questions that are scored.
    official: float in [0, 1], the mean with 0 for the unscored ones: what the official scorer gives.
    absent: only where there is no score: {"gpt": why}, such as that there is no key.
    counts: questions, scored, unscored, unanswered, shortened (longer than what the judge gets). verdicts: how many
        questions got each.
    unscored: {"id" or "index", "reason"} of each question on which there is no verdict: a failed call, a refusal, a
        reply without a letter at its end, a limit that was reached.
    model, models (what the server says it ran), prompt (name and digest), usage (calls, tokens, cost).
    signature: everything the score depends on, in one line.
    deviations: what distinguishes the score from the official one, in sentences; empty if it is official.
    per_question: with per_question=True, a list of {"score", "official", "verdict", "reason", "reply"}.
Raises:
    InputError (a ValueError): nothing to score, lists of unlike length, an option that cannot be used.
    MissingExtra: calls are needed without the openai package, or prompt="official" without fanoutqa.
Examples:
    >>> import qabench
    >>> metric = qabench.load_metric("fanout_judge")
    >>> result = metric.compute(predictions=[None], references=["Paris"], questions=["What is France's capital?"])
    >>> result["gpt"], result["counts"]["unanswered"], result["usage"]["calls"]
    (0.0, 1, 0)
"""


class FanoutJudge(MetricModule, evaluate.Metric):
    """See ``DESCRIPTION`` and ``INPUTS``."""

    BENCHMARK = "fanoutqa"
    DESCRIPTION = _DESCRIPTION
    INPUTS = _KWARGS_DESCRIPTION
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")

    def _compute(
        self,
        predictions: list[str],
        references: list[str],
        questions: list[str] | None = None,
        ids: list[str] | None = None,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prompt: str = "own",
        judge: dict[str, Any] | None = None,
        per_question: bool = False,
        references_format: str = "auto",
    ) -> dict[str, Any]:
        given, answers = decoded(predictions, references, references_format)
        if questions is None:
            if any(map(is_judged, given)):
                raise InputError("questions missing: give the questions' texts, one each, as questions=[...]")
            questions = [""] * len(given)
        questions = list(questions)
        named = {"model": model, "base_url": base_url, "api_key": api_key, "prompt": prompt}
        chosen = judge_from(named | judge if isinstance(judge, dict) else judge or named)
        run = judge_answers(questions, answers, given, chosen)
        result = run.as_dict(ids)
        result |= self.provenance(answers, questions=digest(questions), **chosen.signature())
        if per_question:
            result["per_question"] = run.per_question()
        return result
