"""FanOutQA's factuality judge as an ``evaluate`` metric."""

from __future__ import annotations

from typing import ClassVar

import evaluate

# ``evaluate`` reads the "From:" comments: its error for a missing package shows the address.
from qabench.adapters.metric import MetricModule  # From: git+https://github.com/qabench/qabench
from qabench.benchmarks.fanoutqa import metrics  # From: git+https://github.com/qabench/qabench


class FanoutJudge(MetricModule, evaluate.Metric):
    """Whether answers agree with reference answers, according to a language model.

    The model compares each answer with the reference answer and picks one of six cases: subset,
    superset, same, disagreement, irrelevant differences, no answer. Superset, same and
    irrelevant differences score 1, the others 0.

    Args:
        predictions: a list with the text of the answer to each question, or None for an unanswered
            question, which scores 0 without a call. The judge gets the first 4,000 characters of an
            answer.
        references: the dataset's `answer` column (`rows["answer"]`), or the answers as Python
            objects.
        questions: the text of each question (the dataset's `question` column). Needed unless all
            questions are unanswered.
        model: by default FANOUTQA_JUDGE_MODEL, or gpt-4o-2024-11-20, the official judge.
        base_url: an OpenAI-compatible server. "huggingface" for Hub-hosted models. By default
            FANOUTQA_OPENAI_API_BASE, or OpenAI.
        api_key: the key for ``base_url``. The default is FANOUTQA_OPENAI_API_KEY (never
            OPENAI_API_KEY) for the default server, and the Hub token for "huggingface".
        prompt: "official" (read from the authors' pinned file), "qabench", "auto" (official if that
            file is available), or a file with the fields {question}, {reference} and {answer}.
        judge: a dict of more options: parameters, llm_cache_key, concurrency, retries, timeout,
            max_calls, prices. See qabench.benchmarks.fanoutqa.judge.judge_for.
        per_question: also return each question's score, verdict and the judge's reply.
    Returns:
        gpt: float in [0, 1], the official score: the mean over all questions, in which unanswered
            questions and replies without a verdict count as the official scorer counts them.
            Questions whose judge call failed are left out.
        gpt_readable: float in [0, 1], the mean over readable verdicts and unanswered questions, not
            an official score.
        absent: only if there is no score: {"gpt": the reason}, such as a missing key.
        counts: questions, scored (the n of gpt), readable (the n of gpt_readable), unanswered,
            shortened (answers of more than 4,000 characters).
        verdicts: the number of questions with each verdict.
        unreadable: {"index", "reason"} of each question without a readable verdict: a failed call,
            a refusal, a reply without a letter at its end, a limit that was reached.
        model, models, prompt, usage: the judge, the models that the server reports, the name and
            digest of the prompt, and calls, tokens and cost.
        per_question: with per_question=True, a list of {"score", "readable", "verdict", "reason",
            "reply"}.
    Raises:
        InputError (a ValueError): nothing to score, lists of different lengths, an option that
            cannot be used.
        MissingExtra: calls are needed, and the openai package is not installed.
        SourceUnavailable: prompt="official", and the authors' file is not available.
    Examples:
        >>> import qabench
        >>> metric = qabench.load_metric("fanout_judge")
        >>> result = metric.compute(
        ...     predictions=[None], references=["Paris"], questions=["What is France's capital?"]
        ... )
        >>> result["gpt"], result["counts"]["unanswered"], result["usage"]["calls"]
        (0.0, 1, 0)
    """

    # ``qabench.adapters.declared.Declarations`` describes these attributes.
    BENCHMARK = "fanoutqa"
    GROUP = "judge"
    KEYS: ClassVar = {"gpt": "gpt", "gpt_readable": "gpt_readable"}
    OPTIONAL_KEYS = ("gpt", "gpt_readable")
    COLUMNS: ClassVar = {"questions": "question"}
    OPTIONS: ClassVar = {
        "model": "judge_model",
        "base_url": "judge_base_url",
        "api_key": "judge_api_key",
        "prompt": "judge_prompt",
        "judge": "judge",
    }
    # The key in the environment is not sent to a server that the user passes as ``base_url``.
    SCORER_OPTIONS: ClassVar = {"send_environment_key": False}
    ANSWERS = True
    ROW = metrics.row
    TOTALS = metrics.judge_totals
    QUESTION = metrics.judgment_of_question
    URLS = ("https://arxiv.org/abs/2402.14116", "https://github.com/zhudotexe/fanoutqa")
