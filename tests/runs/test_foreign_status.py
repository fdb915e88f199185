"""Logs of other tasks whose scorers leave out the answer or the value: status and scores are those
of the harness.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.evaluation import Evaluation
from qabench.runs.sources import read_evaluations

N = 12


def scored_log(folder: Path, score_of: Callable[[int], Any], text: str = "an answer", epochs: int = 1) -> Path:
    """Write a log of Inspect of ``N`` questions whose scorer returns ``score_of(number)``."""
    from inspect_ai import Task
    from inspect_ai import eval as inspect_eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import accuracy, scorer

    @scorer(metrics=[accuracy()])
    def graded() -> Any:
        async def score(state: Any, target: Any) -> Any:
            return score_of(int(state.sample_id))

        return score

    outputs = [ModelOutput.from_content("mockllm/model", text) for _ in range(N * epochs)]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    task = Task(MemoryDataset([Sample(id=i, input=f"question {i}") for i in range(N)]), scorer=graded(), name="any")
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = inspect_eval(task, model=model, log_dir=str(folder), display="none", epochs=epochs)
    return Path(log.location)


def run(*arguments: object) -> str:
    # Wide enough for notes on one line.
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, list(map(str, arguments)), catch_exceptions=False).output


def read(path: Path) -> Evaluation:
    (evaluation,) = read_evaluations([path]).evaluations
    return evaluation


@pytest.mark.parametrize("answers", ["none", "only of right answers"])
@pytest.mark.parametrize("text", ["an answer", ""])
def test_scores_do_not_need_the_optional_answer(tmp_path: Path, answers: str, text: str) -> None:
    from inspect_ai.scorer import Score

    def score_of(number: int) -> Any:
        is_right = number % 3 > 0
        return Score(value="C" if is_right else "I", answer="x" if is_right and answers != "none" else None)

    evaluation = read(scored_log(tmp_path, score_of, text))
    assert evaluation.scores()["graded"].value == pytest.approx(8 / N)
    assert evaluation.scores()["graded"].n == N
    assert evaluation.counts()["answered" if text else "empty"] == N


def test_reasons_of_scorers_are_shown(tmp_path: Path) -> None:
    from inspect_ai.scorer import Score

    def score_of(number: int) -> Any:
        return Score.unscored(reason="refusal") if number < 3 else Score(value="C")

    path = scored_log(tmp_path, score_of)
    assert "3 x graded: refusal (0, 1, 2)" in read(path).problem_sentences()
    assert read(path).scores()["graded"].n == N - 3


def test_undefined_values_are_counted_in_text(tmp_path: Path) -> None:
    from inspect_ai.scorer import Score

    some = scored_log(tmp_path / "a", lambda i: Score.unscored() if i < 5 else Score(value=float(i % 2)))
    whole = scored_log(tmp_path / "b", lambda i: Score(value=float(i % 3 == 0)))
    sentence = f"left out of graded: 5 of {N} records have no value"
    assert sentence in run("score", some) and sentence not in run("score", whole)
    assert sentence in run("compare", some, whole)
    from qabench.report.section import sections_of
    from qabench.report.view import problems_of

    assert sentence in str(problems_of(sections_of([read(some), read(whole)])[0]))
