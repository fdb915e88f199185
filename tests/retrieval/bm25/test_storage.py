"""Saved indexes: equal after loading; rejected if damaged, or of another version or tokenizer."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import xxhash
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from qabench.errors import InputError, QabenchError
from qabench.retrieval import BM25Index, Words
from qabench.retrieval.bm25.storage import START, VERSION

TEXTS = [f"text number {number} of {number % 7} kinds, a{number % 13} Zürich \U0001f642" for number in range(200)]
ROWS = {"text": TEXTS, "kind": [number % 3 for number in range(200)]}
HEADERS = [b"{}", b"null", b'{"arrays": {}}', b'{"arrays": {"starts": ["<i8", 9]}}', b"[" * 9999]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "texts.bm25"


def test_a_loaded_index_gives_the_same(path: Path) -> None:
    index = BM25Index.from_dataset(Dataset.from_dict(ROWS), filters=["kind"], method="okapi", k1=1.2)
    index.save(path)
    loaded = BM25Index.load(path)
    assert len(loaded) == 200 and loaded.parameters == index.parameters
    for query in ("number 7", "a3 Zürich", "", "unknown zzz aaa", "text text kinds"):
        assert loaded.search(query, 20) == index.search(query, 20)
        assert loaded.search(query, 20, where={"kind": 1}) == index.search(query, 20, where={"kind": 1})
    loaded.save(path)  # over the very file that is mapped
    assert BM25Index.load(path).search("a3", 9) == index.search("a3", 9)


@given(st.lists(st.lists(st.text(st.characters(), max_size=5), max_size=9), min_size=1, max_size=30).filter(any))
def test_terms_of_any_characters(documents: list[list[str]]) -> None:
    index = BM25Index(map(json.dumps, documents), tokenizer=json.loads)
    with tempfile.TemporaryDirectory() as folder:
        index.save(Path(folder) / "index")
        loaded = BM25Index.load(Path(folder) / "index", tokenizer=json.loads)
    for document in documents:
        assert loaded.search(json.dumps(document)) == index.search(json.dumps(document))


def test_a_loaded_index_follows_its_dataset(path: Path) -> None:
    dataset = Dataset.from_dict(ROWS)
    BM25Index.from_dataset(dataset, filters=["kind"]).save(path)

    def update(other: Any) -> tuple[int, int]:
        return BM25Index.load(path).update(other)

    assert update(dataset) == (0, 0)
    # the same content under another fingerprint of datasets
    assert update(Dataset.from_dict(ROWS)) == (0, 0)
    assert update(dataset.to_iterable_dataset()) == (0, 0)
    assert update(dataset.select(range(199))) == (0, 1)
    assert update(dataset.select([*range(198), 199, 198])) == (2, 2)
    assert update(Dataset.from_dict(ROWS | {"kind": [0] * 200})) == (199, 199)
    with pytest.raises(InputError, match="the dataset has no 'text'; the columns are body, kind"):
        update(dataset.rename_column("text", "body"))


def test_it_needs_its_tokenizer(path: Path) -> None:
    BM25Index(TEXTS, tokenizer=Words("english")).save(path)
    assert BM25Index.load(path).tokenizer("the cat") == ["cat"]  # type: ignore[comparison-overlap]
    with pytest.raises(InputError, match=r"was built with the tokenizer words-1\+stop-\w+, not words-1"):
        BM25Index.load(path, tokenizer=Words())
    BM25Index(TEXTS, tokenizer=str.split).save(path)
    with pytest.raises(InputError, match=r"was built with the tokenizer .*str.split: pass it as tokenizer="):
        BM25Index.load(path)
    BM25Index.load(path, tokenizer=str.split)
    with pytest.raises(InputError, match="cannot be saved: use a module-level function"):
        BM25Index(TEXTS, tokenizer=lambda text: text.split()).save(path)


def test_every_cut_and_every_changed_byte_is_noticed(path: Path) -> None:
    BM25Index(TEXTS[:20]).save(path)
    whole = path.read_bytes()
    for size in {*range(0, len(whole), 97), *range(40), len(whole) - 1}:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"damaged|not a BM25 index"):
            BM25Index.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(InputError, match="damaged"):
        BM25Index.load(path)
    for place in range(0, len(whole), 13):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(InputError, match=r"damaged|not a BM25 index|has format"):
            BM25Index.load(path)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [("starts", 1, -1), ("starts", -1, 10**6), ("documents", 5, 2**30), ("documents", 0, -1), ("documents", 9, 0),
     ("filter", 3, 7)],
)  # fmt: skip
def test_crafted_arrays_are_rejected(path: Path, name: str, place: int, value: int) -> None:
    index = BM25Index.from_dataset(Dataset.from_dict(ROWS), filters=["kind"])
    array = index._filters.codes["kind"] if name == "filter" else getattr(index._scorer.counts, name)
    array[place] = value
    index.save(path)
    with pytest.raises(InputError, match="its content does not fit together"):
        BM25Index.load(path)


@pytest.mark.parametrize("header", HEADERS)
def test_crafted_headers_are_rejected(path: Path, header: bytes) -> None:
    BM25Index(TEXTS).save(path)
    content = len(header).to_bytes(8, "little") + header
    checksum = xxhash.xxh3_64_intdigest(content).to_bytes(8, "little")
    path.write_bytes(path.read_bytes()[: START - 16] + checksum + content)
    with pytest.raises(InputError, match="is damaged"):
        BM25Index.load(path)


def test_other_files_and_versions_are_rejected(path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the index"):
        BM25Index.load(path)
    BM25Index(TEXTS).save(path)
    whole = path.read_bytes()
    for version in {*range(256)} - {VERSION}:
        path.write_bytes(whole[:7] + bytes([version]) + whole[8:])
        with pytest.raises(InputError, match=rf"has format {version}; this qabench reads {VERSION}\. Build it again"):
            BM25Index.load(path)
    path.write_text("{}")
    with pytest.raises(InputError, match="is not a BM25 index"):
        BM25Index.load(path)


def test_a_failed_or_killed_save_leaves_the_old_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    BM25Index(TEXTS).save(path)
    old = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(QabenchError, match=r"cannot write .*No space left"):
            BM25Index(TEXTS[:50]).save(path)
    assert path.read_bytes() == old and list(path.parent.iterdir()) == [path]
    code = (
        "import os, signal, sys; from qabench.retrieval import BM25Index\n"
        "os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)\n"
        "index = BM25Index.load(sys.argv[1])\nindex.add(['other'])\nindex.save(sys.argv[1])"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL and path.read_bytes() == old
    (rest,) = set(path.parent.iterdir()) - {path}
    if sys.platform == "win32":
        os.utime(rest, (0, 0))  # there, only old temporary files are deleted
    BM25Index(TEXTS[:50]).save(path)
    assert list(path.parent.iterdir()) == [path] and len(BM25Index.load(path)) == 50
