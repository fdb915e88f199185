"""Retrieval by vectors: an encoder by function, one behind an API, and a tiny one of
sentence-transformers.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web_server import Reply, WebServer

from qabench.benchmarks.expertqa.passages import load_passages
from qabench.errors import QabenchError
from qabench.retrieval.dense import DenseIndex

TEXTS = ["moon tide sea", "sun", "moon moon", "", "sun"]
WORDS = ["moon", "tide", "sun", "sea"]


class Counting:
    """Counts words; ``encoded`` lists the passages that were encoded."""

    name = "counts"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def queries(self, texts: Sequence[str]) -> Any:
        rows = np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1)

    def passages(self, texts: Sequence[str]) -> Any:
        self.encoded += texts
        return self.queries(texts)


def test_ranks_by_cosine_with_ties_in_order() -> None:
    index = DenseIndex(TEXTS, Counting())
    assert len(index) == 5 and index.search("sun", 3).positions == [1, 4, 0]
    hits = index.search("moon", 2)
    assert hits.positions == [2, 0] and hits.scores == pytest.approx([1.0, 0.57735], abs=1e-5)
    assert index.search("zzz", 9).positions == [0, 1, 2, 3, 4]
    assert DenseIndex([], Counting()).search("sun", 3).positions == []


def test_ranks_come_from_full_precision() -> None:
    class Close(Counting):
        def queries(self, texts: Sequence[str]) -> Any:
            angles = np.array([float(text) for text in texts])
            return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    index = DenseIndex(["0.003", "0.001", "0.002", "0.001"], Close())
    hits = index.search("0", 4)
    assert hits.positions == [1, 3, 2, 0] and hits.scores[0] == hits.scores[1] > hits.scores[2]


def test_vectors_are_kept_on_disk(cache: Path) -> None:
    first, second, third = Counting(), Counting(), Counting()
    expected = DenseIndex(TEXTS, first, keep=True).search("moon", 5)
    assert DenseIndex(TEXTS, second, keep=True).search("moon", 5) == expected
    assert first.encoded == TEXTS[:4] and second.encoded == []
    (path,) = (cache / "vectors").iterdir()
    path.write_bytes(path.read_bytes()[:60])  # damaged
    assert DenseIndex(TEXTS, third, keep=True).search("moon", 5) == expected and third.encoded == TEXTS[:4]


def test_vectors_from_an_api(monkeypatch: pytest.MonkeyPatch) -> None:
    from qabench.models.encoder import ApiEncoder

    def reply(body: str) -> Reply:
        texts = json.loads(body)["input"]
        vectors = [{"index": i, "embedding": [float(len(text)), 3.0]} for i, text in enumerate(texts)]
        return Reply(json.dumps({"object": "list", "model": "m", "data": vectors[::-1], "usage": {}}).encode())

    monkeypatch.delenv("FANOUTQA_OPENAI_API_KEY", raising=False)
    with pytest.raises(QabenchError, match="set FANOUTQA_OPENAI_API_KEY"):
        ApiEncoder()
    with WebServer() as server:
        server.posted = reply
        encoder = ApiEncoder("m", f"{server.url}/v1")
        vectors = encoder.passages(["a" * 4] * 300 + [""])
        assert vectors.shape == (301, 2) and vectors[0].tolist() == pytest.approx([0.8, 0.6])
        assert vectors[-1].tolist() == pytest.approx([0.0, 1.0]) and len(server.requests) == 2
        server.posted = lambda body: Reply(b'{"error": {"message": "no such model"}}', 404)
        with pytest.raises(QabenchError, match="no such model"):
            encoder.queries(["x"])


def test_a_corpus_ranked_by_an_encoder(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qabench.benchmarks.expertqa.passages.encoder_of", lambda ranker, encoder: Counting())
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"id": str(i), "text": text}) + "\n" for i, text in enumerate(TEXTS)))
    found = load_passages(str(corpus), ranker="dense", encoder="counts")
    assert [one.id for one in found.find("moon", "", 2).passages] == ["2", "0"]
    assert found.signature()["ranker"] == "counts"
