"""Indexes that change: after any sequence of changes, the scores and hits of an index that is built
anew.
"""

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset, concatenate_datasets
from hypothesis import given
from hypothesis import strategies as st

from qabench.errors import InputError
from qabench.retrieval import BM25Index, Words, add_bm25_index
from qabench.retrieval.bm25.building import TermCounter
from qabench.retrieval.bm25.formulas import METHODS

TEXT = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "the"]), max_size=12).map(" ".join)
ROW = st.fixed_dictionaries({"text": TEXT, "kind": st.integers(0, 3)})
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(ROW, max_size=4)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 99), max_size=3)),
        st.tuples(st.sampled_from(["save", "compact", "update"]), st.none()),
    ),
    max_size=6,
)
QUERIES = ["a the b", "c c d e", "f g unknown", "the"]
ROWS = [{"text": f"word{number} word", "kind": number % 2} for number in range(9)]


def check(index: BM25Index, rows: dict[int, Any], options: dict[str, Any]) -> None:
    """Compare an index with one that is built from its rows, by position."""
    positions = list(rows)
    built = BM25Index.from_dataset(list(rows.values()), filters="kind", empty="index", **options)
    assert index.positions.tolist() == positions and len(index) == len(rows)
    for query, hits in zip(QUERIES, built.search_batch(QUERIES, 5), strict=True):
        found = index.search(query, 5)
        assert found.positions == [positions[place] for place in hits.positions]
        assert found.scores == hits.scores and index.search_batch([query], 5) == [found]
        scores = index.scores(query)
        assert scores[positions].tolist() == built.scores(query).tolist()
        assert np.isneginf(np.delete(scores, positions)).all()
        kind = rows[positions[0]]["kind"]
        where = built.search(query, 5, where={"kind": kind}).positions
        mask = [row in rows and rows[row]["kind"] == kind for row in range(len(scores))]
        assert index.search(query, 5, where={"kind": kind}).positions == [positions[place] for place in where]
        assert index.search(query, 5, mask=mask).positions == [positions[place] for place in where]


@pytest.mark.parametrize("tokenizer", [Words(), Words("english"), str.split])
@pytest.mark.parametrize("method", METHODS)
@given(rows=st.lists(ROW, min_size=1, max_size=12), changes=CHANGES)
def test_any_changes(method: str, tokenizer: Any, rows: list[dict[str, Any]], changes: list[tuple[str, Any]]) -> None:
    options = {"method": method, "tokenizer": tokenizer}
    rows = [{"text": "a b", "kind": 0}, *rows]
    index = BM25Index.from_dataset(rows, filters="kind", empty="index", **options)
    expected = dict(enumerate(rows))
    first = {"text": "b the a", "kind": 1}
    for change, values in [*changes, ("add", [first])]:
        if change == "add":
            expected |= dict(zip(index.add(values), values, strict=True))
        elif change == "remove":
            removed = {list(expected)[number % len(expected)] for number in values}
            remaining = (expected[position]["text"].split() for position in expected.keys() - removed)
            if all({*words} <= {"a", "the"} for words in remaining):  # stop words only: refused
                continue
            index.remove(removed)
            expected = {position: row for position, row in expected.items() if position not in removed}
        elif change == "compact":
            assert index.compact().tolist() == list(expected)
            expected = dict(enumerate(expected.values()))
        elif change == "update":
            expected = dict(enumerate([*list(expected.values())[1:], first]))
            index.update(list(expected.values()))
        else:
            with tempfile.TemporaryDirectory() as folder:
                index.save(Path(folder) / "index")
                index = BM25Index.load(Path(folder) / "index", tokenizer=tokenizer)
    check(index, expected, options)


@pytest.mark.usefixtures("with_numba")
@pytest.mark.parametrize("method", ["okapi", "bm25+"])
def test_large_collections(method: str) -> None:
    generator = np.random.default_rng(0)
    drawn = generator.zipf(1.2, (6000, 30)) % 5000
    rows = [{"text": " ".join(f"t{term}" for term in row), "kind": int(row[0] % 3)} for row in drawn]
    index = BM25Index.from_dataset(rows[:4500], filters="kind", method=method)
    index.search_batch(["t1 t2"])
    index.add(rows[4500:])
    removed = generator.choice(6000, 900, replace=False).tolist()
    index.remove(removed)
    built = BM25Index.from_dataset([rows[i] for i in index.positions], filters="kind", method=method)
    queries = [row["text"] for row in rows[:300]]
    for hits, expected in zip(index.search_batch(queries), built.search_batch(queries), strict=True):
        assert hits.positions == index.positions[expected.positions].tolist() and hits.scores == expected.scores
    assert not set(removed) & set(index.positions.tolist())


def test_only_new_documents_are_tokenized() -> None:
    read = []

    def tokenizer(text: str) -> list[str]:
        read.append(text)
        return text.split()

    index = BM25Index(["a b", "c"], tokenizer=tokenizer)
    assert index.add(["d a"]) == range(2, 3)
    index.remove([0])
    assert index.add(iter(["e"])) == range(3, 4) and read == ["a b", "c", "d a", "e"]


