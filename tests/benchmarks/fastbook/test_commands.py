"""``qabench fastbook retrieve``: tables, JSON, files, and errors."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.commands import retrieve
from qabench.data.rows import natural_key
from qabench.errors import InputError, QabenchError
from qabench.evaluation import ANSWERED, Evaluation, Record

app = typer.Typer()
app.command()(retrieve)


def call(*arguments: str | Path | int) -> str:
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
    document = json.loads(call("--config", "sample", "--method", "fts", "-k", 10, "-o", run, "--format", "json"))
    (shown,) = document["evaluations"]
    qabench.load_dataset("fastbook", "sample_chunks", split="corpus", cache_dir=str(tmp_path)).to_json(corpus)
    evaluation = evaluate(BENCHMARK, "sample", BENCHMARK.read(run, corpus=corpus))
    assert evaluation.problems == []
    assert shown["scores"] == {name: score.interval.mean for name, score in evaluation.scores().items()}
    assert set(shown["by"]["chapter"]) == {"1", "3"}
    assert run.read_text(encoding="utf-8").startswith("1-1 Q0 1-c")


def test_outputs_are_checked_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(QabenchError, match="file"):
        call("--config", "missing", "-o", tmp_path / "file/run.trec")


def groups_of(chapters: Sequence[str]) -> list[str]:
    records = [Record(str(n), 1, "q", "r", (), "a", ANSWERED, groups={"chapter": [c]}) for n, c in enumerate(chapters)]
    evaluation = Evaluation(
        path="x", task="x", benchmark="fastbook", config="sample", setting="rag", model="m", created="2026",
        status="success", expected=6, available=6, records=records,
    )  # fmt: skip
    return list(evaluation.by_group("chapter"))


def test_chapters_are_in_their_order() -> None:
    chapters = ["13", "2", "2", "2", "10", "1"]
    assert groups_of(chapters) == ["1", "2", "10", "13"]
    names = ["1 pages", "2 pages", "10 pages", "13 pages"]
    assert groups_of([f"{chapter} pages" for chapter in chapters]) == names
    by_case = [sorted(names, key=natural_key) for names in (["math", "Math"], ["Math", "math"])]
    assert by_case[0] == by_case[1]


def test_passages_in_a_csv_file_are_json_lists(tmp_path: Path) -> None:
    path = tmp_path / "passages.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([["id", "passages"], ["1-1", '["a, text", "b"]'], ["1-2", ""], ["1-3", "a text"]])
    assert [row.fields["passages"] for row in BENCHMARK.read(path).rows] == [["a, text", "b"], None, "a text"]
    problems = " ".join(qabench.evaluate_predictions("fastbook", "sample", path).problems)
    assert "1-3 (line 4): the passages are not a list of strings: 'a text'" in problems


def test_ids_instead_of_passages_are_named() -> None:
    rows = [{"id": "1-1", "passages": ["1-c0", "1-c12"]}, {"id": "1-2", "passages": ["See chapter 1-c0."]}]
    evaluation = qabench.evaluate_predictions("fastbook", "sample", rows)
    message = "the passages are ids of chunks, such as '1-c0'; give their texts, or a TREC run"
    assert f"unusable predictions: 1 (1-1 (line 1): {message})" in evaluation.problems


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config", "sample", "--method", "x"], "unknown method 'x'"),
        (["--config", "qrels"], "no questions in 'qrels'; allowed: questions, sample"),
        (["--config", "sample", "--query", "x"], "unknown query 'x'; allowed: question, keywords"),
        (["--config", "sample", "--model", "x"], "the method bm25 uses no model; only dense and colbert do"),
        (["--config", "sample", "--k", "0"], "k is 0; allowed: an integer of at least 1"),
    ],
)
def test_wrong_use_is_an_input_error(arguments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(*arguments)
