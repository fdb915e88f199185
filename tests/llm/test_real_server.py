"""The judge against a real OpenAI-compatible server: ``transformers serve`` with a tiny model made
here.
"""

from pathlib import Path

import pytest
from chat_server import served_model

from qabench.benchmarks.fanoutqa.judge import judge_answers, judge_for
from qabench.data.answers import UNANSWERED


@pytest.mark.integration
def test_the_judge_scores_a_real_models_replies(tmp_path: Path, cache: Path) -> None:
    with served_model(tmp_path) as (base_url, model):
        judge = judge_for(model, base_url, parameters={"max_tokens": 30}, max_calls=30)
        questions, references = [f"q{i} \u00e9\ud800" for i in range(8)], [{"a": i} for i in range(8)]
        predictions = [*(f"answer {i}" for i in range(7)), UNANSWERED]
        run = judge_answers(questions, references, predictions, judge)
        counts = run.as_dict()["counts"]
        # Random weights: almost no reply has a verdict, and the others are listed with the model's
        # text.
        assert counts["questions"] == counts["scored"] == 8
        assert all(judgment.reply for judgment in run.per_question[:7])
        assert (run.usage.calls, run.usage.retried) == (7, 0)
        again = judge_answers(questions, references, predictions, judge)
        assert (again.usage.calls, again.usage.cached, again.per_question) == (0, 7, run.per_question)
