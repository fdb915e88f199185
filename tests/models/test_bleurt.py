"""BLEURT with a tiny checkpoint, with the original package, and with the real weights if available."""

import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_bleurt import WORDS, write_tiny_bleurt, write_vocabulary

from qabench.benchmarks.fanoutqa.official import DECLARATIONS
from qabench.benchmarks.fanoutqa.scorer import FanOutQAScorer
from qabench.data.answers import UNANSWERED
from qabench.errors import InputError, MissingExtra, QabenchError
from qabench.evaluation.signature import deviations
from qabench.models.bleurt import BleurtModel, bleurt, cut_lengths, load_bleurt, pair_ids, signed_name
from qabench.models.loader import digest_of_files

REASON = "needs the extra bleurt"
OFFICIAL = DECLARATIONS["fanout_bleurt"]["bleurt"]
RANDOM = random.Random(1)
PAIRS = [tuple(" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(0, 30))) for _ in range(2)) for _ in range(23)]
REFERENCES, CANDIDATES = (list(side) for side in zip(*PAIRS, strict=True))


@pytest.mark.parametrize(
    ("lengths", "kept"), [((3, 2), (3, 2)), ((9, 2), (3, 2)), ((2, 9), (2, 3)), ((7, 7), (3, 2)), ((0, 9), (0, 5))]
)
def test_the_longer_text_is_truncated(lengths: tuple[int, int], kept: tuple[int, int]) -> None:
    assert cut_lengths(*lengths, 5) == kept


def test_answers_are_scored_as_texts_and_in_order() -> None:
    seen: list[Any] = []

    def score(references: list[str], candidates: list[str]) -> list[float]:
        seen.extend([references, candidates])
        return [0.1, 0.2, 0.3]

    scores = bleurt([["a", True], {"x": 1}, "\ud800"], ["b", UNANSWERED, None], BleurtModel("words", score))
    assert seen == [["a\nyes", "x - 1", "\ufffd"], ["b", "", ""]]
    assert scores == [0.1, 0.2, 0.3]
    with pytest.raises(InputError, match="1 predictions for 2"):
        bleurt(["a", "b"], ["a"], BleurtModel("words", score))
    with pytest.raises(InputError, match="nothing to score"):
        bleurt([], [], BleurtModel("words", score))


def test_checkpoints_of_the_original_package_are_scored_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class BleurtScorer:
        def __init__(self, checkpoint: str) -> None:
            assert checkpoint == str(folder)

        def score(self, *, references: list[str], candidates: list[str], batch_size: int) -> list[float]:
            return [len(a) - len(b) / 2 for a, b in zip(references, candidates, strict=True)]

    folder = tmp_path / "BLEURT-20"
    folder.mkdir()
    (folder / "bleurt_config.json").touch()
    monkeypatch.setitem(sys.modules, "bleurt", None)
    monkeypatch.setitem(sys.modules, "bleurt.score", None)
    with pytest.raises(MissingExtra, match="is a checkpoint of the package bleurt: pip install"):
        load_bleurt(str(folder))
    monkeypatch.setitem(sys.modules, "bleurt", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "bleurt.score", SimpleNamespace(BleurtScorer=BleurtScorer))
    monkeypatch.setattr("qabench.models.bleurt.metadata.version", lambda name: "0.0.2")
    scorer = load_bleurt(str(folder))
    digest = digest_of_files([folder / "bleurt_config.json"])
    assert scorer.name == f"bleurt-0.0.2/BLEURT-20@{digest} (a folder, identified by its name)"
    assert scorer(["abc", ""], ["d", "ef"]) == [2.5, -1.0]
    assert signed_name(scorer) == scorer.name and OFFICIAL.accepts(scorer.name)
    # of a user
    assert signed_name(BleurtModel(scorer.name, scorer.score)) == "function:BleurtModel"


@pytest.mark.parametrize("name", ["BLEURT-20", "transformers-5.1.0/lucadiliello/BLEURT-20@0f1e2d3c"])
def test_a_function_is_not_official_whatever_its_name(name: str) -> None:
    def score(references: list[str], candidates: list[str]) -> list[float]:
        return [1.0] * len(references)

    score.__name__ = name
    signed = FanOutQAScorer(bleurt=score).signatures([], {})["bleurt"]  # type: ignore[arg-type]
    assert f"bleurt:function:{name}|" in signed
    assert deviations(signed, DECLARATIONS["fanout_bleurt"]) == [f"BLEURT: function:{name} instead of BLEURT-20"]


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("transformers-5.1.0/lucadiliello/BLEURT-20@0f1e2d3c4b5a", True),
        ("transformers-5.1.0//models/BLEURT-20@0f1e2d3c4b5a (a folder, identified by its name)", True),
        ("transformers-5.1.0/another/BLEURT-20@0f1e2d3c4b5a", False),
        ("transformers-5.1.0/lucadiliello/BLEURT-20-D12@0f1e2d3c4b5a", False),
    ],
)
def test_which_models_are_official(name: str, accepted: bool) -> None:
    assert OFFICIAL.accepts(name) == accepted


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingExtra, match=r"BLEURT needs sentencepiece: pip install 'qabench\[bleurt\]'"):
        load_bleurt()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """The folder of a tiny checkpoint, and its network in RemBERT's form."""
    for package in ("sentencepiece", "torch", "transformers"):
        pytest.importorskip(package, reason=REASON)
    folder = tmp_path_factory.mktemp("bleurt")
    return str(folder), write_tiny_bleurt(folder)


