"""The verdicts of FanOutQA's judge."""

from __future__ import annotations

from qabench.benchmarks.judging import Judging


class FanOutQAJudging(Judging):
    """The judge's verdict on each answer. The dataset has no labels by people."""

    judge_scores = ("gpt", "gpt_readable")
