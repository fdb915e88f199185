"""Ids and texts of hits, rows without text, and documents without a term of the query."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rank_bm25
from datasets import Dataset, IterableDataset
from hypothesis import given
from hypothesis import strategies as st

from qabench.errors import InputError
from qabench.retrieval import BM25Index, add_bm25_index
from qabench.retrieval.bm25.formulas import METHODS

ROWS = [
    {"docno": "a", "title": "Mars", "text": "the red planet"},
    {"docno": "b", "title": None, "text": " "},
    {"docno": "c", "title": "Io", "text": None},
    {"docno": "d", "title": "", "text": "a moon of a planet"},
]
COLUMNS = ["title", "text"]


def build(rows: Any, **options: Any) -> BM25Index:
    return BM25Index.from_dataset(rows, COLUMNS, ids="docno", **options)


def test_hits_have_ids_and_texts(tmp_path: Path) -> None:
    index = build(Dataset.from_list(ROWS))
    hits = index.search("io moon planet", 3)
    assert hits.positions == [2, 3, 0] and hits.ids == ["c", "d", "a"]
    assert hits.texts == ["Io", "a moon of a planet", "Mars\nthe red planet"]
    assert hits[0] == (2, hits.scores[0]) == next(iter(hits)) and hits[-1] == (0, hits.scores[2])
    (shown,) = hits.tables()
    assert shown.columns == ["rank", "position", "id", "score"] and shown.rows[0][:3] == [1, 2, "c"]
    assert index.search_batch(["io"], 1)[0].ids == ["c"] and index.ids == ["a", "c", "d"]
    index.save(tmp_path / "index")
    loaded = BM25Index.load(tmp_path / "index")
    assert loaded.search("io moon planet", 3).ids == ["c", "d", "a"] and loaded.skipped == 1
    with pytest.raises(InputError, match=r"the index stores no texts: .* add_bm25_index\(dataset, index=index\)"):
        _ = loaded.search("moon").texts
    dataset = add_bm25_index(Dataset.from_list(ROWS), index=loaded, index_name="bm25")
    attached = dataset.get_index("bm25")
    assert attached.index.search("moon", 1).texts == ["a moon of a planet"]
    attached.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes()[:8] == (tmp_path / "index").read_bytes()[:8]
    assert pickle.loads(pickle.dumps(index)).search("moon", 1).ids == ["d"]


def test_without_ids_positions_are_the_ids() -> None:
    hits = BM25Index(["a", "b"]).search("b", 1)
    assert hits.ids == ["1"]
    with pytest.raises(InputError, match="the index stores no texts"):
        _ = hits.texts


def test_ids_follow_the_documents() -> None:
    index = build(ROWS)
    assert index.add([{"docno": 7, "title": "Io", "text": None}, ROWS[1] | {"docno": "x"}]) == range(4, 6)
    index.remove([0])
    assert index.search("io", 2).ids == ["c", "7"] and len(index) == 3 and index.skipped == 3
    assert index.compact().tolist() == [2, 3, 4] and index.search("io", 2).positions == [0, 2]
    assert index.search("io", 2).ids == ["c", "7"]
    changed = [*ROWS[:3], ROWS[3] | {"docno": "other"}]
    assert index.update(changed) == (3, 3)
    assert index.positions.tolist() == [0, 2, 3] and index.ids == ["a", "c", "other"]
    assert index.update(changed) == (0, 0) and index.changes(ROWS) == (1, 1)  # another id is another document
    assert index.add([ROWS[1] | {"docno": "y"}]) == range(4, 5) and len(index) == 3


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROWS[0], ROWS[0]], "the id 'a' is repeated"),
        ([ROWS[0] | {"docno": None}], "row 0 has no id in 'docno': expected a string or an integer, not None"),
        ([ROWS[0] | {"docno": ""}], "row 0 has no id in 'docno'"),
        ([ROWS[0] | {"docno": True}], "row 0 has no id in 'docno'"),
        ([{"title": "a", "text": "b"}], "row 0 has no 'docno'; the columns are title, text"),
    ],
)
def test_ids_that_cannot_be_used(rows: list[Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(rows)


def test_rows_without_text() -> None:
    skipping = build(ROWS)
    assert (len(skipping), skipping.skipped, skipping.positions.tolist()) == (3, 1, [0, 2, 3])
    assert "rows skipped or removed" in str(skipping) and np.isneginf(skipping.scores("io")[1])
    assert skipping.search("io", 9).positions == [2, 0, 3]
    assert skipping.search("planet", mask=[True, True, True, False]).positions == [0, 2]
    with pytest.raises(InputError, match="row 1 has no text in title, text; empty='skip' leaves such rows out"):
        build(ROWS, empty="error")
    indexing = build(ROWS, empty="index")
    texts = ["Mars\nthe red planet", "", "Io", "a moon of a planet"]
    assert indexing.scores("a planet").tolist() == BM25Index(texts).scores("a planet").tolist()
    tokens = [text.lower().split() for text in texts]
    expected = rank_bm25.BM25Plus(tokens).get_scores(["a", "planet"])
    assert indexing.scores("a planet").tolist() == expected.tolist()
    with pytest.raises(InputError, match=r"unknown value of empty= 'drop'.*allowed: skip, error, index"):
        build(ROWS, empty="drop")
    with pytest.raises(InputError, match="nothing to index: no document has a term"):
        build(ROWS[1:2])


@pytest.mark.parametrize(
    "rows",
    [pd.DataFrame(ROWS), pa.Table.from_pylist(ROWS), Dataset.from_list(ROWS), iter(ROWS),
     IterableDataset.from_generator(lambda: iter(ROWS))],
)  # fmt: skip
def test_frames_tables_and_streams(rows: Any) -> None:
    index = build(rows)
    assert index.ids == ["a", "c", "d"] and index.search("io moon", 3) == build(ROWS).search("io moon", 3)


def test_missing_cells_of_frames() -> None:
    frame = pd.DataFrame({"text": ["a", float("nan"), None, pd.NA, "b"], "n": [1, 2, 3, 4, 5]})
    index = BM25Index.from_dataset(frame, ids="n")
    assert index.positions.tolist() == [0, 4] and index.ids == ["1", "5"]
    with pytest.raises(InputError, match="the frame has no 'body'; the columns are text, n"):
        BM25Index.from_dataset(frame, "body")


TEXTS = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=6).map(" ".join), min_size=1, max_size=20)


@pytest.mark.parametrize("method", METHODS)
@given(texts=TEXTS, query=st.lists(st.sampled_from("abcxy"), max_size=4), k=st.integers(1, 9), mask=st.randoms())
def test_only_documents_with_a_term(method: str, texts: list[str], query: list[str], k: int, mask: Any) -> None:
    index = BM25Index([*texts, "g"], method)
    allowed = [mask.random() < 0.7 for _ in range(len(index))]
    scores = index.scores(" ".join(query))
    matching = [
        position
        for position, text in enumerate([*texts, "g"])
        if allowed[position] and not {*query}.isdisjoint(text.split())
    ]
    expected = sorted(matching, key=lambda position: (-scores[position], position))[:k]
    hits = index.search(" ".join(query), k, mask=allowed, matching_only=True)
    assert hits.positions == expected and hits.scores == scores[expected].tolist()
    assert index.search_batch([" ".join(query)], k, mask=allowed, matching_only=True) == [hits]


@pytest.mark.usefixtures("with_numba")
@pytest.mark.parametrize("method", ["okapi", "bm25+", "robertson"])
def test_only_documents_with_a_term_of_many(method: str) -> None:
    drawn = np.random.default_rng(0).zipf(1.3, (6000, 20)) % 3000
    texts = [" ".join(f"t{term}" for term in row) for row in drawn]
    index = BM25Index(texts, method)
    queries = ["t1 t2 t3", "t2999 t2998", "t7 t2500 t2499 t2501", "unknown", ""]
    for query, hits in zip(queries, index.search_batch(queries, 50, matching_only=True), strict=True):
        scores = index.scores(query)
        matching = [place for place, text in enumerate(texts) if not {*query.split()}.isdisjoint(text.split())]
        expected = sorted(matching, key=lambda place: (-scores[place], place))[:50]
        assert hits.positions == expected and hits.scores == scores[expected].tolist()
        assert index.search(query, 50, matching_only=True) == hits


def test_matching_rows_of_a_dataset_and_of_rank_bm25() -> None:
    dataset = add_bm25_index(Dataset.from_list(ROWS), COLUMNS, index_name="bm25")
    assert dataset.get_nearest_examples("bm25", "moon", k=9, matching_only=True)[1]["docno"] == ["d"]
    assert dataset.get_nearest_examples("bm25", "zebra", k=9, matching_only=True).scores == []
    index = BM25Index(["a b", "b", "c"], backend="rank_bm25")
    assert sorted(index.search("a c", 3, matching_only=True).positions) == [0, 2]
    assert index.search("a c", 3, mask=[True, True, False], matching_only=True).positions == [0]
    assert index.search("zebra", 3, matching_only=True).positions == []
