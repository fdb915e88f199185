"""The parts of the retrieval experiment, and files of retrieved passages: reading, scoring, TREC
runs.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from official_retrieval import fix
from typer.testing import CliRunner

import qabench
from qabench.adapters.files import evaluate
from qabench.benchmarks.fastbook import BENCHMARK
from qabench.benchmarks.fastbook.retrieval import chapter_chunks, cut_as_source, queries, rank_fts, retrieve
from qabench.cli import app
from qabench.errors import InputError, MissingExtra
from qabench.evaluation import EMPTY, MISSING, Evaluation
from qabench.loading_scripts import dataset_table
from qabench.loading_scripts.fastbook import chunks as chunking
from qabench.loading_scripts.fastbook.chunks import doc_id

pieces = st.sampled_from(["w{}", "W{}", "w{}.", "w{}!\u201d", "w{}\n", "w{}\n\n", "e.g. w{}", "w{},", "(w{})"])


@given(st.lists(pieces, max_size=60), st.integers(1, 30), st.data())
def test_chunks_have_all_words_within_their_size(parts: list[str], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    text = " ".join(part.format(i) for i, part in enumerate(parts))
    chunks = chunking.cut(text, size, overlap)
    spans = chunking.cut_spans(text, size, overlap)
    assert chunks == [text[start:end].strip() for start, end in spans]
    tokens = [match.start() for match in chunking.TOKEN.finditer(text)]
    held = -1  # the last token of the chunks so far
    for start, end in spans:
        inside = [i for i, place in enumerate(tokens) if start <= place < end]
        assert 1 <= len(inside) == len(chunking.TOKEN.findall(text[start:end])) <= size
        assert inside[0] <= held + 1 <= inside[-1] and held + 1 - inside[0] <= overlap
        held = inside[-1]
    assert held == len(tokens) - 1


def test_ends_of_sentences() -> None:
    text = (
        'Dr. Mo saw 3.5 m, e.g. J. Ray. "Why?" (See Fig. 2.) He left... then came back! 4 did.\n'
        "# Head\n\n* one\n  two\nimport x.y"
    )
    parts = [text[start:end] for start, end in chunking.sentences(text)]
    assert "".join(parts) == text
    assert [part.strip() for part in parts] == [
        "Dr. Mo saw 3.5 m, e.g. J. Ray.", '"Why?"', "(See Fig. 2.)", "He left... then came back!", "4 did.", "# Head",
        "* one", "two", "import x.y",
    ]  # fmt: skip


def test_queries_are_unquoted_and_joined_by_id() -> None:
    rows = [{"id": "1-1", "chapter": 1, "question_text": "\"What's 'it'?\""}]
    assert queries(rows, "sample", "question") == [(1, "What's 'it'?")]
    (keywords,) = queries(rows, "sample", "keywords")
    assert keywords[0] == 1 and keywords[1] not in ("", "What's 'it'?")


def test_fts_stays_in_the_chapter_and_breaks_ties_by_position() -> None:
    corpus = {1: ["tide and moon", "moon", "moon", "sun"], 2: ["moon moon moon"]}
    asked = [(1, "moon"), (2, "moon, tide"), (1, "?"), (1, "nothing")]
    ranked = rank_fts(corpus, asked, 10)
    assert [hits.positions for hits in ranked] == [[1, 2, 0], [0], [], []]
    assert ranked[0].scores[0] == ranked[0].scores[1] > ranked[0].scores[2] > 0
    assert rank_fts(corpus, asked[:1], 2)[0].positions == [1, 2]


def test_the_sources_chunker_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llama_index.core.node_parser", None)
    with pytest.raises(MissingExtra, match="pip install llama-index-core"):
        cut_as_source("x")


def call(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_other_programs_read_runs(tmp_path: Path) -> None:
    call("fastbook", "retrieve", "--config", "sample", "--k", "5", "--run", tmp_path / "run")
    text = (tmp_path / "run").read_text(encoding="utf-8")
    for _, lines in itertools.groupby(text.splitlines(), key=lambda line: line.split()[0]):
        _, _, _, ranks, scores, tags = zip(*(line.split() for line in lines), strict=True)
        # Ties are in order of position, also for programs that read scores as 32-bit numbers.
        assert all(a > b for a, b in itertools.pairwise(map(np.float32, scores)))
        assert ranks == ("1", "2", "3", "4", "5")[: len(ranks)] and set(tags) == {"bm25"}
    ir_measures = pytest.importorskip("ir_measures")
    chunks = chapter_chunks("sample")
    rows = [question.row for question in BENCHMARK.load("sample").rows]
    qrels = [
        ir_measures.Qrel(row["id"], document, relevance)
        for row in rows
        for document, relevance in chunking.judgments(row, chunks[row["chapter"]])
    ]
    computed = ir_measures.calc_aggregate([ir_measures.RR @ 5], qrels, ir_measures.read_trec_run(str(tmp_path / "run")))
    reciprocal = []
    for row in passages_of("sample", 5):
        contexts = [fix(context) for part in row["answer_context"] for context in part["context"]]
        relevant = [any(context in fix(chunk) for context in contexts) for chunk in row["passages"]]
        reciprocal.append(1 / (relevant.index(True) + 1) if any(relevant) else 0)
    assert computed[ir_measures.RR @ 5] == pytest.approx(sum(reciprocal) / len(reciprocal))


def means(evaluation: Evaluation) -> dict[str, float]:
    return {name: score.interval.mean for name, score in evaluation.scores().items()}


def passages_of(config: str, k: int = 10) -> list[dict[str, Any]]:
    questions = BENCHMARK.load(config).rows
    predicted = retrieve(questions, config, "bm25", None, k).predicted
    return [
        {"id": question.id, "answer_context": question.row["answer_context"], **predicted[question.id]}
        for question in questions
    ]


def by_metrics(rows: list[dict[str, Any]], k: list[int]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in ("answer_component_mrr", "answer_component_recall"):
        computed = qabench.load_metric(name).compute(
            predictions=[row["passages"] for row in rows], references=[row["answer_context"] for row in rows], k=k
        )
        found |= {key: value for key, value in computed.items() if "@" in key}
    return found


def test_real_scores_equal_metrics_and_runs(mirror: Path, tmp_path: Path) -> None:
    write_run("questions", tmp_path)
    from_run = evaluate(BENCHMARK, None, BENCHMARK.read(tmp_path / "run.txt", corpus=tmp_path / "corpus.jsonl"))
    rows = passages_of("questions")
    assert means(from_run) == means(evaluate(BENCHMARK, None, BENCHMARK.read(rows))) == by_metrics(rows, [10])
    for score in from_run.scores().values():
        assert score.n == 191 and from_run.deviations(score) == []
    assert from_run.records[0].detail["passages"][0]["id"] == rows[0]["documents"][0]


def write_run(config: str, folder: Path) -> list[str]:
    """Write a TREC run and its corpus; return the arguments that name them."""
    call("fastbook", "retrieve", "--config", config, "--run", folder / "run.txt")
    chunks = [
        {"doc_id": doc_id(chapter, i), "text": text}
        for chapter, texts in chapter_chunks(config).items()
        for i, text in enumerate(texts)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(chunk) + "\n" for chunk in chunks), encoding="utf-8")
    return [str(folder / "run.txt"), "--corpus", str(folder / "corpus.jsonl")]


def test_a_run_file_becomes_a_report(tmp_path: Path) -> None:
    run_file, *corpus = write_run("sample", tmp_path)
    arguments = ["report", run_file, "--benchmark", "fastbook", "--config", "sample", "-o", str(tmp_path / "report")]
    assert CliRunner().invoke(app, [*arguments, *corpus], catch_exceptions=False).exit_code == 0
    assert "mrr@10" in (tmp_path / "report" / "report.json").read_text(encoding="utf-8")


def test_imperfect_files_keep_every_question() -> None:
    rows = passages_of("sample")
    ids = [row["id"] for row in rows]
    rows[0]["passages"] = []
    rows[1]["passages"] = "one string"
    rows[2]["id"] = "99-1"
    scored = evaluate(BENCHMARK, "sample", BENCHMARK.read(rows))
    assert [record.status for record in scored.records[:3]] == [EMPTY, MISSING, MISSING]
    assert [record.scores["recall@10"] for record in scored.records[:3]] == [0, 0, 0]
    assert scored.problems == [
        f"questions without a prediction: 1 ({ids[2]})",
        "predictions for unknown questions: 1 (99-1 (line 3))",
        f"unusable predictions: 1 ({ids[1]} (line 2): the passages are not a list of strings: 'one string')",
    ]
    assert scored.scores()["mrr@10"].n == 12


def test_rouge_of_answers_is_not_official() -> None:
    loaded = BENCHMARK.load("sample").rows
    rows = [{"id": question.id, "answer": question.reference} for question in loaded]
    scored = evaluate(BENCHMARK, "sample", BENCHMARK.read(rows), groups=["rouge"])
    assert means(scored) == {"rouge1.fscore": 1, "rouge2.fscore": 1, "rougeL.fscore": 1}
    for score in scored.scores().values():
        assert scored.deviations(score) == ["not a score of the benchmark's authors"]


def test_a_column_of_null_passages_is_no_retrieval() -> None:
    rows = [{"id": question.id, "answer": question.reference} for question in BENCHMARK.load("sample").rows]
    of_table = evaluate(BENCHMARK, "sample", BENCHMARK.read([{"passages": None} | row for row in rows]))
    expected = evaluate(BENCHMARK, "sample", BENCHMARK.read(rows))
    assert means(of_table) == means(expected) == {"rouge1.fscore": 1, "rouge2.fscore": 1, "rougeL.fscore": 1}


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
        ("1-1 Q0 c 2 8 t", "", "documents of the query 1-1 are not in the corpus: c; give"),
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
    document = json.loads(dataset_table("fastbook").open_path("./sample/questions.json").read_text(encoding="utf-8"))
    own.write_text(json.dumps({"questions": document["questions"][:2]}), encoding="utf-8")
    rows = passages_of("sample")[:2]
    scored = evaluate(BENCHMARK, None, BENCHMARK.read(rows), questions=own)
    assert (scored.config, len(scored.records)) == ("custom", 2)
    score = scored.scores()["mrr@10"]
    assert scored.deviations(score) == [
        "config: custom, not the benchmark's questions",
        "data: not the questions of the benchmark's repository",
    ]
