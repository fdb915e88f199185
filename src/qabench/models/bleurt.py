"""BLEURT, a learned metric of how well an answer conveys the meaning of the reference.

Source: Sellam et al., BLEURT, ACL 2020 (https://arxiv.org/abs/2004.04696). Pu et al., EMNLP 2021,
for BLEURT-20, the checkpoint that FanOutQA uses. It is a RemBERT with a linear layer on top of its
pooled first token, so transformers' RemBERT can run it. The published converted weights differ only
in the names of layers.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib import metadata
from math import isfinite
from pathlib import Path
from typing import Any
from weakref import WeakSet

from qabench.data.answers import check_pairs, text_of
from qabench.errors import InputError, MissingExtra
from qabench.io.workers import cluster, map_loaded
from qabench.models.loader import ModelSource, buckets, cannot_load, digest_of_files, locate

MODEL = "lucadiliello/BLEURT-20"
MODEL_VARIABLE = "QABENCH_BLEURT_MODEL"
# The length with which the authors of BLEURT trained the checkpoint.
MAX_LENGTH = 512
BATCH_SIZE = 32
VOCABULARY = "spm.model"
# Only checkpoints of the original package have this file.
CHECKPOINT_FILE = "bleurt_config.json"
BY_NAME = " (a folder, identified by its name)"
SPECIAL = ("[CLS]", "[SEP]")
# Patterns of layer names in the converted weights -> names in transformers' RemBERT.
LAYER_NAMES = {
    r"^bleurt\.encoder\.embedding_projection\.": "rembert.encoder.embedding_hidden_mapping_in.",
    r"^bleurt\.": "rembert.",
}
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class BleurtModel:
    """A function from references and candidates to scores, with a name for signatures."""

    name: str
    score: Callable[[list[str], list[str]], list[float]]

    def __call__(self, references: Sequence[str], candidates: Sequence[str]) -> list[float]:
        return self.score(_encodable(references), _encodable(candidates))


def _encodable(texts: Sequence[str]) -> list[str]:
    # The tokenizers read UTF-8, which cannot encode lone surrogates.
    return [SURROGATE.sub("\ufffd", text) for text in texts]


# Only models loaded by this module are signed by name, because a user's object could have any name.
_loaded_here: WeakSet[BleurtModel] = WeakSet()


def signed_name(scorer: Any) -> str:
    """Return the name of a BLEURT function for signatures, with a mark for a user's own function."""
    if isinstance(scorer, BleurtModel) and scorer in _loaded_here:
        return scorer.name
    return f"function:{getattr(scorer, '__name__', type(scorer).__name__)}"


def bleurt(
    references: Sequence[Any],
    predictions: Sequence[Any],
    scorer: Callable[[list[str], list[str]], Sequence[float]],
) -> list[float]:
    """Return the BLEURT of each answer, aligned with its reference.

    Each answer is compared as one string (``qabench.data.answers.text_of``). A score is about 0 for
    an unrelated answer and about 1 for one with the same meaning. It is not bounded.

    Args:
        references: answers as Python objects.
        predictions: one per reference. ``UNANSWERED`` and None are scored as the empty string, as
            upstream.
        scorer: the scorer from ``load_bleurt``, or a function of references and candidates.

    Raises:
        InputError: lists of different lengths, nothing to score, a number of scores that is not the
            number of answers, or a score that is not a finite number.
    """
    check_pairs(references, predictions)
    reference_texts = list(map(text_of, references))
    answer_texts = list(map(text_of, predictions))
    scores = list(scorer(reference_texts, answer_texts))
    if len(scores) != len(references):
        raise InputError(
            f"the BLEURT function returned {len(scores)} scores for {len(references)} questions"
        )
    # A network with damaged weights returns NaN without an error.
    for i, score in enumerate(scores):
        if not isfinite(score):
            raise InputError(
                f"BLEURT of predictions[{i}] is {score!r}, which is not a number: the weights of "
                f"{signed_name(scorer)} are damaged, or overflow on this device"
            )
    return scores


def load_bleurt(model: str | None = None) -> BleurtModel:
    """Load a BLEURT model, to be passed to ``bleurt`` or to the metric ``fanoutqa``.

    Args:
        model: a folder, or a name on the Hub, perhaps with a revision. Default:
            QABENCH_BLEURT_MODEL, or else ``MODEL``. See ``qabench.models.loader.locate``. If the
            folder is a checkpoint of the original package ``bleurt`` (TensorFlow), such as the
            unpacked BLEURT-20, that package computes the scores.

    Raises:
        MissingExtra: a package is not installed.
        QabenchError: the model cannot be loaded.
    """
    model = model or os.environ.get(MODEL_VARIABLE) or MODEL
    if (Path(model) / CHECKPOINT_FILE).is_file():
        scorer = _by_original_package(model)
    else:
        scorer = _by_transformers(model)
    _loaded_here.add(scorer)
    return scorer


