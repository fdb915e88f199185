"""``qabench fastbook retrieve``: tables, JSON, files, and errors."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.commands import retrieve
from qabench.errors import InputError

app = typer.Typer()
app.command()(retrieve)


def call(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_tables_of_the_sample() -> None:
    text = call("--config", "sample") + call("--config", "sample", "--method", "fts")
    for part in (
        "bm25 (question)",
        "fts (keywords)",
        "By chapter",
        "recall@10",
        "fastbook_retrieval|config:sample|data:",
    ):
        assert part in text


def test_runs_are_scored_with_the_chunks_of_the_dataset(tmp_path: Path) -> None:
    run, corpus = tmp_path / "new/run.trec", tmp_path / "corpus.jsonl"
    shown = json.loads(call("--config", "sample", "--method", "fts", "--run", run, "--format", "json"))
    qabench.load_dataset("fastbook", "sample_chunks", split="corpus", cache_dir=str(tmp_path)).to_json(corpus)
    evaluation = evaluate(BENCHMARK, "sample", BENCHMARK.read(run, corpus=corpus))
    assert evaluation.problems == []
    assert shown["scores"] == {name: score.interval.mean for name, score in evaluation.scores().items()}
    assert set(shown["by"]["chapter"]) == {"1", "3"}
    assert run.read_text(encoding="utf-8").startswith("1-1 Q0 1-c")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "sample", "--method", "x"], "unknown method 'x'"),
        (["--config", "qrels"], "no questions in 'qrels'; allowed: questions, sample"),
        (["--config", "sample", "--query", "x"], "unknown query 'x'; allowed: question, keywords"),
        (["--config", "sample", "--model", "x"], "the method bm25 has no model; allowed for dense and colbert"),
        (["--config", "sample", "--k", "0"], "k is 0; allowed: an integer of at least 1"),
    ],
)
def test_wrong_use_is_an_input_error(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(*arguments)
