"""Files of retrieved passages: reading, scoring, TREC runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.retrieval import parse_method
from qabench.benchmarks.fastbook.study import Retrieval, Study, corpus_text, doc_id, load_study, run, run_text
from qabench.cli import app
from qabench.errors import InputError
from qabench.evaluation import EMPTY, MISSING, Evaluation
from qabench.loading_scripts import open_path


def means(evaluation: Evaluation) -> dict[str, float]:
    return {name: score.interval.mean for name, score in evaluation.scores().items()}


def passages_of(study: Study, k: int = 10) -> list[dict[str, Any]]:
    hits = run(study, parse_method("bm25"), k).hits
    return [
        {"id": row["id"], "passages": [study.corpus[row["chapter"]][position] for position in found.positions]}
        for row, found in zip(study.questions, hits, strict=True)
    ]


def by_metrics(rows: list[dict[str, Any]], study: Study, k: list[int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("answer_component_mrr", "answer_component_recall"):
        computed = qabench.load_metric(name).compute(
            predictions=[row["passages"] for row in rows], references=study.references, k=k
        )
        found |= {key: value for key, value in computed.items() if "@" in key}
    return found


def test_real_scores_equal_metrics_and_study(mirror: Path, tmp_path: Path) -> None:
    study = load_study()
    outcome = run(study, parse_method("bm25"))
    write_run(study, outcome, tmp_path)
    from_run = evaluate(BENCHMARK, None, BENCHMARK.read(tmp_path / "run.txt", corpus=tmp_path / "corpus.jsonl"))
    rows = passages_of(study)
    assert means(from_run) == means(evaluate(BENCHMARK, None, BENCHMARK.read(rows))) == by_metrics(rows, study, [10])
    assert means(from_run) == {"mrr@10": outcome.scores.mrr(10), "recall@10": outcome.scores.recall(10)}
    for score in from_run.scores().values():
        assert score.n == 191 and from_run.deviations(score) == []
    first = from_run.records[0].detail["passages"][0]
    assert first["id"] == doc_id(1, outcome.hits[0].positions[0])


def write_run(study: Study, outcome: Retrieval, folder: Path) -> list[str]:
    """Write a TREC run and its corpus; return the arguments that name them."""
    (folder / "run.txt").write_text(run_text(study.questions, outcome.hits, "bm25"), encoding="utf-8")
    (folder / "corpus.jsonl").write_text(corpus_text(study.corpus), encoding="utf-8")
    return [str(folder / "run.txt"), "--corpus", str(folder / "corpus.jsonl")]


def test_a_run_file_becomes_a_report(tmp_path: Path) -> None:
    study = load_study("sample", chunk_size=60)
    run_file, *corpus = write_run(study, run(study, parse_method("bm25")), tmp_path)
    arguments = ["report", run_file, "--benchmark", "fastbook", "--config", "sample", "-o", str(tmp_path / "report")]
    assert CliRunner().invoke(app, [*arguments, *corpus], catch_exceptions=False).exit_code == 0
    assert "mrr@10" in (tmp_path / "report" / "report.json").read_text(encoding="utf-8")


def test_imperfect_files_keep_every_question() -> None:
    study = load_study("sample", chunk_size=60)
    rows = passages_of(study)
    rows[0]["passages"] = []
    rows[1]["passages"] = "one string"
    rows[2]["id"] = "99-1"
    scored = evaluate(BENCHMARK, "sample", BENCHMARK.read(rows))
    assert [record.status for record in scored.records[:3]] == [EMPTY, MISSING, MISSING]
    assert [record.scores["recall@10"] for record in scored.records[:3]] == [0, 0, 0]
    assert scored.problems == [
        f"questions without a prediction: 1 ({study.questions[2]['id']})",
        "predictions for unknown questions: 1 (99-1 (line 3))",
        f"unusable predictions: 1 ({study.questions[1]['id']} (line 2): the passages are not a list of strings: "
        "'one string')",
    ]
    assert scored.scores()["mrr@10"].n == 12


def test_rouge_of_answers_is_not_official() -> None:
    study = load_study("sample", chunk_size=60)
    rows = [{"id": row["id"], "answer": row["gold_standard_answer"]} for row in study.questions]
    scored = evaluate(BENCHMARK, "sample", BENCHMARK.read(rows), groups=["rouge"])
    assert means(scored) == {"rouge1.fscore": 1, "rouge2.fscore": 1, "rougeL.fscore": 1}
    for score in scored.scores().values():
        assert scored.deviations(score) == ["not a score of the benchmark's authors"]


def test_documents_are_ordered_by_score_then_rank_then_line(tmp_path: Path) -> None:
    lines = ["a 2 1.5", "b 1 1.5", "c 2 1.5", "d 9 3"]
    (tmp_path / "run").write_text("".join(f"1-1 Q0 {line} t\n" for line in lines), encoding="utf-8")
    texts = "".join(json.dumps({"id": name, "text": name.upper()}) + "\n" for name in "abcd")
    (tmp_path / "corpus").write_text(texts, encoding="utf-8")
    (prediction,) = BENCHMARK.read(tmp_path / "run", corpus=tmp_path / "corpus").rows
    assert prediction.fields["passages"] == ["D", "B", "A", "C"]


@pytest.mark.parametrize(
    ("line", "corpus", "message"),
    [
        ("1-1 Q0 a x 2.0 t", "", "run, line 2: '1-1 Q0 a x 2.0 t' is not a line of a TREC run; its columns must be"),
        ("1-1 Q0 b 2 8 t", "", "line 2: the document b is repeated for the query 1-1"),
        ("1-1 Q0 c 2 8 t", "", "1 documents of .* are not in the corpus: c; give"),
        ("", '{"docno": "a"}', "corpus, line 2: the field 'text' is missing"),
        ("", '{"docno": "b", "text": ""}', "corpus, line 2: the document 'b' is repeated"),
    ],
)
def test_broken_runs_and_corpora(tmp_path: Path, line: str, corpus: str, message: str) -> None:
    (tmp_path / "run").write_text(f"1-1 Q0 b 1 9 t\n{line}\n", encoding="utf-8")
    (tmp_path / "corpus").write_text(f'{{"docno": "b", "text": "B"}}\n{corpus}\n', encoding="utf-8")
    with pytest.raises(InputError, match=message):
        BENCHMARK.read(tmp_path / "run", corpus=tmp_path / "corpus")
    with pytest.raises(InputError, match="If it is a TREC run, also give the corpus"):
        BENCHMARK.read(tmp_path / "run")


def test_custom_questions(tmp_path: Path) -> None:
    own = tmp_path / "questions.json"
    document = json.loads(open_path("fastbook", "./sample/questions.json").read_text(encoding="utf-8"))
    own.write_text(json.dumps({"questions": document["questions"][:2]}), encoding="utf-8")
    rows = passages_of(load_study("sample", chunk_size=60))[:2]
    scored = evaluate(BENCHMARK, None, BENCHMARK.read(rows), questions=own)
    assert (scored.config, len(scored.records)) == ("custom", 2)
    score = scored.scores()["mrr@10"]
    assert scored.deviations(score) == [
        "config: custom, not the benchmark's questions",
        "data: the questions are not those of the benchmark's repository",
    ]
