"""Dates and numbers in a text, by which atomic claims are compared with their sentence."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from qabench.errors import MissingExtra
from qabench.text.spacy_lemmatizer import MODEL_VARIABLE, OFFICIAL_MODEL, SpacyLemmatizer, find_spec_of

TYPES = {"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"}
UNUSED = ["tagger", "parser", "attribute_ruler", "lemmatizer"]
MONTHS = {
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
}
NUMBER = re.compile(r"\b\d+\b")
ARTICLE = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Entities = Callable[[str], list[str]]
"""The dates and numbers of a text, each once, in the order in which they are found."""
Spans = Callable[[str], Iterable[tuple[str, str]]]
"""The (text, label) of the named entities of a text."""


def entities_of(text: str, spans: Spans) -> list[str]:
    """Parts of named entities that are numbers or months, and numbers that are in none of these.

    The authors' script keeps them in sets, so that its result can depend on Python's hash seed, if one number is part
    of another. Here, they have the order of the text.

    Args:
        text: a sentence or an atomic claim.
        spans: finds named entities.
    """
    found: list[str] = []
    for entity, label in spans(text):
        if label in TYPES:
            for part in [entity] if is_date(entity) else filter(is_date, entity.split()):
                found += [piece.strip() for piece in part.split("-")] if "-" in part else [part]
    for number in NUMBER.findall(text):
        if not any(number in other for other in found):
            found.append(number)
    return list(dict.fromkeys(found))


def is_date(text: str) -> bool:
    """Whether all words of a text are numbers or months, without punctuation, articles and case."""
    plain = ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()
    return bool(plain) and all(word in MONTHS or _is_number(word) for word in plain)


def load_entities(model: str | None = None) -> tuple[str, Entities]:
    """The name of a spaCy model with its version, and the function that finds dates and numbers with it.

    Args:
        model: an installed package or a folder. Default: QABENCH_SPACY_MODEL, or else the authors' en_core_web_sm.

    Raises:
        MissingExtra: spaCy or the model is not installed.
    """
    chosen = model or os.environ.get(MODEL_VARIABLE) or OFFICIAL_MODEL
    found = SpacyLemmatizer(chosen)  # checks that the model is there, and reads its version
    try:
        import spacy
    except ImportError:
        raise MissingExtra("the authors' post-processing needs spaCy: pip install 'qabench[spacy]'") from None
    nlp: Any = spacy.load(chosen if find_spec_of(chosen) else found.folder, exclude=UNUSED)

    @cache
    def entities(text: str) -> list[str]:
        return entities_of(text, lambda part: [(span.text, span.label_) for span in nlp(part).ents])

    return found.versions.partition("+")[0], entities


def _is_number(word: str) -> bool:
    try:
        int(word)
    except ValueError:
        return False
    return True
