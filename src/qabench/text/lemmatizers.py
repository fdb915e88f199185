"""Lemmatisers behind one interface: spaCy's ``en_core_web_sm`` (official) and simplemma (needs no model)."""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Sequence
from importlib import metadata
from importlib.util import find_spec
from typing import Protocol

from qabench.errors import InputError, MissingExtra
from qabench.text.spacy_lemmatizer import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, install_hint

NAMES = ("auto", "spacy", "simplemma")


class Lemmatizer(Protocol):
    """What the normaliser needs of a lemmatiser; any object with these members will do."""

    @property
    def name(self) -> str:
        """Name and versions, as they stand in a signature: ``en_core_web_sm-3.8.0+spacy-3.8.18+1f0c2a3b``."""

    @property
    def key(self) -> str:
        """Identifies what it gives for every text: two lemmatisers with one key must agree on all texts."""

    @property
    def official(self) -> bool:
        """Whether the official scorer uses this one."""

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The lemmas of each text joined by one space."""


class SimplemmaLemmatizer:
    """Dictionary lemmas by simplemma, for machines without the spaCy model: a fallback, never an official score.

    Measured on the 310 dev questions, three answer styles (prose, inflected prose, other number formats), against a
    spaCy pipeline of en_core_web_sm's architecture: loose accuracy of a question moves by 1.4, 4.1 and 1.8 points on
    average (the mean by +1.4, +0.5, +1.8), and 31, 6 and 30 of 310 strict verdicts change. No lemmatisation: 1.4,
    5.2, 1.8 points; Porter and Snowball stems: 1.4, 17.1, 1.8 (``benchmarks/fallback_lemmatizer.py``).
    """

    official = False
    # Words, with the clitics that spaCy splits off; numbers whole; every other character alone. The limit of 40 keeps
    # the time linear.
    TOKEN = re.compile(
        r"\d+(?:[.,:/]\d+)*|n't|'(?:s|re|ve|ll|d|m)\b|\w{1,40}?(?=n't\b)|[^\W\d_]+(?:\.[^\W\d_]+)*|\w+|[^\w\s]"
    )

    def __init__(self) -> None:
        self.name = f"simplemma-{metadata.version('simplemma')}"
        self.key = f"{self.name}/tokens-2"

    def __call__(self, texts: Sequence[str]) -> list[str]:
        import simplemma

        lemma = functools.cache(functools.partial(simplemma.lemmatize, lang="en"))
        return [" ".join(map(lemma, self.TOKEN.findall(text))) for text in texts]


@functools.cache
def _warn_unofficial(name: str) -> None:
    warnings.warn(
        f"No spaCy model is installed, so texts are lemmatised by {name}: the accuracy is UNOFFICIAL and may differ "
        f"by a few points. For official scores: {install_hint()}",
        stacklevel=2,
    )


def resolve_lemmatizer(lemmatizer: str | Lemmatizer = "auto") -> Lemmatizer:
    """The lemmatiser that a name stands for.

    Args:
        lemmatizer: "spacy": spaCy's ``en_core_web_sm``, or the installed package or folder that the environment
            variable QABENCH_SPACY_MODEL names (a result then says which); "simplemma": the fallback; "auto": spaCy
            where it and the model are installed, else simplemma with one warning; or a ``Lemmatizer``, returned as
            it is.

    Raises:
        InputError: an unknown name.
        MissingExtra: "spacy", or QABENCH_SPACY_MODEL is set, and spaCy or the model is not there.
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
    _warn_unofficial(fallback.name)
    return fallback


@functools.cache
def _spacy(model: str) -> Lemmatizer:
    if find_spec("spacy") is None:
        raise MissingExtra(f"the spaCy lemmatizer needs spaCy, which is not installed: {install_hint()}")
    return SpacyLemmatizer(model)
