"""Dense and late-interaction retrieval, with a tiny model, and with a real one if it is installed."""

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qabench.benchmarks.fastbook.retrieval import _signed_name, rank
from qabench.errors import MissingExtra
from qabench.models.loader import ModelSource

WORDS = ["moon", "tide", "sun", "sea", "paper", "sheet", "fold", "the", "of", "a"]
RANDOM = random.Random(0)
CORPUS = {n: [" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(1, 9))) for _ in range(12)] for n in (1, 3)}
CORPUS[1][2] = CORPUS[1][7] = "paper sheet fold the sun sea"
QUERIES = [(1, "the moon"), (3, "fold a sheet"), (1, CORPUS[1][2]), (1, "sea")]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT of one layer with random weights and a vocabulary of ten words."""
    pytest.importorskip("sentence_transformers", reason="needs the extra dense")
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    vocabulary = {word: i for i, word in enumerate([*special.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(0)
    size = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=len(vocabulary), **size)).save_pretrained(folder)
    return str(folder)


def check(hits: Any, scores: Any, k: int) -> None:
    """The hits are the k best by these scores, up to rounding, and have these scores."""
    assert len(set(hits.positions)) == min(k, len(scores))
    assert hits.scores == sorted(hits.scores, reverse=True) == pytest.approx(scores[hits.positions].tolist(), abs=1e-4)
    assert hits.scores[-1] >= np.sort(scores)[-len(hits.scores)] - 1e-4


def test_dense_ranks_by_cosine_within_the_chapter(model: str) -> None:
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(model)
    ranked = rank(CORPUS, QUERIES, "dense", 5, model)
    for (chapter, text), hits in zip(QUERIES, ranked, strict=True):
        chunks = encoder.encode(CORPUS[chapter])
        asked = encoder.encode(text)
        cosine = chunks @ asked / np.linalg.norm(chunks, axis=1) / np.linalg.norm(asked)
        check(hits, cosine, 5)
    assert ranked[2].positions[:2] == [2, 7] and ranked[2].scores[0] == pytest.approx(1, abs=1e-5)
    assert len(rank(CORPUS, QUERIES, "dense", 99, model)[0].positions) == 12


def test_colbert_ranks_by_sums_of_best_matches(model: str, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    if not hasattr(sentence_transformers, "MultiVectorEncoder"):
        pytest.skip("needs sentence-transformers 6.2")
    # with its random projection
    sentence_transformers.MultiVectorEncoder(model).save_pretrained(str(tmp_path))
    encoder = sentence_transformers.MultiVectorEncoder(str(tmp_path))
    ranked = rank(CORPUS, QUERIES, "colbert", 5, str(tmp_path))
    for (chapter, text), hits in zip(QUERIES, ranked, strict=True):
        (asked,) = encoder.encode_query([text], convert_to_numpy=True)
        chunks = encoder.encode_document(CORPUS[chapter], convert_to_numpy=True)
        maxsim = np.array([(asked @ chunk.T).max(axis=1).sum() for chunk in chunks])
        check(hits, maxsim, 5)
    assert ranked[2].positions[:2] == [2, 7]


def test_an_encoder_is_signed_by_its_weights() -> None:
    folder = [ModelSource("/models/mini", None, version, "cpu") for version in ("111111111111", "222222222222")]
    assert [_signed_name(source) for source in folder] == ["mini@111111111111", "mini@222222222222"]
    assert _signed_name(ModelSource("org/mini", "3" * 40, "3" * 12, "cpu")) == "org/mini@333333333333"


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"dense retrieval needs \w+: pip install 'qabench\[dense\]'"):
        rank(CORPUS, QUERIES, "dense", 5, "m")
    with pytest.raises(MissingExtra, match=r"pip install 'qabench\[dense\]'"):
        rank(CORPUS, QUERIES, "colbert", 5, "m")
