"""The attribute ruler and the lemmatizer of a spaCy pipeline, run once for each distinct token."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any

from spacy.attrs import DEP, ORTH, TAG
from spacy.language import Language
from spacy.matcher import Matcher
from spacy.pipeline import AttributeRuler
from spacy.tokens import Doc

Triple = tuple[int, int, int]

REMEMBERED_TOKENS = 500_000
LEXICAL_KEYS = {"TAG", "DEP", "LOWER", "ORTH", "TEXT", "IS_SPACE"}


class TokenLemmas:
    """The lemma of a token from its text, tag and dependency label, computed once for each distinct triple.

    Raises:
        ValueError: a pattern of the attribute ruler reads anything else.
    """

    def __init__(self, nlp: Language) -> None:
        self.vocab = nlp.vocab
        self.pipeline_ruler = nlp.get_pipe("attribute_ruler")
        self.lemmatizer = nlp.get_pipe("lemmatizer")
        self.ruler = AttributeRuler(nlp.vocab, name="one_token_patterns")
        # For each longer pattern, a mask with one bit for each of its tokens.
        self.longer: list[int] = []
        self.places = Matcher(nlp.vocab)
        self.known: dict[Triple, tuple[str, int]] = {}
        # The patterns cannot distinguish dependency labels that no pattern names.
        self.labels = {self.vocab.strings[""]}
        self.other_label = self.vocab.strings.add("a label that no pattern names")
        for rule in self.pipeline_ruler.patterns:
            for pattern in rule["patterns"]:
                unknown = {key for token in pattern for key in token} - LEXICAL_KEYS
                if unknown:
                    raise ValueError(f"a pattern of the attribute ruler reads {sorted(unknown)}")
                self.labels |= {self.vocab.strings.add(label) for label in _labels(pattern)}
                if len(pattern) == 1:
                    self.ruler.add([pattern], rule["attrs"], rule["index"])
                else:
                    self._add_longer(pattern)

    def _add_longer(self, pattern: list[dict[str, Any]]) -> None:
        first = sum(bits.bit_count() for bits in self.longer)
        self.longer.append(((1 << len(pattern)) - 1) << first)
        for place, token in enumerate(pattern, start=first):
            self.places.add(str(place), [[token]])

    def texts(self, docs: Sequence[Doc]) -> Iterator[str]:
        """The lemmas of each tagged and parsed document, joined by one space."""
        triples = [self._triples(doc) for doc in docs]
        self._learn(triples)
        for doc, tokens in zip(docs, triples, strict=True):
            lemmas, places = zip(*[self.known[token] for token in tokens], strict=True)
            seen = functools.reduce(operator.or_, places)
            if seen and any(seen & bits == bits for bits in self.longer):
                # A longer pattern may match, so the pipeline's own components are run.
                lemmas = tuple(token.lemma_ for token in self.lemmatizer(self.pipeline_ruler(doc)))
            yield " ".join(lemmas)

    def _triples(self, doc: Doc) -> list[Triple]:
        rows = doc.to_array([ORTH, TAG, DEP]).reshape(-1, 3).tolist()
        return [(orth, tag, dep if dep in self.labels else self.other_label) for orth, tag, dep in rows]

    def _learn(self, triples: list[list[Triple]]) -> None:
        new = list(dict.fromkeys(t for doc in triples for t in doc if t not in self.known))
        if len(self.known) + len(new) > REMEMBERED_TOKENS:
            self.known.clear()
            new = list(dict.fromkeys(t for doc in triples for t in doc))
        words, tags, deps = ([self.vocab.strings[t[column]] for t in new] for column in range(3))
        doc = Doc(self.vocab, words=words, tags=tags, deps=deps)
        places = [0] * len(new)
        for name, token, _ in self.places(doc, allow_missing=True):
            places[token] |= 1 << int(self.vocab.strings[name])
        lemmas = [token.lemma_ for token in self.lemmatizer(self.ruler(doc))]
        self.known.update(zip(new, zip(lemmas, places, strict=True), strict=True))


def _labels(pattern: list[dict[str, Any]]) -> Iterator[str]:
    """The dependency labels that a pattern names: ``"aux"``, ``{"IN": [...]}`` or ``{"NOT_IN": [...]}``."""
    for token in pattern:
        wanted = token.get("DEP", [])
        if isinstance(wanted, dict):
            if not set(wanted) <= {"IN", "NOT_IN"}:
                raise ValueError(f"a pattern of the attribute ruler compares labels by {sorted(wanted)}")
            yield from (label for labels in wanted.values() for label in labels)
        else:
            yield from [wanted] if isinstance(wanted, str) else wanted
