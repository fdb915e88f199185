"""Tokenizers: Unicode words (the default), FanOutQA's normalizer, or any function."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra
from qabench.retrieval.bm25.search import Array

Tokenizer = Callable[[str], Sequence[str]]

WORD = re.compile(r"\w+")
ASCII = bytes(range(128))
# Lowercases letters, replaces other characters by spaces, and keeps the bytes of characters beyond
# ASCII.
SPACE = ord(" ")
LOWER = [ord(character) if WORD.match(character) else SPACE for character in map(chr, ASCII)]
ASCII_WORDS = bytes(LOWER).lower() + bytes(range(128, 256))

# Function words: determiners, pronouns, prepositions, conjunctions, auxiliaries.
FUNCTION_WORDS = """
a an the this that these those each every some any no
i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
who whom whose which what
of in on at by for from to with without into onto upon over under about between among through during before after
and or but nor so if than then because while as though although
am is are was were be been being do does did have has had will would shall should can could may might must not
there here when where why how
"""
ENGLISH_STOP_WORDS = frozenset(FUNCTION_WORDS.split())


class Words:
    """Runs of Unicode word characters (letters, digits, the underscore) in the lowercased text.

    Args:
        stop_words: words to omit: None, "english" (a list of function words), or a custom list.
        stemmer: None, or the language of a Snowball stemmer ("english", "german", ...), applied
            after the stop words.

    Raises:
        MissingExtra: a stemmer is given and PyStemmer is not installed.
        InputError: an unknown list of stop words or an unknown stemmer.
    """

    def __init__(
        self, stop_words: str | Iterable[str] | None = None, stemmer: str | None = None
    ) -> None:
        if isinstance(stop_words, str):
            if stop_words != "english":
                raise InputError(
                    f"unknown stop words {stop_words!r}; allowed: 'english', None, or a list of words"
                )
            stop_words = ENGLISH_STOP_WORDS
        self.stop_words = frozenset(map(str.lower, stop_words or ()))
        self.stemmer = stemmer
        self._stem: Callable[[str], str] | None = None
        parts = ["words-1"]
        if self.stop_words:
            digest = hashlib.sha256("\n".join(sorted(self.stop_words)).encode()).hexdigest()[:8]
            parts.append(f"stop-{digest}")
        if stemmer:
            try:
                import Stemmer
            except ImportError:
                raise MissingExtra(
                    "a stemmer needs PyStemmer: pip install 'qabench[retrieval]'"
                ) from None
            if stemmer not in Stemmer.algorithms():
                raise InputError(
                    f"unknown stemmer {stemmer!r}; allowed: {', '.join(Stemmer.algorithms())}"
                )
            self._stem = Stemmer.Stemmer(stemmer).stemWord
            parts.append(f"snowball-{stemmer}-{Stemmer.version()}")
        self.name = "+".join(parts)

    @property
    def spec(self) -> Json:
        """The arguments that make this tokenizer, for saved indexes."""
        return {"stop_words": sorted(self.stop_words), "stemmer": self.stemmer}

    def __call__(self, text: str) -> list[str]:
        """Return the text's terms."""
        terms = WORD.findall(text.lower())
        if not self.stop_words and not self._stem:
            return terms
        return [term for term in self._finish(terms) if term is not None]

    def encode(self, texts: Sequence[str]) -> tuple[Any, Any, list[str | None]]:
        """Return the terms of many texts, each distinct word once.

        Returns:
            The number of each word of all texts, the start of each text in them and the end of the
            last, and the term of each number, in the order of first occurrence. The term is None
            for a stop word. Each distinct word is stemmed once.
        """
        import pyarrow.compute

        # Without pa.array and to_numpy, which would import pandas. That takes a second.
        buffers = map(pyarrow.py_buffer, _spaced(texts))
        split = pyarrow.compute.ascii_split_whitespace(
            pyarrow.LargeStringArray.from_buffers(len(texts), *buffers)
        )
        words = split.values.dictionary_encode()
        terms = self._finish(words.dictionary.to_pylist())
        return np.from_dlpack(words.indices), np.from_dlpack(split.offsets), terms

    def _finish(self, words: Sequence[str]) -> list[str | None]:
        # Arrow finds an empty word where a text begins or ends with a space.
        remaining = [word if word and word not in self.stop_words else None for word in words]
        return [word and self._stem(word) for word in remaining] if self._stem else remaining


