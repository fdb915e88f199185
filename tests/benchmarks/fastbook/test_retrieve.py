"""The parts of the retrieval experiment, and files of retrieved passages: reading, scoring, TREC runs."""

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
from qabench.benchmarks.fastbook.retrieval import Query, make_queries, parse_method, rank_fts
from qabench.benchmarks.fastbook.study import (
    CHUNKERS,
    Retrieval,
    Study,
    doc_id,
    load_study,
    run,
    run_text,
)
from qabench.cli import app
from qabench.errors import InputError, MissingExtra
from qabench.evaluation import EMPTY, MISSING, Evaluation
from qabench.loading_scripts import open_path
from qabench.loading_scripts.fastbook import chunks as chunking
from qabench.retrieval.bm25.index import Hits

pieces = st.sampled_from(["w{}", "W{}", "w{}.", "w{}!\u201d", "w{}\n", "w{}\n\n", "e.g. w{}", "w{},", "(w{})"])


@given(st.lists(pieces, max_size=60), st.integers(1, 30), st.data())
def test_chunks_have_all_words_within_their_size(parts: list[str], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.none() | st.integers(0, size - 1))
    text = " ".join(part.format(i) for i, part in enumerate(parts))
    chunks = chunking.cut(text, size, overlap)
    most = min(size // 4, 64) if overlap is None else overlap
    spans = chunking.cut_spans(text, size, overlap)
    assert chunks == [text[start:end].strip() for start, end in spans]
    tokens = [match.start() for match in chunking.TOKEN.finditer(text)]
    held = -1  # the last token of the chunks so far
    for start, end in spans:
        inside = [i for i, place in enumerate(tokens) if start <= place < end]
        assert 1 <= len(inside) == len(chunking.TOKEN.findall(text[start:end])) <= size
        assert inside[0] <= held + 1 <= inside[-1] and held + 1 - inside[0] <= most
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


@pytest.mark.parametrize(
    ("size", "overlap", "message"),
    [(0, None, "chunk size is 0; it must be"), (5, 5, "overlap is 5; allowed: 0 to 4"), (5, -1, "overlap is -1")],
)
def test_invalid_sizes_of_chunks(size: int, overlap: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chunking.cut("x", size, overlap)
    with pytest.raises(InputError, match=message):
        load_study("sample", size, overlap)


def test_queries_are_unquoted_and_joined_by_id() -> None:
    rows = [{"id": "1-1", "chapter": 1, "question_text": "\"What's 'it'?\""}]
    assert make_queries(rows, {}, "question") == [Query("1-1", 1, "What's 'it'?")]
    assert make_queries(rows, {"1-1": '"a, b"'}, "keywords") == [Query("1-1", 1, "a, b")]
    with pytest.raises(InputError, match="unknown query 'x'; allowed: question, keywords"):
        make_queries(rows, {}, "x")


def test_fts_stays_in_the_chapter_and_breaks_ties_by_position() -> None:
    corpus = {1: ["tide and moon", "moon", "moon", "sun"], 2: ["moon moon moon"]}
    queries = [Query("a", 1, "moon"), Query("b", 2, "moon, tide"), Query("c", 1, "?"), Query("d", 1, "nothing")]
    found = rank_fts(corpus, queries, 10)
    assert [hits.positions for hits in found] == [[1, 2, 0], [0], [], []]
    assert found[0].scores[0] == found[0].scores[1] > found[0].scores[2] > 0
    assert rank_fts(corpus, queries[:1], 2)[0].positions == [1, 2]


def test_the_sources_chunker_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llama_index.core.node_parser", None)
    with pytest.raises(MissingExtra, match="pip install llama-index-core"):
        CHUNKERS["llama-index"]("x", 5, None)


def test_other_programs_read_runs(tmp_path: Path) -> None:
    study = load_study("sample", chunk_size=40)
    hits = [Hits(r.positions, [2.0] * len(r.positions)) for r in run(study, parse_method("bm25"), 5).hits]
    text = run_text(study.questions, hits, "mytag")
    for _, lines in itertools.groupby(text.splitlines(), key=lambda line: line.split()[0]):
        _, _, _, ranks, scores, tags = zip(*(line.split() for line in lines), strict=True)
        # Ties are in order of position, also for programs that read scores as 32-bit numbers.
        assert all(a > b for a, b in itertools.pairwise(map(np.float32, scores)))
        assert ranks == ("1", "2", "3", "4", "5") and set(tags) == {"mytag"}
    ir_measures = pytest.importorskip("ir_measures")
    (tmp_path / "run").write_text(text, encoding="utf-8")
    qrels = [
        ir_measures.Qrel(row["id"], document, relevance)
        for row in study.questions
        for document, relevance in chunking.judgments(row, study.corpus[row["chapter"]])
    ]
    computed = ir_measures.calc_aggregate([ir_measures.RR @ 5], qrels, ir_measures.read_trec_run(str(tmp_path / "run")))
    reciprocal = []
    for row, ranking in zip(study.questions, hits, strict=True):
        contexts = [fix(context) for part in row["answer_context"] for context in part["context"]]
        chunks = [fix(study.corpus[row["chapter"]][position]) for position in ranking.positions]
        relevant = [any(context in chunk for context in contexts) for chunk in chunks]
        reciprocal.append(1 / (relevant.index(True) + 1) if any(relevant) else 0)
    assert computed[ir_measures.RR @ 5] == pytest.approx(sum(reciprocal) / len(reciprocal))


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
    chunks = [
        {"doc_id": doc_id(chapter, i), "text": text}
        for chapter, texts in study.corpus.items()
        for i, text in enumerate(texts)
    ]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(chunk) + "\n" for chunk in chunks), encoding="utf-8")
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
