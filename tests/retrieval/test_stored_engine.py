"""Search in an index of ``qabench index build`` with the interface of search engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qabench.errors import InputError
from qabench.retrieval import open_engine
from qabench.retrieval.bm25 import sharded_build
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.tokenizers import words

TEXTS = ["Apples grow on trees.", "The moon orbits the earth.", "The planets orbit the sun."]


def test_hits_have_the_texts_of_the_source(tmp_path: Path) -> None:
    source = tmp_path / "passages.jsonl"
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    corpus = CorpusFile.open(source, "text")
    sharded_build.build(corpus, tmp_path / "index", Parameters.of("lucene", 1.5, 0.75, None, 0.25), words, workers=1)
    engine = open_engine(f"index:{tmp_path / 'index'}")
    assert (len(engine), engine.name, engine.ranker) == (3, "passages.jsonl@3", "lucene")
    hits = engine.search("the moon", k=2)
    assert [(one.id, one.text) for one in hits.documents] == [("1", TEXTS[1]), ("2", TEXTS[2])]
    assert hits.scores[0] > hits.scores[1] > 0
    assert [one.ids for one in engine.search_batch(["apples", "zzz"], k=1)] == [["0"], []]
    source.write_text("{}")
    with pytest.raises(InputError, match=r"passages.jsonl, which no longer exists or has changed"):
        open_engine(f"index:{tmp_path / 'index'}")


def test_folders_that_are_not_indexes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not an index of `qabench index build`"):
        open_engine(f"index:{tmp_path}")