def by_hand(checkpoint: tuple[str, Any], reference: str, candidate: str) -> float:
    """One pair, unpadded, straight through the layers."""
    import sentencepiece
    import torch

    folder, network = checkpoint
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{folder}/spm.model")
    first = ["[CLS]", *pieces.encode_as_pieces(reference), "[SEP]"]
    second = [*pieces.encode_as_pieces(candidate), "[SEP]"]
    ids = torch.tensor([[pieces.piece_to_id(piece) for piece in first + second]])
    segments = torch.tensor([[0] * len(first) + [1] * len(second)])
    with torch.no_grad():
        hidden = network.rembert(ids, token_type_ids=segments).last_hidden_state[0, 0]
        pooled = torch.tanh(network.rembert.pooler.dense.weight @ hidden + network.rembert.pooler.dense.bias)
        return float(network.classifier.weight[0] @ pooled + network.classifier.bias[0])


@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_scores_are_the_networks_in_any_batch(
    checkpoint: tuple[str, Any], batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qabench.models.bleurt.BATCH_SIZE", batch_size)
    scorer = load_bleurt(model=checkpoint[0])
    scores = scorer(REFERENCES, CANDIDATES)
    assert scores == pytest.approx([by_hand(checkpoint, *pair) for pair in PAIRS], abs=1e-5)
    assert max(scores) - min(scores) > 0.1
    assert scorer(REFERENCES[::-1], CANDIDATES[::-1]) == pytest.approx(scores[::-1], abs=1e-5)
    assert scorer([], []) == []


def test_other_models_are_rejected(checkpoint: tuple[str, Any], tmp_path: Path) -> None:
    write_tiny_bleurt(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bleurt", "embedding_size": null}', encoding="utf-8")
    with pytest.raises(QabenchError, match="it has the embeddings of BERT"):
        load_bleurt(model=str(tmp_path))


def test_pairs_are_encoded_as_by_the_original_package(tmp_path: Path) -> None:
    encoding = pytest.importorskip("bleurt.encoding", reason="needs the package bleurt, which is on no registry")
    sentencepiece = pytest.importorskip("sentencepiece", reason=REASON)
    from bleurt.lib.tokenizers import SentencePieceTokenizer

    write_vocabulary(tmp_path)
    theirs = SentencePieceTokenizer(str(tmp_path / "spm"))
    ours = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spm.model"))
    cls, sep = ours.piece_to_id("[CLS]"), ours.piece_to_id("[SEP]")
    for reference, candidate in [*PAIRS, (REFERENCES[0] * 400, CANDIDATES[0] * 300), (REFERENCES[1] * 900, "moon")]:
        ids, segments = pair_ids(ours.encode(reference), ours.encode(candidate), cls, sep)
        expected, mask, expected_segments = encoding.encode_example(reference, candidate, theirs, 512)
        assert ids == expected[: sum(mask)] and segments == expected_segments[: sum(mask)]


@pytest.mark.slow
def test_the_real_weights_give_the_published_scores() -> None:
    pytest.importorskip("torch", reason=REASON)
    folder = os.environ.get("QABENCH_BLEURT_MODEL")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the weights of BLEURT-20: set QABENCH_BLEURT_MODEL to the folder of lucadiliello/BLEURT-20")
    scores = load_bleurt(folder)(
        ["a bird chirps by the window", "this is a random sentence"],
        ["a bird chirps by the window", "this looks like a random sentence"],
    )
    # From the card of the converted weights.
    assert scores == pytest.approx([0.9990496635437012, 0.7930182218551636], abs=1e-4)