def test_what_cannot_be_done_changes_nothing() -> None:
    index = BM25Index(["a", "b", ""])
    before = index.search("a", 3)
    for change, message in [
        (lambda: index.add(["c", None]), "document 1 is None; expected a string"),
        (lambda: index.add("c"), "put it in a list"),
        (lambda: index.remove([0, 3]), "no document at position 3 can be removed"),
        (lambda: index.remove([-1]), "no document at position -1"),
        (lambda: index.remove([0, "0"]), "the position '0' is not an integer"),
        (lambda: index.remove([False, True, False]), "the position False is not an integer"),
        (lambda: index.remove([0, 1]), "2 of 3\\): no document with a term would be left"),
    ]:
        with pytest.raises(InputError, match=message):
            change()
        assert index.search("a", 3) == before and index.search("c", 1).scores == [0]
    index.remove([1])
    with pytest.raises(InputError, match="position 1 can be removed: it was removed before"):
        index.remove([1])
    assert index.update(["a", ""]) == (0, 0) and index.positions.tolist() == [0, 1]


def test_an_extended_dataset_reuses_the_index_of_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    part, rest = Dataset.from_list(ROWS[:6]), Dataset.from_list(ROWS[6:])
    index = BM25Index.from_dataset(part, filters="kind")
    whole = concatenate_datasets([part, rest])
    counted: list[str] = []
    encode = TermCounter.add
    monkeypatch.setattr(TermCounter, "add", lambda counter, texts: (counted.extend(texts), encode(counter, texts))[1])
    add_bm25_index(whole, index=index)
    assert counted == [row["text"] for row in ROWS[6:]] and whole.search("text", "word8", k=1).indices == [8]
    assert len(index) == 6  # that of the part is not changed
    add_bm25_index(rest, index=index)
    assert rest.search("text", "word8", k=1).indices == [2]


def test_a_copy_of_a_dataset_has_an_index_of_its_own() -> None:
    dataset = add_bm25_index(Dataset.from_list(ROWS), "text")
    copied = dataset.with_format("numpy")
    copied.get_index("text").index.remove([8])
    assert dataset.search("text", "word8", k=1).indices == [8]
    assert 8 not in copied.search("text", "word8", k=9).indices


@pytest.mark.parametrize(
    ("numbers", "added", "removed"),
    [([*range(9)], 0, 0), ([*range(9), 3], 1, 0), ([0, 2, 4, 8], 0, 5), ([1, 0], 2, 9), ([8, 7, 7], 3, 9), ([], 0, 0)],
)
def test_update_compares_rows(numbers: list[int], added: int, removed: int) -> None:
    index = BM25Index.from_dataset(ROWS, filters="kind")
    rows = [ROWS[number] for number in numbers]
    before = copy.copy(index)
    if not rows:
        with pytest.raises(InputError, match="nothing to index: there are no documents"):
            index.update(rows)
        assert len(index) == 9
        return
    assert index.update(Dataset.from_list(rows)) == (added, removed)
    check(index, dict(enumerate(rows)), {})
    assert index.update(rows) == (0, 0) and before.search("word", 9) == BM25Index.from_dataset(ROWS).search("word", 9)


def lazy(rows: list[dict[str, Any]]) -> Any:
    """The rows as a lazy frame of polars."""
    return pytest.importorskip("polars", reason="needs polars").DataFrame(rows).lazy()


@pytest.mark.parametrize("numbers", [[*range(9)], [0, 2, 3], [8, 7], [5, 0, 1]])
@pytest.mark.parametrize(
    "of_rows",
    [
        list,
        iter,
        Dataset.from_list,
        lambda rows: Dataset.from_list(rows).to_iterable_dataset(),
        pa.Table.from_pylist,
        pa.RecordBatch.from_pylist,
        pd.DataFrame,
        lazy,
        lambda rows: lazy(rows).collect(),
    ],
)
def test_update_takes_what_an_index_is_built_of(of_rows: Any, numbers: list[int]) -> None:
    """Frames of polars and tables of Arrow ended in an error of their libraries."""
    index = BM25Index.from_dataset(of_rows(ROWS[:4]), filters="kind")
    rows = [ROWS[number] for number in numbers]
    changes = index.changes(of_rows(rows))
    assert index.update(of_rows(rows)) == changes
    check(index, dict(enumerate(rows)), {})


@pytest.mark.parametrize("of_texts", [list, iter, pd.Series, pa.array, np.array])
def test_update_of_strings(of_texts: Any) -> None:
    texts = [row["text"] for row in ROWS]
    index = BM25Index(of_texts(texts[:4]))
    assert index.update(of_texts(texts)) == (5, 0)
    assert index.search("word8", 1).positions == [8]


def test_only_an_index_of_the_column_can_be_attached() -> None:
    dataset = Dataset.from_dict({"title": ["red planet", "moon"], "text": ["Mars", "Luna"]})
    titles = BM25Index.from_dataset(dataset, "title")
    for column in ("text", "missing", ["title", "text"]):
        with pytest.raises(InputError, match="the index is of the column title, not of"):
            add_bm25_index(dataset, column, index=titles)
    with pytest.raises(InputError, match="the index was built from strings, not from a dataset's columns"):
        add_bm25_index(dataset, "text", index=BM25Index(["Mars"]))
    with pytest.raises(InputError, match="index is a str; expected a BM25Index"):
        add_bm25_index(dataset, "text", index="titles")
    assert list(add_bm25_index(dataset, index=titles)._indexes) == ["title"]
