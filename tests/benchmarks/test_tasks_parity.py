"""The same answers through ``evaluate``, the Inspect scorer and ``qabench score``: equal numbers, to the last digit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="needs the extra run")

import answer_styles
from scripted_model import Reply, figures, in_order, run, text
from typer.testing import CliRunner

import qabench
from qabench.answers import UNANSWERED, loads
from qabench.benchmarks.fanoutqa.predictions import evaluate, load_questions
from qabench.benchmarks.fanoutqa.tasks import fanoutqa_closed_book
from qabench.cli import app
from qabench.generations import read_generations
from qabench.runs.export import generations
from qabench.runs.log import read_run

FAULTS: dict[int, Reply] = {
    3: "",
    5: text("I cannot speak about The Hobbit, 1998.", "content_filter"),
    7: TimeoutError(),
    8: text("cut off in the mid", "max_tokens"),
}


def compare(config: str, ids: Sequence[str], replies: Sequence[Reply], lemmatizer: str, tmp_path: Path) -> int:
    """Scores the replies to the questions in all three ways; the number of figures that were compared."""
    questions = load_questions("fanoutqa", config)
    rows = [questions.by_id[i] for i in ids]
    by_question = {row["question"]: reply for row, reply in zip(rows, replies, strict=True)}

    def script(messages: Any) -> Reply:
        return by_question[messages[0].text.partition("\nQuestion: ")[2]]

    log = run(fanoutqa_closed_book(config, ids=list(ids), lemmatizer=lemmatizer), script, tmp_path)
    inspect = figures(log)
    per_sample = [(sample.scores or {})["fanoutqa"] for sample in in_order(log)]
    assert [sample.id for sample in in_order(log)] == list(ids)
    for name, mean in inspect.items():
        assert mean == sum(score.value[name] for score in per_sample) / len(ids)

    # The stock metrics, on what was scored.
    answers = [None if isinstance(reply, Exception) else reply for reply in replies]
    predictions = [score.answer for score in per_sample]
    assert [p for p, a in zip(predictions, answers, strict=True) if isinstance(a, str)] == [
        a for a in answers if isinstance(a, str)
    ]
    references = [row["answer"] for row in rows]
    acc = qabench.load_metric("fanout_acc").compute(
        predictions=predictions, references=references, lemmatizer=lemmatizer
    )
    rouge = qabench.load_metric("fanout_rouge").compute(predictions=predictions, references=references)
    stock = {"acc.loose": acc["loose"], "acc.strict": acc["strict"]}
    stock |= {f"{kind}.fscore": rouge[kind]["fscore"] for kind in ("rouge1", "rouge2", "rougeL")}
    assert inspect == stock

    # The command line, on the exported file.
    file = tmp_path / "generations.jsonl"
    file.write_text(generations(read_run(log.location)))
    report = score_with_command_line(config, file, lemmatizer, only_answered=len(rows) < len(questions.rows))
    if len(rows) == len(questions.rows):
        assert report["scores"]["acc"] == {"loose": inspect["acc.loose"], "strict": inspect["acc.strict"]}
        assert {f"{k}.fscore": v["fscore"] for k, v in report["scores"]["rouge"].items()} == {
            name: value for name, value in inspect.items() if name.startswith("rouge")
        }
        assert per_sample[0].metadata and report["signatures"] == per_sample[0].metadata["signatures"]
    evaluation = evaluate(read_generations(file), questions, only_score_answered=len(rows) < len(questions.rows))
    answered = {
        i for i, p in zip(evaluation.joined.ids, evaluation.joined.predictions, strict=True) if p is not UNANSWERED
    }
    assert answered == {i for i, p in zip(ids, predictions, strict=True) if p is not None}
    return len(inspect) * (len(ids) + 1)


def score_with_command_line(config: str, file: Path, lemmatizer: str, only_answered: bool) -> dict[str, Any]:
    options = ["--only-score-answered"] if only_answered else []
    result = CliRunner().invoke(
        app, ["score", "fanoutqa", config, str(file), "--lemmatizer", lemmatizer, "--json", *options]
    )
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("style", answer_styles.STYLES)
def test_the_sample_in_every_style(style: Callable[..., str], tmp_path: Path, compared: Callable[[str], None]) -> None:
    rows = load_questions("fanoutqa", "sample").rows
    replies: list[Reply] = list(answer_styles.answers([{"answer": loads(row["answer"])} for row in rows], style))
    for position, fault in FAULTS.items():
        replies[position] = fault
    n = compare("sample", [row["id"] for row in rows], replies, "simplemma", tmp_path)
    compared(f"{n} figures of the 12 questions of the sample, style {style.__name__}")


def test_real_questions(mirror: Path, spacy_model: str, tmp_path: Path, compared: Callable[[str], None]) -> None:
    rows = load_questions("fanoutqa", "dev").rows[:70]
    questions = [{"answer": loads(row["answer"])} for row in rows]
    styles = [answer_styles.answers(questions, style) for style in answer_styles.STYLES]
    replies: list[Reply] = [styles[i % len(styles)][i] for i in range(len(rows))]
    n = compare("dev", [row["id"] for row in rows], replies, "spacy", tmp_path)
    compared(f"{n} figures of {len(rows)} real questions in seven styles of answers")
