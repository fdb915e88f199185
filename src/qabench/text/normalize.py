"""FanOutQA's normalizer, which produces the strings that accuracy compares.

The steps and their order are those of the official scorer (``fanoutqa.norm`` in the package ``fanoutqa``). Only the
order of the *work* differs: many texts are processed at once, and each distinct text once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from qabench.errors import QabenchError
from qabench.io.environment import package_version
from qabench.io.workers import cluster, map_loaded
from qabench.text.cache import NormalizedTextCache
from qabench.text.lemmatizers import Lemmatizer, resolve_lemmatizer, thread_safe_lemmatizer
from qabench.text.repaired import repair

NAME = "fanoutqa-1"  # the number changes when a normal form does
CHARACTERS_PER_BLOCK = 1_000_000
CHARACTERS_PER_BLOCK_ON_A_CLUSTER = 50_000  # about a second's work for one processor
# Linear time on any text: a match cannot start inside a run of digits, and possessive quantifiers do not backtrack.
THOUSANDS = re.compile(r"(?<!\d)\d++(?:,\d++)++(?:\.\d++)?")
PUNCTUATION = str.maketrans("", "", ",.?!:;")
WHITESPACE = re.compile(r"\s+")


def before_lemmas(text: Any) -> str:
    """Apply the steps before lemmatization: ``str``, lowercase, repair by ftfy, removal of thousands commas."""
    text = repair(str(text).lower())
    return THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)


def after_lemmas(text: str) -> str:
    """Apply the steps after lemmatization: delete ``, . ? ! : ;``, replace each run of whitespace by one space."""
    return WHITESPACE.sub(" ", text.translate(PUNCTUATION))


class Normalizer:
    """The normalizer with one lemmatizer, for many texts.

    Args:
        lemmatizer: "auto", "spacy", "simplemma" or a ``Lemmatizer``; see ``resolve_lemmatizer``.
        cache: the cache of normal forms between runs; None for no cache.
    """

    def __init__(self, lemmatizer: str | Lemmatizer = "auto", cache: NormalizedTextCache | None = None) -> None:
        self.lemmatizer = resolve_lemmatizer(lemmatizer)
        self.cache = cache

    @property
    def name(self) -> str:
        """The name of the normalizer in signatures."""
        return f"{NAME}+ftfy-{package_version('ftfy')}"

    @property
    def key(self) -> str:
        """Everything that a normal form depends on except the text; the key of the cache."""
        return f"{self.name}/{self.lemmatizer.key}"

    def signature(self) -> dict[str, str]:
        """Return the signature fields that describe what the normal forms depend on."""
        return {"normalizer": self.name, "lemmatizer": self.lemmatizer.name}

    def __call__(self, text: Any) -> str:
        """Return the normal form of one text."""
        return self.batch([text])[str(text)]

    def batch(self, texts: Iterable[Any], progress: Callable[[int, int], None] | None = None) -> dict[str, str]:
        """Return the normal form of each distinct ``str(text)``; {} for no texts.

        Args:
            texts: any objects; each is converted by ``str``.
            progress: called with the number of characters processed and of all characters, after each block of about
                a million (50,000 on a cluster).
        """
        distinct = list(dict.fromkeys(map(str, texts)))
        forms = self.cache.get(self.key, distinct) if self.cache else {}
        missing = [text for text in distinct if text not in forms]
        total, done = sum(map(len, missing)), 0
        blocks = list(_blocks(missing, CHARACTERS_PER_BLOCK_ON_A_CLUSTER if cluster() else CHARACTERS_PER_BLOCK))
        load = partial(_load, self.lemmatizer, self.lemmatizer.key if cluster() else None)
        for block, normal in zip(blocks, map_loaded(load, blocks), strict=True):
            new = dict(zip(block, normal, strict=True))
            if self.cache:  # after each block, so that an interrupted run can continue
                self.cache.put(self.key, new)
            forms |= new
            done += sum(map(len, block))
            if progress:
                progress(done, total)
        return forms


def shared_normalizer(lemmatizer: str | Lemmatizer) -> Normalizer:
    """Return a normalizer with the user's cache that can be called from several threads, for runs."""
    return Normalizer(thread_safe_lemmatizer(lemmatizer), NormalizedTextCache.default(hold=True))


def _load(lemmatizer: Lemmatizer, key: str | None) -> Callable[[list[str]], list[str]]:
    if key is not None:
        check_key(lemmatizer, key)
    return partial(_normal_forms, lemmatizer)


def check_key(lemmatizer: Lemmatizer, key: str) -> None:
    """Raise QabenchError if a lemmatizer, loaded on another machine of a cluster, has another key there."""
    if lemmatizer.key != key:
        raise QabenchError(f"a machine of the cluster has the lemmatizer {lemmatizer.key} instead of {key}")


def _normal_forms(lemmatizer: Lemmatizer, texts: list[str]) -> list[str]:
    prepared = [before_lemmas(text) for text in texts]
    distinct = list(dict.fromkeys(prepared))
    lemmas = dict(zip(distinct, lemmatizer(distinct), strict=True))
    return [after_lemmas(lemmas[text]) for text in prepared]


def _blocks(texts: list[str], characters: int) -> Iterator[list[str]]:
    block: list[str] = []
    size = 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= characters:
            yield block
            block, size = [], 0
    if block:
        yield block


def normalize(text: Any, lemmatizer: str | Lemmatizer = "auto") -> str:
    """Return the official FanOutQA normal form of one text.

    The steps, in this order: ``str``; lowercase; ``ftfy.fix_text``; thousands commas in numbers removed; spaCy lemmas
    joined by one space; the characters ``, . ? ! : ;`` deleted; each run of whitespace replaced by one space. Leading
    and trailing spaces are kept, as upstream.

    Args:
        text: any object; it is converted by ``str`` first, so None becomes "none".
        lemmatizer: see ``resolve_lemmatizer``. Only spaCy's ``en_core_web_sm`` is official.

    Returns:
        The normal form; "" for "".

    Raises:
        MissingExtra: ``lemmatizer="spacy"`` and spaCy or its model is not installed.

    Source: ``fanoutqa.norm.normalize``, https://github.com/zhudotexe/fanoutqa. For more than a few texts use
    ``Normalizer(...).batch``, which is much faster.
    """
    return Normalizer(lemmatizer)(text)
