"""FanOutQA's normaliser: the text that string metrics compare.

The steps and their order are the official scorer's (``fanoutqa.norm`` of the package ``fanoutqa``); only the order of
the *work* differs: many texts at once, each distinct text once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from typing import Any

from qabench.text.cache import NormalizedTextCache
from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer
from qabench.text.repaired import repair

NAME = "fanoutqa-1"  # the number changes when a normal form does
CHARACTERS_PER_BLOCK = 1_000_000
# A digit run can only begin where no digit stands before it, and gives nothing back: linear on any text.
THOUSANDS = re.compile(r"(?<!\d)\d++(?:,\d++)++(?:\.\d++)?")
PUNCTUATION = str.maketrans("", "", ",.?!:;")
WHITESPACE = re.compile(r"\s+")


def before_lemmas(text: Any) -> str:
    """The steps before lemmatisation: ``str``, lower case, mojibake repaired, thousands commas removed."""
    text = repair(str(text).lower())
    return THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)


def after_lemmas(text: str) -> str:
    """The steps after it: the characters ``, . ? ! : ;`` deleted, each run of white space one space."""
    return WHITESPACE.sub(" ", text.translate(PUNCTUATION))


class Normalizer:
    """The normaliser with one lemmatiser, for many texts.

    Args:
        lemmatizer: "auto", "spacy", "simplemma" or a ``Lemmatizer``; see ``resolve_lemmatizer``.
        cache: where normalised texts are kept between runs; None keeps them in memory for one call only.
    """

    def __init__(self, lemmatizer: str | Lemmatizer = "auto", cache: NormalizedTextCache | None = None) -> None:
        self.lemmatizer = resolve_lemmatizer(lemmatizer)
        self.cache = cache

    @property
    def name(self) -> str:
        """The normaliser as it stands in a signature."""
        return f"{NAME}+ftfy-{metadata.version('ftfy')}"

    @property
    def key(self) -> str:
        """What the normal form of a text depends on, for the cache."""
        return f"{self.name}/{self.lemmatizer.key}"

    def signature(self) -> dict[str, str]:
        """The fields by which a signature says what the normal forms depend on."""
        return {"normalizer": self.name, "lemmatizer": self.lemmatizer.name}

    def __call__(self, text: Any) -> str:
        """One text, normalised."""
        return self.batch([text])[str(text)]

    def batch(self, texts: Iterable[Any], progress: Callable[[int, int], None] | None = None) -> dict[str, str]:
        """The normalised form of each distinct ``str(text)``. Empty input gives an empty dict.

        Args:
            texts: any objects; each is put through ``str``.
            progress: is told the characters done and the characters in all, after each block of about a million.
        """
        distinct = list(dict.fromkeys(map(str, texts)))
        forms = self.cache.get(self.key, distinct) if self.cache else {}
        missing = [text for text in distinct if text not in forms]
        total, done = sum(map(len, missing)), 0
        for block in _blocks(missing):
            prepared = [before_lemmas(text) for text in block]
            wanted = list(dict.fromkeys(prepared))
            lemmas = dict(zip(wanted, self.lemmatizer(wanted), strict=True))
            new = {text: after_lemmas(lemmas[ready]) for text, ready in zip(block, prepared, strict=True)}
            if self.cache:  # after each block, so that a run that is stopped goes on where it was
                self.cache.put(self.key, new)
            forms |= new
            done += sum(map(len, block))
            if progress:
                progress(done, total)
        return forms


def _blocks(texts: list[str]) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= CHARACTERS_PER_BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def normalize(text: Any, lemmatizer: str | Lemmatizer = "auto") -> str:
    """The official FanOutQA normal form of one text.

    In this order: ``str``; lower case; ``ftfy.fix_text``; thousands commas of numbers removed; spaCy lemmas joined by
    one space; the characters ``, . ? ! : ;`` deleted; runs of white space become one space. Leading and trailing
    spaces stay, as upstream.

    Args:
        text: any object; what is not a string is put through ``str`` first, so None becomes "none".
        lemmatizer: see ``resolve_lemmatizer``. Only spaCy's ``en_core_web_sm`` is official.

    Returns:
        The normal form; "" for "".

    Raises:
        MissingExtra: ``lemmatizer="spacy"`` and spaCy or its model is not installed.

    Source: ``fanoutqa.norm.normalize``, https://github.com/zhudotexe/fanoutqa. For more than a few texts use
    ``Normalizer(...).batch``, which is far faster.
    """
    return Normalizer(lemmatizer)(text)
