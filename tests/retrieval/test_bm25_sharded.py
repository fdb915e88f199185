"""Sharded indexes: the scores and rankings of a single index, to the last bit; resumed after kill -9; checked."""

from __future__ import annotations

import functools
import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from qabench.cli import app
from qabench.errors import InputError
from qabench.retrieval import BM25Index, Words
from qabench.retrieval.bm25 import sharded_build
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.formulas import METHODS, Parameters
from qabench.retrieval.bm25.sharded import ShardedIndex
from qabench.retrieval.bm25.tokenizers import words


@functools.cache
def texts_of(count: int, seed: int = 0) -> list[str]:
    """Texts with a Zipf-like distribution of words; some words are only in one part, some texts are empty."""
    chance = random.Random(seed)
    return [
        " ".join(
            [f"w{int(chance.paretovariate(0.7)) % 400}" for _ in range(chance.randrange(25))] + [f"part{i // 700}"]
        )
        if i % 97
        else ""
        for i in range(count)
    ]


QUERIES = ["w1 w2 w3", "w1 w1 part1 w350", "part0 part2", "nothing known", "", "w399 part1 part1 zzz w7"]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CorpusFile:
    monkeypatch.setattr(sharded_build, "LEAST_PER_SHARD", 640)
    path = tmp_path / "texts.jsonl"
    lines = [json.dumps({"text": text}) for text in texts_of(3000)]
    path.write_text("\n\n".join(lines) + "\n")
    return CorpusFile.open(path, "text")


def build(corpus: CorpusFile, folder: Path, method: str = "bm25+", dtype: str = "float64") -> ShardedIndex:
    sharded_build.build(corpus, folder, Parameters.of(method, 1.5, 0.75, None, 0.25), words, dtype, 1, 2)
    return ShardedIndex(folder)


FLOAT32 = [pytest.param(method, "float32", marks=pytest.mark.slow) for method in METHODS if method != "bm25+"]


@pytest.mark.parametrize(("method", "dtype"), [("bm25+", "float32"), *((one, "float64") for one in METHODS), *FLOAT32])
def test_equal_to_a_single_index(corpus: CorpusFile, tmp_path: Path, method: str, dtype: str) -> None:
    sharded = build(corpus, tmp_path / "index", method, dtype)
    single = BM25Index(texts_of(3000), method=method, dtype=dtype)
    assert sharded.info()["shards"] == 5 and len(sharded) == 3000
    for query in QUERIES:
        assert np.array_equal(sharded.scores(query), single.scores(query))
        for k in (1, 10, 700, 5000):
            assert sharded.search(query, k) == single.search(query, k)
            assert sharded.search(query, k, workers=3) == single.search(query, k)
    assert sharded.search_batch(QUERIES * 3, 5, workers=2) == single.search_batch(QUERIES * 3, 5)


def test_pruned_searches_are_equal(corpus: CorpusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ranking.SMALL", 0), ("ranking.FEW_POSTINGS", 0), ("pruning.LONG", 20)):
        monkeypatch.setattr(f"qabench.retrieval.bm25.{name}", value)
    sharded, single = build(corpus, tmp_path / "index"), BM25Index(texts_of(3000))
    chance = random.Random(1)
    for _ in range(200):
        query = " ".join(f"w{int(chance.paretovariate(0.5)) % 400}" for _ in range(6)) + f" part{chance.randrange(5)}"
        assert sharded.search(query, 7) == single.search(query, 7)


def test_a_dataset_gives_the_same(corpus: CorpusFile, tmp_path: Path) -> None:
    import datasets

    (tmp_path / "data").mkdir()
    rows = datasets.Dataset.from_dict({"text": texts_of(3000), "n": list(range(3000))})
    rows.to_parquet(tmp_path / "data" / "train-00000-of-00001.parquet")
    folder = str(tmp_path / "index")
    # datasets reads a repository on the Hub and a folder with data files in the same way.
    options = ["--split", "train", "--output", folder, "--memory", "1KiB", "--workers", "2"]
    done = CliRunner().invoke(app, ["index", "build", str(tmp_path / "data"), *options])
    assert done.exit_code == 0, done.output
    index, single = ShardedIndex(folder), BM25Index(texts_of(3000))
    assert index.info()["shards"] == 5
    assert index.search("w1 part2", 20) == single.search("w1 part2", 20)
    assert index.texts([5, 2999]) == [texts_of(3000)[5], texts_of(3000)[2999]]
    rows.select(range(10)).to_parquet(tmp_path / "data" / "train-00000-of-00001.parquet")
    assert index.texts([5]) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody/nothing", "--split", "train"], "cannot load the dataset nobody/nothing"),
        (["nobody/nothing"], "add --split NAME"),
        (["nobody/nothing", "--config", "c"], "--split as well"),
    ],
)
def test_datasets_that_are_not_there(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["index", "build", *arguments, "--output", str(tmp_path / "index")])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)