def _by_transformers(model: str) -> BleurtModel:
    try:
        import sentencepiece
        import torch  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingExtra(f"BLEURT needs {error.name}: pip install 'qabench[bleurt]'") from None
    source = locate(model)
    if not cluster():
        # Load the model now, so that an error is raised before scores are computed.
        _network(source)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(source.file(VOCABULARY)))
    # As upstream, the ids are not checked, even if a piece is unknown.
    cls, sep = (pieces.piece_to_id(piece) for piece in SPECIAL)

    def score(references: list[str], candidates: list[str]) -> list[float]:
        pairs = []
        encoded = zip(pieces.encode(references), pieces.encode(candidates), strict=True)
        for reference, candidate in encoded:
            pairs.append(pair_ids(reference, candidate, cls, sep))
        # Batches of pairs with similar lengths need little padding. The scores are put back into the
        # order of the input below.
        lengths = [len(ids) for ids, _ in pairs]
        batches = buckets(lengths, BATCH_SIZE)
        inputs = []
        for batch in batches:
            inputs.append([pairs[i] for i in batch])
        results = map_loaded(partial(_scorer_of, source), inputs, gpu=True)
        scores = [0.0] * len(pairs)
        for batch, values in zip(batches, results, strict=True):
            for i, value in zip(batch, values, strict=True):
                scores[i] = value
        return scores

    name = f"transformers-{transformers.__version__}/{source.label}"
    if not source.commit:
        name += BY_NAME
    return BleurtModel(name, score)


def _by_original_package(checkpoint: str) -> BleurtModel:
    try:
        from bleurt.score import BleurtScorer
    except ImportError as error:
        raise MissingExtra(
            f"{checkpoint} is a checkpoint of the package bleurt: pip install "
            f"git+https://github.com/google-research/bleurt.git, or use the converted weights {MODEL}"
        ) from error
    scorer = BleurtScorer(checkpoint)

    def score(references: list[str], candidates: list[str]) -> list[float]:
        scores = scorer.score(references=references, candidates=candidates, batch_size=BATCH_SIZE)
        return list(map(float, scores))

    folder = Path(checkpoint).resolve()
    digest = digest_of_files(path for path in folder.rglob("*") if path.is_file())
    package = f"bleurt-{metadata.version('BLEURT')}"
    return BleurtModel(f"{package}/{folder.name}@{digest}{BY_NAME}", score)


def pair_ids(
    reference: Sequence[int], candidate: Sequence[int], cls: int, sep: int
) -> tuple[list[int], list[int]]:
    """Return the model's input for a pair of tokenized strings: token ids and segment ids.

    Above 512 tokens, tokens are removed one by one from the end of the longer string. If both have
    the same length, the candidate loses one.
    """
    # Three of the tokens are special: one begins the input, and one ends each string.
    n_reference, n_candidate = cut_lengths(len(reference), len(candidate), MAX_LENGTH - 3)
    first = [cls, *reference[:n_reference], sep]
    second = [*candidate[:n_candidate], sep]
    return first + second, [0] * len(first) + [1] * len(second)


def cut_lengths(reference: int, candidate: int, limit: int) -> tuple[int, int]:
    """Return the number of tokens to keep of each string, so that their sum is at most ``limit``."""
    while reference + candidate > limit:
        if reference > candidate:
            reference -= 1
        else:
            candidate -= 1
    return reference, candidate


def _scorer_of(
    source: ModelSource,
) -> Callable[[Sequence[tuple[list[int], list[int]]]], list[float]]:
    """Return a function that maps a batch of ``pair_ids`` to scores."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    network = _network(source)

    def padded(rows: Iterable[list[int]]) -> torch.Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return pad_sequence(tensors, batch_first=True).to(source.device)

    def score(pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
        ids = padded(row for row, _ in pairs)
        segments = padded(row for _, row in pairs)
        mask = padded([1] * len(row) for row, _ in pairs)
        with torch.inference_mode():
            output = network(ids, token_type_ids=segments, attention_mask=mask)
        return list(output.logits[:, 0].tolist())

    return score


# Without the cache, computing a metric twice would read gigabytes twice.
@lru_cache(maxsize=1)
def _network(source: ModelSource) -> Any:
    from transformers import RemBertConfig, RemBertForSequenceClassification

    settings = json.loads(source.file("config.json").read_text(encoding="utf-8"))
    # The converted config names the size of the embeddings differently.
    settings.setdefault("input_embedding_size", settings.get("embedding_size"))
    if settings["input_embedding_size"] is None:
        raise cannot_load(
            source.name, "it has the embeddings of BERT, like models before BLEURT-20"
        )
    names = RemBertConfig().to_dict().keys() - {"architectures", "id2label", "label2id"}
    supported: dict[str, Any] = {"num_labels": 1, "model_type": "rembert"}
    for name, value in settings.items():
        if name in names and name not in supported and value is not None:
            supported[name] = value
    config = RemBertConfig.from_dict(supported)
    return source.network(RemBertForSequenceClassification, config=config, key_mapping=LAYER_NAMES)
