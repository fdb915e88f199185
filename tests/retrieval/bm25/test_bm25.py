"""BM25Index: input, results and errors; datasets, streams, filters, and the stock search methods."""

import contextlib
import copy
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset, IterableDataset, Value

from qabench.errors import InputError
from qabench.retrieval import BM25Index, add_bm25_index
from qabench.retrieval.bm25 import building

TEXTS = ["The cat sat on the mat.", "A dog ran.", "Cats and a dog", "", "the the the"]
ROWS = [
    {"title": "Cats", "text": "cats purr", "chapter": 1, "hard": True},
    {"title": "Dogs", "text": "dogs bark", "chapter": 1, "hard": False},
    {"title": "Lions", "text": "big cats roar", "chapter": 2, "hard": None},
    {"title": "Birds", "text": "birds sing", "chapter": 2, "hard": True},
]


def test_ties_come_by_position() -> None:
    index = BM25Index(["x y"] * 9000 + ["z"])
    assert index.search("x", 5).positions == [0, 1, 2, 3, 4]
    assert index.search("x", 5, mask=[False, True] * 4500 + [True]).positions == [1, 3, 5, 7, 9]
    assert index.search("z", 3).positions == [9000, 0, 1]
    assert len(set(index.search("y x", 9001).scores[:-1])) == 1