def test_parquet_gives_the_same(corpus: CorpusFile, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"body": texts_of(3000)}), tmp_path / "t.parquet", row_group_size=333)
    other = build(CorpusFile.open(tmp_path / "t.parquet", "body"), tmp_path / "parquet")
    assert other.search("w1 part2", 50) == build(corpus, tmp_path / "jsonl").search("w1 part2", 50)
    assert other.texts([5, 2999]) == [texts_of(3000)[5], texts_of(3000)[2999]]


KILLED = """
import os, signal, sys
from pathlib import Path
from qabench.retrieval.bm25 import sharded_build
from qabench.retrieval.bm25.corpus_file import CorpusFile
from qabench.retrieval.bm25.formulas import Parameters
from qabench.retrieval.bm25.tokenizers import words

sharded_build.LEAST_PER_SHARD = 640
left = int(sys.argv[3])
write = sharded_build.write if left < 5 else sharded_build.save
def counted(*arguments):
    global left
    left -= 1
    write(*arguments)
    if left in (0, 5):
        os.kill(os.getpid(), signal.SIGKILL)
setattr(sharded_build, "write" if left < 5 else "save", counted)
parameters = Parameters.of("bm25+", 1.5, 0.75, None, 0.25)
sharded_build.build(CorpusFile.open(Path(sys.argv[1]), "text"), Path(sys.argv[2]), parameters, words, "float64", 1, 1)
"""


@pytest.mark.slow
def test_a_killed_build_continues(corpus: CorpusFile, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    for after in (2, 1, 7, 6):  # shards counted, then shards weighed
        done = subprocess.run([sys.executable, "-c", KILLED, str(corpus.path), str(folder), str(after)])
        assert done.returncode == -signal.SIGKILL
        with pytest.raises(InputError, match="unfinished index; run the same"):
            ShardedIndex(folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("shard-*")}
    assert len(before) == 3 and len(list(folder.glob("counts-*"))) == 5
    parameters = Parameters.of("bm25+", 1.5, 0.75, None, 0.25)
    sharded_build.build(corpus, folder, parameters, words, "float64", 1, 1)
    found = ShardedIndex(folder)
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("shard-*")}.items() >= before.items()
    assert found.search("w1 w2 part3", 100) == BM25Index(texts_of(3000)).search("w1 w2 part3", 100)
    assert not list(folder.glob("counts-*"))


def test_other_options_do_not_continue_a_build(corpus: CorpusFile, tmp_path: Path) -> None:
    build(corpus, tmp_path / "index")
    with pytest.raises(InputError, match="another index, which differs in parameters"):
        build(corpus, tmp_path / "index", "okapi")
    with pytest.raises(InputError, match="was built with the tokenizer"):
        ShardedIndex(tmp_path / "index", Words("english"))
    with pytest.raises(InputError, match="is not an index"):
        ShardedIndex(tmp_path / "nothing")


def test_the_commands(corpus: CorpusFile, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    run = CliRunner().invoke
    done = run(app, ["index", "build", str(corpus.path), "--output", str(folder), "--memory", "1KiB"])
    assert done.exit_code == 0 and "3,000 documents in 5 shards" in done.output
    found = json.loads(run(app, ["index", "search", str(folder), "w5 part3", "-k", "2", "--json"]).output)
    assert [hit["text"] for hit in found] == [texts_of(3000)[hit["position"]] for hit in found]
    assert "part3" in run(app, ["index", "search", str(folder), "part3"]).output
    assert json.loads(run(app, ["index", "info", str(folder)]).output)["documents"] == 3000
    assert "intact" in run(app, ["index", "verify", str(folder)]).output
    shard = folder / "shard-00002.bm25"
    shard.write_bytes(shard.read_bytes().replace(b"\x01", b"\x02"))
    damaged = run(app, ["index", "verify", str(folder)]).exception
    assert isinstance(damaged, InputError) and "shard-00002.bm25" in str(damaged)


@pytest.mark.parametrize("line", ['{"text": 5}', "[1]", "{", '{"other": "x"}', "[" * 5000])
def test_a_row_without_text_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "a"}\n' + line)
    with pytest.raises(InputError, match="document 1"):
        build(CorpusFile.open(path, "text"), tmp_path / "index")
