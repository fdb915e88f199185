"""Lemmatizers behind one interface: spaCy's ``en_core_web_sm`` (official) and simplemma (needs no model)."""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Protocol

from qabench.errors import InputError, MissingExtra
from qabench.io.environment import package_version
from qabench.text.spacy_lemmatizer import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, install_hint

NAMES = ("auto", "spacy", "simplemma")


class Lemmatizer(Protocol):
    """The interface that the normalizer needs. Any object with these members can be used."""

    @property
    def name(self) -> str:
        """Name and versions for signatures: ``en_core_web_sm-3.8.0+spacy-3.8.18+1f0c2a3b``."""

    @property
    def key(self) -> str:
        """The key for caches: two lemmatizers with the same key must return the same lemmas for every text."""

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The lemmas of each text, joined by one space."""


class SimplemmaLemmatizer:
    """Dictionary lemmas from simplemma, for machines without the spaCy model: an unofficial fallback.

    It was compared with a spaCy pipeline of en_core_web_sm's architecture on the 310 dev questions and three answer
    styles (prose, inflected prose, other number formats). The loose accuracy of a question changes by 1.4, 4.1 and 1.8
    points on average (the mean by +1.4, +0.5 and +1.8), and 31, 6 and 30 of 310 strict verdicts change. Without
    lemmatization the changes are 1.4, 5.2 and 1.8 points, with Porter and Snowball stems 1.4, 17.1 and 1.8
    (``performance/fallback_lemmatizer.py``).
    """

    # Tokens are whole numbers, the clitics that spaCy splits off, words, and any other single character. The limit of
    # 40 keeps the time linear.
    TOKEN = re.compile(
        r"\d+(?:[.,:/]\d+)*|n't|'(?:s|re|ve|ll|d|m)\b|\w{1,40}?(?=n't\b)|[^\W\d_]+(?:\.[^\W\d_]+)*|\w+|[^\w\s]"
    )

    def __init__(self) -> None:
        self.name = f"simplemma-{package_version('simplemma')}"
        self.key = f"{self.name}/tokens-2"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        import simplemma

        lemma = functools.cache(functools.partial(simplemma.lemmatize, lang="en"))
        return [" ".join(map(lemma, self.TOKEN.findall(text))) for text in texts]


@functools.cache
def _warn_of_fallback(name: str) -> None:
    warnings.warn(
        f"the spaCy model {OFFICIAL_MODEL} is not installed, so {name} is used instead: the accuracy may differ from "
        f"the official one by a few points. For official scores: {install_hint()}",
        stacklevel=2,
    )


def resolve_lemmatizer(lemmatizer: str | Lemmatizer = "auto") -> Lemmatizer:
    """Returns the lemmatizer with the given name.

    Args:
        lemmatizer: one of these:
            "spacy": spaCy's ``en_core_web_sm``, or the installed package or folder in the environment variable
            QABENCH_SPACY_MODEL (signatures contain its name);
            "simplemma": the fallback;
            "auto": spaCy if it and the model are installed, else simplemma with one warning;
            a ``Lemmatizer``: returned unchanged.

    Raises:
        InputError: an unknown name.
        MissingExtra: spaCy or the model is not installed, and the name is "spacy" or QABENCH_SPACY_MODEL is set.
    """
    if not isinstance(lemmatizer, str):
        return lemmatizer
    if lemmatizer not in NAMES:
        raise InputError(f"unknown lemmatizer {lemmatizer!r}; allowed: {', '.join(NAMES)}, or a Lemmatizer object")
    if lemmatizer == "simplemma":
        return SimplemmaLemmatizer()
    named = os.environ.get(MODEL_VARIABLE)
    if lemmatizer == "spacy" or named or (find_spec("spacy") and find_spec(OFFICIAL_MODEL)):
        return _spacy(named or OFFICIAL_MODEL)
    fallback = SimplemmaLemmatizer()
    _warn_of_fallback(fallback.name)
    return fallback


@functools.cache
def _spacy(model: str) -> Lemmatizer:
    if find_spec("spacy") is None:
        raise MissingExtra(f"the spaCy lemmatizer needs spaCy, which is not installed: {install_hint()}")
    return SpacyLemmatizer(model)