words = Words()


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[str]]:
    """Return the terms of each text, from the tokenizer's ``batch`` if it has one."""
    batch = getattr(tokenizer, "batch", None)
    tokens = [list(terms) for terms in (batch(texts) if batch else map(tokenizer, texts))]
    for terms in tokens:
        if set(map(type, terms)) - {str}:
            raise InputError(
                f"the tokenizer {name_of(tokenizer)} returned {terms!r:.60}; expected strings"
            )
    return tokens


def encode(
    tokenizer: Tokenizer, texts: Sequence[str], number_of: Callable[[str], int | None]
) -> tuple[Array, Array]:
    """Return the numbers of the terms of texts.

    Args:
        tokenizer: the tokenizer.
        texts: the texts.
        number_of: returns the number of a term, or None if the term is to be left out.

    Returns:
        The numbers of all texts' terms, and the start of each text in them and the end of the last.
    """
    terms: Sequence[str | None]
    if type(tokenizer) is Words:
        places, ends, terms = tokenizer.encode(texts)
    else:
        tokens = tokenize(tokenizer, texts)
        ends = np.cumsum([0, *map(len, tokens)])
        place_of: defaultdict[str, int] = defaultdict(count().__next__)
        numbered = map(place_of.__getitem__, chain.from_iterable(tokens))
        places = np.fromiter(numbered, dtype=np.int64, count=ends[-1])
        terms = list(place_of)
    numbers = [None if term is None else number_of(term) for term in terms]
    codes = [-1 if number is None else number for number in numbers]
    encoded = np.array(codes or [-1], dtype=np.int64)[places]
    absent = np.flatnonzero(encoded < 0)
    return np.delete(encoded, absent), ends - np.searchsorted(absent, ends)


def name_of(tokenizer: Tokenizer) -> str:
    """Return the name of a tokenizer in a saved index: its ``name``, or its module and qualified name."""
    name = getattr(tokenizer, "name", None)
    if isinstance(name, str):
        return name
    where = tokenizer if hasattr(tokenizer, "__qualname__") else type(tokenizer)
    return f"{getattr(where, '__module__', None) or 'builtins'}.{where.__qualname__}"


def _spaced(texts: Sequence[str]) -> tuple[Array, bytearray]:
    """Return the words of texts in lowercase.

    Returns:
        The start of each text and the end of the last, and the text's words as UTF-8, with spaces
        in place of all other characters. So the texts keep their lengths.
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    words = bytearray(b"".join(encoded).translate(ASCII_WORDS))
    beyond_ascii = words.translate(None, ASCII).decode("utf-8", "surrogatepass")
    codes = np.frombuffer(beyond_ascii.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    # the UTF-8 of each character, in lower case or as spaces
    table = np.zeros(codes.max(initial=0) + 1, dtype="S4")
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        lower = chr(code).lower()
        size = len(chr(code).encode("utf-8", "surrogatepass"))
        lower_size = len(lower.encode("utf-8", "surrogatepass"))
        if lower_size != size or chr(code) == "Σ":  # İ grows; Σ becomes ς at the end of a word
            return _spaced([text.lower() for text in texts])
        table[code] = lower.encode() if WORD.fullmatch(lower) else b" " * size
    replaced = table.view(np.uint32)[codes].tobytes().translate(None, b"\0")
    array = np.frombuffer(words, dtype=np.uint8)
    array[array >= 128] = np.frombuffer(replaced, dtype=np.uint8)
    return np.cumsum([0, *map(len, encoded)], dtype=np.int64), words
