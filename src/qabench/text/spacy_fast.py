"""Lemmas of many texts from a spaCy English pipeline, in a fraction of the time of ``nlp(text)``.

The lemmas are exactly those of ``nlp(text)``, which does work that no lemma depends on, and repeats
much of its other work for each text. This module saves work in three places without changing the
result:

- Named entities are not recognized, because no component that a lemma depends on reads them. The
  parser *is* run, because the attribute ruler has patterns that read the dependency label.
- The word encoder is a stack of layers that see one token, then windows of three, five, seven and
  nine. A row of a layer's output depends on its window only, so each distinct window of a batch is
  computed once. (The matrix product of BLIS, which spaCy uses, gives a row the same bits whatever
  the other rows are; the tests check this.)
- A token's lemma depends on its text, tag and dependency label only: the ruler's one-token patterns
  and the lemmatizer read nothing else. Each distinct triple is computed once and remembered. A text
  in which one of the ruler's longer patterns may match is processed by the pipeline's own ruler and
  lemmatizer.

``FastLemmas.of`` checks that a pipeline has this shape. Use ``nlp.pipe`` for any other pipeline.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from spacy.attrs import DEP, ORTH, TAG
from spacy.lang.en.lemmatizer import EnglishLemmatizer
from spacy.language import Language
from spacy.matcher import Matcher
from spacy.pipeline import AttributeRuler, Tagger, Tok2Vec
from spacy.pipeline.dep_parser import DependencyParser
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps, Ragged

Triple = tuple[int, int, int]
Matrix = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
# A layer's arrays with this many rows fit into the processor's cache.
ROWS_PER_CALL = 2048
REMEMBERED_TOKENS = 500_000
LEXICAL_KEYS = {"TAG", "DEP", "LOWER", "ORTH", "TEXT", "IS_SPACE"}
# Larger batches share more windows, but need more memory.
TEXTS_PER_BATCH = 1024
TEXTS_PER_PARSE = 64
COMPONENTS: dict[str, type] = {
    "tok2vec": Tok2Vec,
    "tagger": Tagger,
    "parser": DependencyParser,
    "attribute_ruler": AttributeRuler,
    "lemmatizer": EnglishLemmatizer,
}


class FastLemmas:
    """Lemmas from a spaCy English pipeline with the components of ``en_core_web_sm``."""

    def __init__(self, nlp: Language) -> None:
        if [(name, type(pipe)) for name, pipe in nlp.pipeline] != list(COMPONENTS.items()):
            raise ValueError("the pipeline has other components")
        self.nlp = nlp
        self.encoder = WindowEncoder(nlp.get_pipe("tok2vec").model)
        self.lemmas = TokenLemmas(nlp)

    @classmethod
    def of(cls, nlp: Language) -> FastLemmas | None:
        """Return the fast path for ``nlp``, or None if the pipeline has another shape."""
        try:
            return cls(nlp)
        except (ValueError, AttributeError, KeyError):
            return None

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the lemmas of each text, joined by one space, in the order of the texts."""
        # Texts of similar length parse fastest together. An empty text has no tokens.
        with_text = [i for i, text in enumerate(texts) if text]
        order = sorted(with_text, key=lambda i: len(texts[i]))
        out = [""] * len(texts)
        for start in range(0, len(order), TEXTS_PER_BATCH):
            batch = order[start : start + TEXTS_PER_BATCH]
            docs = [self.nlp.make_doc(texts[i]) for i in batch]
            for doc, vectors in zip(docs, self.encoder.predict(docs), strict=True):
                doc.tensor = vectors
            for name in ("tagger", "parser"):
                for _ in self.nlp.get_pipe(name).pipe(docs, batch_size=TEXTS_PER_PARSE):
                    pass
            for i, lemmas in zip(batch, self.lemmas.texts(docs), strict=True):
                out[i] = lemmas
        return out


