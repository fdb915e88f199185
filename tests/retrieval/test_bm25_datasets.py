"""BM25 over datasets: columns, streams, filters, and the stock search methods."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from datasets import Dataset, IterableDataset, Value

from qabench.errors import InputError
from qabench.retrieval import BM25Index, add_bm25_index

ROWS = [
    {"title": "Cats", "text": "cats purr", "chapter": 1, "hard": True},
    {"title": "Dogs", "text": "dogs bark", "chapter": 1, "hard": False},
    {"title": "Lions", "text": "big cats roar", "chapter": 2, "hard": None},
    {"title": "Birds", "text": "birds sing", "chapter": 2, "hard": True},
]


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
    expected = BM25Index([row["text"] for row in ROWS])
    assert index.search("big cats", 4) == expected.search("big cats", 4)
    assert index.search("cats", 4, where={"chapter": 2}).positions == [2, 3]
    index.check_belongs(dataset)


def test_a_stream_is_read_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from qabench.retrieval.bm25 import building

    monkeypatch.setattr(building, "CHARACTERS_A_BLOCK", 1000)
    read = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal read
        for number in range(500):
            read += 1
            yield {"text": f"text {number} " + "x" * 90}

    ahead = []
    index = BM25Index.from_dataset(rows(), progress=lambda done: ahead.append(read - done))
    assert len(index) == 500
    assert set(ahead) == {0}


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ROWS, {"column": "body"}, "row 0 has no 'body'; the columns are title, text, chapter, hard"),
        (ROWS, {"column": ["text", "chapter"]}, "row 0 has no text in text, chapter"),
        ([*ROWS, {"text": None}], {}, "row 4 has no text in text"),
        (["a text"], {}, "row 0 is 'a text'; expected a dict"),
        (ROWS, {"column": []}, "columns is empty"),
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
    with pytest.raises(InputError, match="no document has \"1\" in 'chapter'; the values are 1, 2"):
        index.search("cats", where={"chapter": "1"})
    with pytest.raises(InputError, match="'section' is not a filter of the index; it has: chapter, hard, title"):
        index.search("cats", where={"section": 1})
    with pytest.raises(InputError, match="where is empty"):
        index.search("cats", where={})


def test_the_stock_methods_search_an_attached_index(dataset: Dataset) -> None:
    assert add_bm25_index(dataset, "text", filters=["chapter"]) is dataset
    index = BM25Index.from_dataset(dataset)
    hits = index.search("cats roar", 2)
    assert dataset.list_indexes() == ["text"]
    assert tuple(dataset.search("text", "cats roar", k=2)) == (hits.scores, hits.positions)
    scores, examples = dataset.get_nearest_examples("text", "cats roar", k=2)
    assert (scores, examples["title"]) == (hits.scores, ["Lions", "Cats"])
    assert dataset.get_nearest_examples("text", "cats", k=9, where={"chapter": 2})[1]["title"] == ["Lions", "Birds"]
    batch = dataset.search_batch("text", ["cats roar", "dogs"], k=2)
    assert batch.total_indices[0] == hits.positions
    assert copy.deepcopy(dataset).with_format("numpy").search("text", "dogs", k=1).indices == [1]
    dataset.drop_index("text")
    assert len(dataset.select([0])) == 1


def test_an_existing_index_needs_its_dataset(dataset: Dataset, tmp_path: Any) -> None:
    index = BM25Index.from_dataset(dataset, ["title", "text"])
    index.save(tmp_path / "index")
    add_bm25_index(dataset, "text", index_name="bm25", index=BM25Index.load(tmp_path / "index"))
    assert dataset.search("bm25", "lions", k=1).indices == [2]
    other = Dataset.from_list(ROWS[::-1])
    with pytest.raises(InputError, match="does not belong to this dataset"):
        add_bm25_index(other, index=index)
    with pytest.raises(InputError, match="method cannot be set for an existing index"):
        add_bm25_index(dataset, index=index, method="okapi")
    assert other.list_indexes() == []
    with pytest.raises(InputError, match=r"attached to a datasets.Dataset, not to a IterableDataset"):
        add_bm25_index(IterableDataset.from_generator(generate))
    with pytest.raises(InputError, match="not to a list"):
        add_bm25_index(ROWS)
