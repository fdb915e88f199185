"""The parts of the retrieval experiment: chunks, queries, full-text search, fusion, TREC files."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from official_retrieval import fix

from qabench.benchmarks.fastbook.retrieval import Query, make_queries, parse_method, rank_fts
from qabench.benchmarks.fastbook.study import CHUNKERS, load_study, qrels_text, run, run_text
from qabench.errors import InputError, MissingExtra
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


def test_the_sources_chunker_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llama_index.core.node_parser", None)
    with pytest.raises(MissingExtra, match="pip install llama-index-core"):
        CHUNKERS["llama-index"]("x", 5, None)


def test_other_programs_read_run_and_qrels(tmp_path: Path) -> None:
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
    (tmp_path / "qrels").write_text(qrels_text(study.questions, study.corpus), encoding="utf-8")
    qrels = list(ir_measures.read_trec_qrels(str(tmp_path / "qrels")))
    assert len(qrels) == sum(len(study.corpus[row["chapter"]]) for row in study.questions)
    computed = ir_measures.calc_aggregate([ir_measures.RR @ 5], qrels, ir_measures.read_trec_run(str(tmp_path / "run")))
    reciprocal = []
    for row, ranking in zip(study.questions, hits, strict=True):
        contexts = [fix(context) for part in row["answer_context"] for context in part["context"]]
        chunks = [fix(study.corpus[row["chapter"]][position]) for position in ranking.positions]
        relevant = [any(context in chunk for context in contexts) for chunk in chunks]
        reciprocal.append(1 / (relevant.index(True) + 1) if any(relevant) else 0)
    assert computed[ir_measures.RR @ 5] == pytest.approx(sum(reciprocal) / len(reciprocal))
