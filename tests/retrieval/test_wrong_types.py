"""Every public function of retrieval, called with values of every wrong type: it works, or the error
names the value.
"""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import Dataset, DatasetDict

from qabench.errors import QabenchError
from qabench.retrieval import (
    BM25Index,
    LuceneIndex,
    OpenSearchIndex,
    Words,
    add_bm25_index,
    chunk_text,
    open_engine,
    wiki_content,
    wiki_search,
)

ROWS = [{"text": "a b", "kind": 1, "id": "x"}, {"text": "b c", "kind": 2, "id": "y"}]
VALUES = [
    None, 0, -1, 1.5, 10**30, 1j, float("nan"), True, "x", "", b"x", [], [1], ["x"], [["a", "b"]], [None], {}, {"a": 1},
    {1}, {"x"}, object(), str.split, np.array([1.5]), np.array(["a"]), np.array("a"), Path("x"), range(3), BM25Index,
    [10**30], pa.array(["a"]), Dataset.from_list(ROWS), DatasetDict({"train": Dataset.from_list(ROWS)}),
    pd.DataFrame(ROWS),
]  # fmt: skip
OPTIONS = ("method", "k1", "b", "delta", "epsilon", "tokenizer", "backend", "progress")


def index() -> BM25Index:
    return BM25Index.from_dataset(ROWS, filters="kind", ids="id")


def build(name: str) -> Callable[[Any], Any]:
    return lambda value: BM25Index(["a"], **{name: value})


def build_from(name: str) -> Callable[[Any], Any]:
    return lambda value: BM25Index.from_dataset(ROWS, **{name: value})


def attach(name: str) -> Callable[[Any], Any]:
    return lambda value: add_bm25_index(Dataset.from_list(ROWS), **{name: value})


def refuses(**options: Any) -> Any:
    """Is the method of a client whose server does not have the index."""
    raise QabenchError(f"no index {options['index']!r}")


CALLS: dict[str, Callable[[Any], Any]] = {
    **{f"BM25Index({name}=)": build(name) for name in OPTIONS},
    **{f"from_dataset({name}=)": build_from(name) for name in ("column", "filters", "ids", "empty")},
    **{f"add_bm25_index({name}=)": attach(name) for name in ("column", "index_name", "index", "ids")},
    "BM25Index": BM25Index,
    "from_dataset": BM25Index.from_dataset,
    "scores": lambda value: index().scores(value),
    "search": lambda value: index().search(value),
    "search k": lambda value: index().search("a", value),
    "search mask": lambda value: index().search("a", mask=value),
    "search where": lambda value: index().search("a", where=value),
    "search value": lambda value: index().search("a", where={"kind": value}),
    "search matching_only": lambda value: index().search("a", matching_only=value),
    "search_batch": lambda value: index().search_batch(value),
    "search_batch k": lambda value: index().search_batch(["a"], value),
    "search_batch mask": lambda value: index().search_batch(["a"], mask=value),
    "search_batch where": lambda value: index().search_batch(["a"], where=value),
    "search_batch matching_only": lambda value: index().search_batch(["a"], matching_only=value),
    "add": lambda value: index().add(value),
    "add strings": lambda value: BM25Index(["a"]).add(value),
    "remove": lambda value: index().remove(value),
    "update": lambda value: index().update(value),
    "update strings": lambda value: BM25Index(["a"]).update(value),
    "changes": lambda value: index().changes(value),
    "save": lambda value: index().save(value),
    "load": BM25Index.load,
    "load tokenizer": lambda value: [index().save("saved"), BM25Index.load("saved", tokenizer=value)],
    "Hits": lambda value: index().search("a")[value],
    "add_bm25_index": add_bm25_index,
    "Words": Words,
    "Words stemmer": lambda value: Words(stemmer=value),
    "Words version": lambda value: Words(version=value),
    "terms": Words(),
    "terms of all scripts": Words(version=2),
    "open_engine": open_engine,
    "LuceneIndex": LuceneIndex,
    "OpenSearchIndex": lambda value: OpenSearchIndex(value, "x"),
    "OpenSearchIndex index": lambda value: OpenSearchIndex(SimpleNamespace(field_caps=refuses), value),
    "chunk_text": chunk_text,
    "chunk_text size": lambda value: chunk_text("a b", value),
    "chunk_text separators": lambda value: chunk_text("a b", 2, value),
    "wiki_search": lambda value: value if isinstance(value, str) else wiki_search(value),
    "wiki_search results": lambda value: value if isinstance(value, int) else wiki_search("a", value),
    "wiki_content": lambda value: value if isinstance(value, str) else wiki_content(value),
}


@pytest.mark.parametrize("call", CALLS)
def test_values_of_every_wrong_type_are_named(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in VALUES:
        if call == "BM25Index(progress=)" and value is str.split:
            continue  # a function, which raises
        try:
            CALLS[call](value)
        except QabenchError as error:
            assert str(error)
        except IndexError:
            assert call == "Hits"


def test_an_array_of_arrow_is_a_list_of_strings() -> None:
    texts = pa.chunked_array([["a b"], ["c"]])
    assert BM25Index(texts).search_batch(texts.chunk(1), 1)[0].positions == [1]
    with pytest.raises(QabenchError, match="document 1 is None; expected a string"):
        BM25Index(pa.array(["a", None]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BM25Index([["a", "b"], ["c"]]), r"document 0 is \['a', 'b'\]; .*pass tokenizer=str.split"),
        (lambda: BM25Index(pd.DataFrame(ROWS)), "got a DataFrame. For columns .*: BM25Index.from_dataset"),
        (lambda: BM25Index({"a": "b"}), "got a dict"),
        (lambda: BM25Index({"a", "b"}), "got a set"),
        (lambda: BM25Index.from_dataset(VALUES[-2]), r"a DatasetDict with the splits train: .* dataset\['train'\]"),
        (lambda: add_bm25_index(VALUES[-2]), "a DatasetDict with the splits train: choose one"),
        (lambda: add_bm25_index(pd.DataFrame(ROWS)), "not to a DataFrame: datasets.Dataset has from_pandas"),
        (lambda: BM25Index.from_dataset("text"), "the dataset is 'text'; expected a datasets.Dataset"),
        (lambda: index().search("a", where=len), "where is <built-in function len>; expected columns and values"),
        (lambda: open_engine(None), "the retriever is None; expected a string"),
        (lambda: BM25Index(["a"], tokenizer=len), "returned 1; expected a list of strings"),
    ],
)
def test_what_was_passed_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(QabenchError, match=message):
        call()
