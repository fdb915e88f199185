"""The parts of the retrieval experiment: chunks, queries, full-text search, fusion, TREC files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from official_retrieval import fix, official

from qabench.benchmarks.fastbook import retrieval as chunking
from qabench.benchmarks.fastbook.retrieval import (
    Query,
    make_queries,
    match_expression,
    parse_method,
    rank_fts,
)
from qabench.benchmarks.fastbook.study import CHUNKERS, Study, load_study, run
from qabench.benchmarks.fastbook.trec import qrels_text, run_text
from qabench.errors import InputError, MissingExtra
from qabench.retrieval.bm25.index import Hits

pieces = st.sampled_from(["w{}", "W{}", "w{}.", "w{}!\u201d", "w{}\n", "w{}\n\n", "e.g. w{}", "w{},", "(w{})"])


@given(st.lists(pieces, max_size=60), st.integers(1, 30), st.data())
def test_chunks_have_all_words_within_their_size(parts: list[str], size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.none() | st.integers(0, size - 1))
    text = " ".join(part.format(i) for i, part in enumerate(parts))
    chunks = chunking.cut(text, size, overlap)
    most = chunking.default_overlap(size) if overlap is None else overlap
    spans = chunking.cut_spans(text, size, overlap)
    assert chunks == [text[start:end].strip() for start, end in spans]
    tokens = [match.start() for match in chunking.TOKEN.finditer(text)]
    held = -1  # the last token of the chunks so far
    for start, end in spans:
        inside = [i for i, place in enumerate(tokens) if start <= place < end]
        assert 1 <= len(inside) == len(chunking.TOKEN.findall(text[start:end])) <= size
        assert inside[0] <= held + 1 <= inside[-1]
        assert held + 1 - inside[0] <= most
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


def test_a_chunk_repeats_whole_sentences() -> None:
    text = "One two three. Four five. Six seven. Eight nine ten."
    assert chunking.cut(text, 10, 3) == ["One two three. Four five. Six seven.", "Six seven. Eight nine ten."]
    assert chunking.cut(text, 10, 0) == ["One two three. Four five. Six seven.", "Eight nine ten."]
    assert chunking.cut("a b c d e", 2, 1) == ["a b", "c d", "e"]
    assert chunking.cut(" \n ") == []


@pytest.mark.parametrize(
    ("size", "overlap", "message"),
    [(0, None, "chunk size is 0; it must be"), (5, 5, "overlap is 5; allowed: 0 to 4"), (5, -1, "overlap is -1")],
)
def test_invalid_sizes_of_chunks(size: int, overlap: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        chunking.cut("x", size, overlap)
    with pytest.raises(InputError, match=message):
        load_study("sample", size, overlap)


def test_fts_queries_equal_the_sources() -> None:
    asked = match_expression("deep learning, math, data")
    assert asked == '"deep" OR "learning" OR "math" OR "data"'
    assert match_expression(' "  ,, - ?') == ""


def test_queries_are_unquoted_and_joined_by_id() -> None:
    rows = [{"id": "1-1", "chapter": 1, "question_text": "\"What's 'it'?\""}]
    assert make_queries(rows, {}, "question") == [Query("1-1", 1, "What's 'it'?")]
    assert make_queries(rows, {"1-1": '"a, b"'}, "keywords") == [Query("1-1", 1, "a, b")]
    with pytest.raises(InputError, match="the questions 1-1 have no keywords"):
        make_queries(rows, {}, "keywords")
    with pytest.raises(InputError, match="unknown query 'x'; allowed: question, keywords"):
        make_queries(rows, {}, "x")


def test_fts_stays_in_the_chapter_and_breaks_ties_by_position() -> None:
    corpus = {1: ["tide and moon", "moon", "moon", "sun"], 2: ["moon moon moon"]}
    queries = [Query("a", 1, "moon"), Query("b", 2, "moon, tide"), Query("c", 1, "?"), Query("d", 1, "nothing")]
    found = rank_fts(corpus, queries, 10)
    assert [hits.positions for hits in found] == [[1, 2, 0], [0], [], []]
    assert found[0].scores[0] == found[0].scores[1] > found[0].scores[2] > 0
    assert rank_fts(corpus, queries[:1], 2)[0].positions == [1, 2]


def test_methods_have_default_queries() -> None:
    assert (parse_method("fts").query, parse_method("fts", "question").query) == ("keywords", "question")
    assert parse_method("dense", dense_model="a/b", colbert_model="c").model == "a/b"
    with pytest.raises(InputError, match="unknown method 'tfidf'; allowed: bm25, fts, dense, colbert"):
        parse_method("tfidf")


def test_the_sample_scores_as_the_official_code() -> None:
    study = load_study("sample", chunk_size=60)
    outcome = run(study, parse_method("bm25"), k=3)
    expected = []
    for row, hits in zip(study.questions, outcome.hits, strict=True):
        chunks = study.corpus[row["chapter"]]
        expected.append(official(row["answer_context"], [chunks[position] for position in hits.positions], 3))
    assert list(zip(*outcome.columns.values(), strict=True)) == expected
    assert list(outcome.intervals) == ["all", "1", "3"]
    assert "chunker:sentences-1|chunk_size:60|overlap:15|method:bm25" in outcome.signature
    again = run(study, parse_method("bm25"), k=3)
    assert again.as_dict() == outcome.as_dict()


def test_the_real_study(mirror: Path) -> None:
    study = load_study()
    assert {chapter: len(chunks) for chapter, chunks in study.corpus.items()} == {
        1: 55, 2: 37, 4: 48, 8: 21, 9: 45, 10: 23, 13: 29,
    }  # fmt: skip
    for method, mrr, recall in (("fts", 0.525852, 0.897600), ("bm25", 0.536720, 0.856326)):
        outcome = run(study, parse_method(method))
        assert (outcome.scores.mrr(10), outcome.scores.recall(10)) == pytest.approx((mrr, recall), abs=5e-7)


def test_the_published_scores_from_the_sources_chunks(mirror: Path) -> None:
    pytest.importorskip("llama_index.core", reason="needs llama-index-core")
    study = load_study(chunker="llama-index")
    assert len(study.corpus[1]) == 57
    scores = run(study, parse_method("fts")).scores
    # As published on 2024-12-13: the sums and means of 191 questions.
    assert sum(score or 0 for score in scores.mrr_per_question(10)) == pytest.approx(96.54365, abs=5e-6)
    assert sum(score or 0 for score in scores.recall_per_question(10)) == pytest.approx(163.94166, abs=1e-5)
    assert (scores.mrr(10), scores.recall(10)) == pytest.approx((0.50546, 0.858333), abs=5e-6)


def test_the_sources_chunker_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llama_index.core.node_parser", None)
    with pytest.raises(MissingExtra, match="pip install llama-index-core"):
        CHUNKERS["llama-index"]("x", 5, None)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, list[Hits], Path, Path]:
    """A study on the sample with ties, its run and its qrels."""
    study = load_study("sample", chunk_size=40)
    hits = run(study, parse_method("bm25"), k=5).hits
    hits = [Hits(found.positions, [2.0] * 3 + [1e-3] * (len(found.positions) - 3)) for found in hits]
    folder = tmp_path_factory.mktemp("trec")
    (folder / "run.txt").write_text(run_text(study.questions, hits, "my tag"), encoding="utf-8")
    (folder / "qrels.txt").write_text(qrels_text(study.questions, study.corpus), encoding="utf-8")
    return study, hits, folder / "run.txt", folder / "qrels.txt"


def by_hand(study: Study, hits: list[Hits]) -> tuple[float, float]:
    """The mean reciprocal rank of the first chunk with a component, and the mean precision at 5."""
    reciprocal = precision = 0.0
    for row, found in zip(study.questions, hits, strict=True):
        chunks = list(map(fix, study.corpus[row["chapter"]]))
        contexts = [fix(context) for part in row["answer_context"] for context in part["context"]]
        held = [any(context in chunks[position] for context in contexts) for position in found.positions]
        reciprocal += 1 / (held.index(True) + 1) if any(held) else 0
        precision += sum(held) / 5
    return reciprocal / len(hits), precision / len(hits)


def test_a_run_keeps_its_order_in_32_bits(files: Any) -> None:
    np = pytest.importorskip("numpy")
    study, _, run_file, qrels_file = files
    lines = [line.split() for line in run_file.read_text(encoding="utf-8").splitlines()]
    assert {len(line) for line in lines} == {6}
    assert {line[5] for line in lines} == {"mytag"}
    for _, of_query in itertools.groupby(lines, key=lambda line: line[0]):
        of_query = list(of_query)
        scores = [np.float32(line[4]) for line in of_query]
        assert all(a > b for a, b in itertools.pairwise(scores))
        assert [line[3] for line in of_query] == [str(i) for i in range(1, len(of_query) + 1)]
    judged = [line.split() for line in qrels_file.read_text(encoding="utf-8").splitlines()]
    assert len(judged) == sum(len(study.corpus[row["chapter"]]) for row in study.questions)


def test_ir_measures_reads_run_and_qrels(files: Any) -> None:
    ir_measures = pytest.importorskip("ir_measures")
    study, hits, run_file, qrels_file = files
    qrels = list(ir_measures.read_trec_qrels(str(qrels_file)))
    ranked = list(ir_measures.read_trec_run(str(run_file)))
    result = ir_measures.calc_aggregate([ir_measures.RR @ 5, ir_measures.P @ 5], qrels, ranked)
    assert (result[ir_measures.RR @ 5], result[ir_measures.P @ 5]) == pytest.approx(by_hand(study, hits))
