"""Lemmas of many texts from a spaCy English pipeline: bit-identical to ``nlp(text)``, in a fraction of the time.

``nlp(text)`` does work that no lemma depends on, and repeats much of the rest for each text. This module saves work in
three places without changing the result:

- Named entities are not recognized, because no component that a lemma depends on reads them. The parser *is* run,
  because the attribute ruler has patterns that read the dependency label.
- The word encoder is a stack of layers that see one token, then windows of three, five, seven and nine. A row of a
  layer's output depends on its window only, so each distinct window of a batch is computed once. (The matrix product of
  BLIS, which spaCy uses, gives a row the same bits whatever the other rows are; the tests check this.)
- A token's lemma depends on its text, tag and dependency label only: the ruler's one-token patterns and the lemmatizer
  read nothing else. Each distinct triple is computed once and remembered. A text in which one of the ruler's longer
  patterns may match is processed by the pipeline's own ruler and lemmatizer.

``FastLemmas.of`` checks that a pipeline has this shape. Use ``nlp.pipe`` for any other pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence

from spacy.lang.en.lemmatizer import EnglishLemmatizer
from spacy.language import Language
from spacy.pipeline import AttributeRuler, Tagger, Tok2Vec
from spacy.pipeline.dep_parser import DependencyParser
from spacy.tokens import Doc

from qabench.text.token_lemmas import TokenLemmas
from qabench.text.window_encoder import WindowEncoder

TEXTS_PER_BATCH = 1024  # larger batches share more windows, but need more memory
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
        for name, kind in COMPONENTS.items():
            if name not in nlp.pipe_names or type(nlp.get_pipe(name)) is not kind:
                raise ValueError(f"the pipeline has no {name!r} component of the type {kind.__name__}")
        if nlp.pipe_names != list(COMPONENTS):
            raise ValueError(f"the pipeline's components are {nlp.pipe_names}, not {list(COMPONENTS)}")
        self.nlp = nlp
        self.encoder = WindowEncoder(nlp.get_pipe("tok2vec").model)
        self.lemmas = TokenLemmas(nlp)

    @classmethod
    def of(cls, nlp: Language) -> FastLemmas | None:
        """The fast path for ``nlp``, or None if the pipeline does not have the shape described above."""
        try:
            return cls(nlp)
        except (ValueError, AttributeError, KeyError):
            return None

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The lemmas of each text, joined by one space, in the order of the texts."""
        # Texts of similar length parse fastest together.
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out = [""] * len(texts)
        for start in range(0, len(order), TEXTS_PER_BATCH):
            part = order[start : start + TEXTS_PER_BATCH]
            docs = [self.nlp.make_doc(texts[i]) for i in part]
            filled = [(i, doc) for i, doc in zip(part, docs, strict=True) if len(doc)]
            self._annotate([doc for _, doc in filled])
            for (i, _), text in zip(filled, self.lemmas.texts([doc for _, doc in filled]), strict=True):
                out[i] = text
        return out

    def _annotate(self, docs: list[Doc]) -> None:
        if not docs:
            return
        for doc, vectors in zip(docs, self.encoder.predict(docs), strict=True):
            doc.tensor = vectors
        for name in ("tagger", "parser"):
            for _ in self.nlp.get_pipe(name).pipe(docs, batch_size=TEXTS_PER_PARSE):
                pass