def test_a_mask_restricts_results_without_changing_scores() -> None:
    index = BM25Index(TEXTS)
    hits = index.search("dog", 5, mask=[True, False, True, True, False])
    assert hits.positions == [2, 0, 3] and hits.scores == index.scores("dog")[[2, 0, 3]].tolist()
    assert index.search("dog", 5, mask=[False] * 5).positions == []
    for other in ([True], [0, 1, 2, 3, 4], [[True] * 5]):
        with pytest.raises(InputError, match="expected 5 booleans"):
            index.search("dog", mask=other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "bm26"}, "unknown BM25 method 'bm26' .*; allowed: bm25\\+, okapi"),
        ({"k1": -1}, "k1 is -1; it must be finite, and at least 0"),
        ({"k1": math.nan}, "k1 is nan"),
        ({"b": 1.5}, "b is 1.5; it must be from 0 to 1"),
        ({"delta": -0.5}, "delta is -0.5"),
        ({"epsilon": math.inf}, "epsilon is inf"),
        ({"tokenizer": lambda text: [1]}, r"returned \[1\]; expected a list of strings"),
    ],
)
def test_wrong_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BM25Index(TEXTS, **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: BM25Index([]), "nothing to index: there are no documents"),
        (lambda index: BM25Index(["", "..."]), "nothing to index: no document has a term"),
        (lambda index: BM25Index(["a", None]), "document 1 is None; expected a string"),  # type: ignore[list-item]
        (lambda index: BM25Index("a text"), "put it in a list"),
        (lambda index: index.search("dog", 0), "k is 0; it must be at least 1"),
        (lambda index: index.search(None), "expected a string"),
        (lambda index: index.search_batch("dog"), "put it in a list"),
    ],
)
def test_what_cannot_be_indexed_or_searched(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(BM25Index(TEXTS))


@pytest.mark.parametrize(
    ("method", "a_in_first", "a_in_second", "b_in_second"),
    [
        ("lucene", math.log(8 / 3) * 4 / 9, 0, math.log(1.6) * 0.4),
        ("robertson", math.log(5 / 3) * 4 / 9, 0, 0),  # b is in more than half of the documents
        ("atire", math.log(3) * 4 / 3, 0, math.log(1.5) * 1.2),
        ("bm25l", math.log(8 / 3) * 12.6 / 4.1, 0, math.log(1.6) * 33 / 23),
        ("bm25l-paper", math.log(8 / 3) * 6.3 / 4.1, 0, math.log(1.6) * 33 / 23),
        ("bm25+", math.log(4) * 7 / 3, math.log(4), math.log(2) * 2.2),
        # 1/4 of the mean idf, ln(5/3) / 3
        ("okapi", math.log(5 / 3) * 4 / 3, 0, math.log(5 / 3) / 12 * 1.2),
    ],
)
def test_scores_computed_by_hand(method: str, a_in_first: float, a_in_second: float, b_in_second: float) -> None:
    # With k1 = 2 and b = 0.5, the relative lengths are 1.25, 0.75 and 1.
    index = BM25Index(["a a b", "b", "c c"], method, k1=2, b=0.5)
    scores = [*index.scores("a")[:2], index.scores("b")[1]]
    assert scores == pytest.approx([a_in_first, a_in_second, b_in_second], rel=1e-12)


def test_extreme_parameters_stay_finite() -> None:
    for method in ("bm25+", "okapi", "bm25l", "lucene", "atire", "robertson"):
        for k1, b in ((0, 0), (0, 1), (1.5, 1)):
            scores = BM25Index(TEXTS, method, k1=k1, b=b, delta=0).scores("the cat dog")
            assert all(map(math.isfinite, scores)), (method, k1, b)


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_list(ROWS)


def test_one_column_or_several(dataset: Dataset) -> None:
    assert BM25Index.from_dataset(dataset).search("lions", 1).scores == [0]
    index = BM25Index.from_dataset(dataset, ["title", "text"])
    assert index.search("lions", 1).positions == [2]
    assert (index.scores("cats") == BM25Index([f"{r['title']}\n{r['text']}" for r in ROWS]).scores("cats")).all()


def generate() -> Iterator[dict[str, Any]]:
    yield from ROWS


@pytest.mark.parametrize(
    "make",
    [
        lambda dataset: dataset.with_format("numpy"),
        lambda dataset: dataset.cast_column("text", Value("large_string")),
        lambda dataset: dataset.select([3, 2, 1, 0]).select([3, 2, 1, 0]),
        lambda dataset: IterableDataset.from_generator(generate).filter(lambda row: True),
        lambda dataset: iter(ROWS),
    ],
)
def test_datasets_streams_and_rows_give_the_same_index(dataset: Dataset, make: Any) -> None:
    index = BM25Index.from_dataset(make(dataset), filters="chapter")
    assert index.search("big cats", 4) == BM25Index([row["text"] for row in ROWS]).search("big cats", 4)
    assert index.search("cats", 4, where={"chapter": 2}).positions == [2, 3]
    assert index.update(dataset) == (0, 0)


def test_a_stream_is_read_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from qabench.retrieval.bm25 import rows as reading

    monkeypatch.setattr(reading, "CHARACTERS_A_BLOCK", 1000)
    read = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal read
        for number in range(500):
            read += 1
            yield {"text": f"text {number} " + "x" * 90}

    ahead = []
    index = BM25Index.from_dataset(rows(), progress=lambda done: ahead.append(read - done))
    assert len(index) == 500 and set(ahead) == {0}
    monkeypatch.undo()
    whole = BM25Index.from_dataset(list(rows()))
    for query in ("text 7", "499 text 0 250", "text"):
        assert index.search(query, 500) == whole.search(query, 500)
    assert index._scorer.counts.documents.tobytes() == whole._scorer.counts.documents.tobytes()


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS, {"column": "body"}, "row 0 has no 'body'; the columns are title, text, chapter, hard"),
        (
            Dataset.from_list(ROWS),
            {"column": ["title", "body"]},
            "the dataset has no 'body'; the columns are title, text, ch",
        ),
        (ROWS, {"column": ["text", "chapter"]}, "row 0 has 1 in 'chapter'; expected a string"),
        ([*ROWS, {"text": None}], {"empty": "error"}, "row 4 has no text in text; empty='skip' leaves such rows out"),
        (["a text"], {}, "row 0 is 'a text'; expected a dict"),
        (ROWS, {"column": []}, "column is empty"),
        ([{"text": "a", "tags": ["b"]}], {"filters": ["tags"]}, r"row 0: cannot filter by \['b'\]"),
        (ROWS, {"filters": ["section"]}, "row 0 has no 'section'"),
    ],
)
def test_rows_that_cannot_be_indexed_are_named(rows: list[Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BM25Index.from_dataset(rows, **options)


def test_filters(dataset: Dataset) -> None:
    index = BM25Index.from_dataset(dataset, filters=["chapter", "hard", "title"])
    assert index.search("cats", 9, where={"chapter": 1}).positions == [0, 1]
    assert index.search("cats", 9, where={"chapter": [1, 2], "hard": True}).positions == [0, 3]
    assert index.search("cats", 9, where={"hard": None}).positions == [2]
    assert index.search("cats", 9, where={"title": {"Dogs", "Lions"}}).positions == [2, 1]
    assert index.search("cats", 9, where={"chapter": 1}, mask=[False, True, True, True]).positions == [1]
    assert [hits.positions for hits in index.search_batch(["cats"], 9, where={"chapter": 2})] == [[2, 3]]
    with pytest.raises(InputError, match="no document has \"1\" in 'chapter'; the first values are 1, 2"):
        index.search("cats", where={"chapter": "1"})
    with pytest.raises(InputError, match="'section' is not a filter of the index; it has: chapter, hard, title"):
        index.search("cats", where={"section": 1})
    with pytest.raises(InputError, match="where is empty"):
        index.search("cats", where={})


def test_a_filter_is_computed_once(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    index = BM25Index.from_dataset(dataset, filters=["chapter", "hard", "title"])
    wheres: list[dict[str, Any]] = [{"chapter": 1}, {"chapter": [1, 2], "hard": True}, {"title": ["Dogs", "Lions"]}]
    expected = [index.search("cats", 9, where=where) for where in wheres]
    with monkeypatch.context() as patch:
        patch.setattr(building.np, "isin", None)
        assert [index.search("cats", 9, where=where) for where in wheres] == expected
    index.add([ROWS[0]])
    assert index.search("cats", 9, where={"chapter": 1}).positions == [0, 4, 1]
    for title in ("Cats", "Birds", "Dogs", "Lions") * 9:
        for hard in (True, False, None):
            with contextlib.suppress(InputError):
                index.search("cats", where={"title": title, "hard": hard})
    assert len(index._filters._masks) <= building.MASKS_KEPT


@pytest.mark.parametrize("count", [0, 3, 9, 10])
def test_masks_of_few_documents_at_the_end(count: int) -> None:
    index = BM25Index(["a b"] * 5000)
    mask = [False] * (5000 - count) + [True] * count
    assert index.search("a", 9, mask=mask).positions == [*range(5000 - count, 5000)][:9]


def test_the_stock_methods_search_an_attached_index(dataset: Dataset) -> None:
    assert add_bm25_index(dataset, "text", filters=["chapter"]) is dataset
    hits = BM25Index.from_dataset(dataset).search("cats roar", 2)
    assert dataset.list_indexes() == ["text"]
    assert tuple(dataset.search("text", "cats roar", k=2)) == (hits.scores, hits.positions)
    scores, examples = dataset.get_nearest_examples("text", "cats roar", k=2)
    assert (scores, examples["title"]) == (hits.scores, ["Lions", "Cats"])
    assert dataset.get_nearest_examples("text", "cats", k=9, where={"chapter": 2})[1]["title"] == ["Lions", "Birds"]
    assert dataset.search_batch("text", ["cats roar", "dogs"], k=2).total_indices[0] == hits.positions
    assert copy.deepcopy(dataset).with_format("numpy").search("text", "dogs", k=1).indices == [1]
    dataset.drop_index("text")
    assert len(dataset.select([0])) == 1


def test_an_existing_index_needs_its_dataset(dataset: Dataset, tmp_path: Any) -> None:
    index = BM25Index.from_dataset(dataset, ["title", "text"])
    index.save(tmp_path / "index")
    add_bm25_index(dataset, ["title", "text"], index_name="bm25", index=BM25Index.load(tmp_path / "index"))
    assert dataset.search("bm25", "lions", k=1).indices == [2]
    other = Dataset.from_list(ROWS[::-1])
    add_bm25_index(other, index=index)
    assert other.search("title", "lions", k=1).indices == [1] and index.search("lions", 1).positions == [2]
    other.drop_index("title")
    with pytest.raises(InputError, match="method cannot be set for an existing index"):
        add_bm25_index(dataset, index=index, method="okapi")
    assert other.list_indexes() == []
    with pytest.raises(InputError, match=r"attached to a datasets.Dataset, not to a IterableDataset"):
        add_bm25_index(IterableDataset.from_generator(generate))
    with pytest.raises(InputError, match="not to a list"):
        add_bm25_index(ROWS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda index: index.search("moon", 3.0), "k is 3.0; expected an integer"),
        (lambda index: index.search("moon", None), "k is None; expected an integer"),
        (lambda index: index.search_batch(["moon"], True), "k is True; expected an integer"),
        (lambda index: index.remove(0), "positions is 0; expected a list"),
        (lambda index: BM25Index(["moon"], k1="1.5"), "k1 is '1.5'; expected a number"),
        (lambda index: BM25Index(["moon"], b=None), "b is None; expected a number"),
        (lambda index: BM25Index(["moon"], tokenizer="english"), "tokenizer is 'english'; expected a function"),
    ],
)
def test_values_of_a_wrong_type_are_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(BM25Index(["moon", "sun"]))


@pytest.mark.parametrize("allowed", [np.array([1, 3]), pd.Series([1, 3]), range(1, 4, 2), {1, 3}, iter([1, 3])])
def test_filter_values_in_containers(allowed: Any) -> None:
    rows = [{"text": "cat", "chapter": number} for number in (1, 2, 3)]
    index = BM25Index.from_dataset(rows, filters="chapter")
    assert index.search("cat", where={"chapter": allowed}).positions == [0, 2]


def test_names_of_columns_may_be_numpy_s() -> None:
    assert BM25Index.from_dataset([{"text": "red"}], column=[np.str_("text")]).search("red").positions == [0]


def test_a_column_that_is_named_twice() -> None:
    with pytest.raises(InputError, match=r"column is \['text', 'text'\], which names a column twice"):
        BM25Index.from_dataset([{"text": "cat"}], ["text", "text"])