class WindowEncoder:
    """``Tok2Vec.predict`` that computes each distinct window once.

    Raises:
        ValueError: the model is not spaCy's MultiHashEmbed and MaxoutWindowEncoder with a window of
            one.
    """

    def __init__(self, model: Model[Any, Any]) -> None:
        embed, encode = model.layers
        self.features, to_ragged, *self.embed_layers, to_list = embed.layers
        names = (self.features.name, to_ragged.name, to_list.name)
        is_embed = names == ("extract_features", "list2ragged", "ragged2list")
        (stack,) = encode.layers
        self.layers = [self._layer_of(residual) for residual in stack.layers]
        self.pad: int = encode.attrs["pad"]
        # The padding between texts must be as long as the receptive field.
        if not isinstance(model.ops, NumpyOps) or not is_embed or self.pad < len(self.layers):
            raise ValueError("the model has another encoder, or does not run on the processor")

    @staticmethod
    def _layer_of(residual: Model[Any, Any]) -> Model[Any, Any]:
        (inner,) = residual.layers
        window, layer = inner.layers
        if (
            not residual.name.startswith("residual")
            or window.name != "expand_window"
            or window.attrs["window_size"] != 1
        ):
            raise ValueError("not a residual layer over windows of three tokens")
        return layer

    def predict(self, docs: Sequence[Doc]) -> list[Matrix]:
        """Return the token vectors of each document, float32 of shape (tokens, width)."""
        attributes = self.features.predict(docs)
        rows, ids = np.unique(np.concatenate(attributes), axis=0, return_inverse=True)
        vectors = self._embed(rows)
        # Row 0 is the zero vector that separates texts, so every id is increased by one.
        vectors = np.concatenate([np.zeros((1, vectors.shape[1]), dtype=vectors.dtype), vectors])
        lengths = [len(doc) for doc in docs]
        sequence, starts = self._padded(ids.ravel() + 1, lengths)
        for layer in self.layers:
            vectors, sequence = self._one_layer(layer, vectors, sequence)
        matrices = []
        for start, doc in zip(starts, docs, strict=True):
            matrices.append(vectors[sequence[start : start + len(doc)]])
        return matrices

    def _embed(self, rows: npt.NDArray[np.uint64]) -> Matrix:
        ragged = Ragged(rows, np.asarray([len(rows)], dtype=np.int32))
        for layer in self.embed_layers:
            ragged = layer.predict(ragged)
        vectors: Matrix = ragged.dataXd
        return vectors

    def _padded(self, ids: Ids, lengths: list[int]) -> tuple[Ids, list[int]]:
        """Return all texts in one sequence with ``pad`` zeros around each, and where each starts."""
        padding = np.zeros(self.pad, dtype=np.int64)
        parts = [padding]
        starts: list[int] = []
        end = 0
        for length in lengths:
            starts.append(end + self.pad * (len(starts) + 1))
            parts += [ids[end : end + length], padding]
            end += length
        return np.concatenate(parts), starts

    @staticmethod
    def _one_layer(layer: Model[Any, Any], vectors: Matrix, sequence: Ids) -> tuple[Matrix, Ids]:
        """Return the vectors of the distinct windows, and the sequence as ids of windows."""
        base = len(vectors)
        # ``np.roll`` wraps around, which is harmless because the sequence begins and ends with the
        # same padding.
        before, after = np.roll(sequence, 1), np.roll(sequence, -1)
        _, pair_of = np.unique(before * base + sequence, return_inverse=True)
        _, first, ids = np.unique(pair_of * base + after, return_index=True, return_inverse=True)
        triples = np.stack([before[first], sequence[first], after[first]], axis=1)
        out = np.empty((len(triples), vectors.shape[1]), dtype=vectors.dtype)
        for start in range(0, len(triples), ROWS_PER_CALL):
            rows = triples[start : start + ROWS_PER_CALL]
            windows = vectors[rows].reshape(len(rows), -1)
            # The layer is residual: its output is added to the token in the middle.
            out[start : start + ROWS_PER_CALL] = vectors[rows[:, 1]] + layer.predict(windows)
        return out, ids


