"""The encoder of a spaCy pipeline, computing each distinct window of tokens once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps, Ragged

Matrix = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

ROWS_PER_CALL = 2048  # keeps a layer's arrays in the processor's cache


class WindowEncoder:
    """``Tok2Vec.predict`` that computes each distinct window once.

    Raises:
        ValueError: the model is not spaCy's MultiHashEmbed and MaxoutWindowEncoder with a window of one.
    """

    def __init__(self, model: Model[Any, Any]) -> None:
        embed, encode = model.layers
        if not isinstance(model.ops, NumpyOps):
            raise ValueError("the model does not run on the processor")
        features, to_ragged, *self.embed_layers, to_list = embed.layers
        names = (features.name, to_ragged.name, to_list.name)
        if names != ("extract_features", "list2ragged", "ragged2list"):
            raise ValueError(f"not a MultiHashEmbed: {names}")
        self.features = features
        (stack,) = encode.layers
        self.layers = [self._layer_of(residual) for residual in stack.layers]
        self.pad: int = encode.attrs["pad"]
        if self.pad < len(self.layers):
            raise ValueError("the padding between texts is shorter than the receptive field")

    @staticmethod
    def _layer_of(residual: Model[Any, Any]) -> Model[Any, Any]:
        (inner,) = residual.layers
        window, layer = inner.layers
        if (
            not residual.name.startswith("residual")
            or window.name != "expand_window"
            or window.attrs["window_size"] != 1
        ):
            raise ValueError(f"not a residual layer over windows of three tokens: {residual.name}")
        return layer

    def predict(self, docs: Sequence[Doc]) -> list[Matrix]:
        """The token vectors of each document, float32 of shape (tokens, width)."""
        attributes = self.features.predict(docs)
        rows, ids = np.unique(np.concatenate(attributes), axis=0, return_inverse=True)
        vectors = self._embed(rows)
        # Row 0 is the zero vector that separates texts, so every id is increased by one.
        vectors = np.concatenate([np.zeros((1, vectors.shape[1]), dtype=vectors.dtype), vectors])
        sequence, starts = self._padded(ids.ravel() + 1, [len(doc) for doc in docs])
        for layer in self.layers:
            vectors, sequence = self._one_layer(layer, vectors, sequence)
        return [vectors[sequence[start : start + len(doc)]] for start, doc in zip(starts, docs, strict=True)]

    def _embed(self, rows: npt.NDArray[np.uint64]) -> Matrix:
        ragged = Ragged(rows, np.asarray([len(rows)], dtype=np.int32))
        for layer in self.embed_layers:
            ragged = layer.predict(ragged)
        vectors: Matrix = ragged.dataXd
        return vectors

    def _padded(self, ids: Ids, lengths: list[int]) -> tuple[Ids, list[int]]:
        """All texts in one sequence with ``pad`` zeros around each, and the start of each text."""
        ends = np.cumsum(lengths)
        starts = ends - lengths + self.pad * np.arange(1, len(lengths) + 1)
        sequence = np.zeros(len(ids) + self.pad * (len(lengths) + 1), dtype=np.int64)
        sequence[np.arange(len(ids)) + np.repeat(starts - (ends - lengths), lengths)] = ids
        return sequence, starts.tolist()

    @staticmethod
    def _one_layer(layer: Model[Any, Any], vectors: Matrix, sequence: Ids) -> tuple[Matrix, Ids]:
        """The vectors of the distinct windows, and the sequence as ids of windows."""
        base = len(vectors)
        before = np.concatenate([sequence[:1], sequence[:-1]])
        after = np.concatenate([sequence[1:], sequence[-1:]])
        pairs, pair_of = np.unique(before * base + sequence, return_inverse=True)
        windows, ids = np.unique(pair_of * base + after, return_inverse=True)
        pair = pairs[windows // base]
        triples = np.stack([pair // base, pair % base, windows % base], axis=1)
        out = np.empty((len(triples), vectors.shape[1]), dtype=vectors.dtype)
        for start in range(0, len(triples), ROWS_PER_CALL):
            part = triples[start : start + ROWS_PER_CALL]
            out[start : start + ROWS_PER_CALL] = vectors[part[:, 1]] + layer.predict(
                vectors[part].reshape(len(part), -1)
            )
        return out, ids