class TokenLemmas:
    """Lemmas of tokens from text, tag and dependency label, computed once for each distinct triple.

    Raises:
        ValueError: a pattern of the attribute ruler reads another attribute of a token.
    """

    def __init__(self, nlp: Language) -> None:
        self.vocab = nlp.vocab
        self.pipeline_ruler = nlp.get_pipe("attribute_ruler")
        self.lemmatizer = nlp.get_pipe("lemmatizer")
        self.ruler = AttributeRuler(nlp.vocab, name="one_token_patterns")
        # For each pattern of several tokens, a mask with one bit per token of the pattern. The
        # matcher returns a bit's number as the name of a match.
        self.longer: list[int] = []
        self.bit_matcher = Matcher(nlp.vocab)
        self.cache: dict[Triple, tuple[str, int]] = {}
        for rule in self.pipeline_ruler.patterns:
            for pattern in rule["patterns"]:
                for token in pattern:
                    # A key such as POS or IS_SENT_START would make a lemma depend on more than the triple.
                    if set(token) - LEXICAL_KEYS:
                        raise ValueError("a pattern of the attribute ruler reads something else")
                if len(pattern) == 1:
                    self.ruler.add([pattern], rule["attrs"], rule["index"])
                else:
                    self._add_longer(pattern)

    def _add_longer(self, pattern: list[dict[str, Any]]) -> None:
        first_bit = sum(mask.bit_count() for mask in self.longer)
        self.longer.append(((1 << len(pattern)) - 1) << first_bit)
        for bit, token in enumerate(pattern, start=first_bit):
            self.bit_matcher.add(str(bit), [[token]])

    def texts(self, docs: Sequence[Doc]) -> Iterator[str]:
        """Yield the lemmas of each tagged and parsed document, joined by one space."""
        triples = [self._triples(doc) for doc in docs]
        self._learn(triples)
        for doc, tokens in zip(docs, triples, strict=True):
            lemmas, bits = zip(*map(self.cache.__getitem__, tokens), strict=True)
            # The bits of all tokens in longer patterns that some token of the text matches.
            matched = functools.reduce(operator.or_, bits)
            if matched and any(matched & mask == mask for mask in self.longer):
                # A longer pattern may match, so the pipeline's own components are run.
                lemmas = tuple(token.lemma_ for token in self.lemmatizer(self.pipeline_ruler(doc)))
            yield " ".join(lemmas)

    def _triples(self, doc: Doc) -> list[Triple]:
        return list(map(tuple, doc.to_array([ORTH, TAG, DEP]).reshape(-1, 3).tolist()))

    def _learn(self, triples: list[list[Triple]]) -> None:
        if len(self.cache) > REMEMBERED_TOKENS:
            self.cache.clear()
        # A dict as an ordered set.
        unknown: dict[Triple, None] = {}
        for tokens in triples:
            for token in tokens:
                if token not in self.cache:
                    unknown[token] = None
        new = list(unknown)
        strings = self.vocab.strings
        words, tags, deps = [], [], []
        for word, tag, dep in new:
            words.append(strings[word])
            tags.append(strings[tag])
            deps.append(strings[dep])
        # One document with all new tokens. It is not a sentence, but no lemma here depends on a
        # neighbor.
        doc = Doc(self.vocab, words=words, tags=tags, deps=deps)
        bits = [0] * len(new)
        for name, position, _ in self.bit_matcher(doc, allow_missing=True):
            bits[position] |= 1 << int(strings[name])
        lemmas = [token.lemma_ for token in self.lemmatizer(self.ruler(doc))]
        for triple, lemma, bits_of_triple in zip(new, lemmas, bits, strict=True):
            self.cache[triple] = (lemma, bits_of_triple)
