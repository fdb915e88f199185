"""Tokenizers: Unicode words (the default), FanOutQA's normalizer, or any function."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from typing import Any

import numpy as np

from qabench.data.arguments import checked_string
from qabench.data.containers import is_iterable
from qabench.data.rows import Json
from qabench.errors import InputError, MissingExtra
from qabench.retrieval.bm25 import scripts
from qabench.retrieval.bm25.search import Array
from qabench.retrieval.bm25.stop_words import stop_words_of

Tokenizer = Callable[[str], Sequence[str]]

VERSIONS = (1, 2)
WORD = re.compile(r"\w+")
ASCII = bytes(range(128))
SPACE = ord(" ")
WORD_OR_SPACE = [code if WORD.match(chr(code)) else SPACE for code in ASCII]
# This table for ``bytes.translate`` lowercases ASCII letters, replaces ASCII characters that are
# not in words by spaces, and keeps the bytes of characters beyond ASCII.
LOWER_OR_SPACE = bytes(WORD_OR_SPACE).lower() + bytes(range(128, 256))


def _listed(stop_words: Any) -> list[str]:
    """Return the stop words of the argument ``stop_words`` of ``Words`` as a list."""
    if stop_words is None:
        return []
    if isinstance(stop_words, str):
        return stop_words_of(stop_words)
    listed = [stop_words]
    if is_iterable(stop_words):
        listed = list(stop_words)
    if not all(isinstance(word, str) for word in listed):
        raise InputError(f"stop_words is {stop_words!r:.60}; expected a list of strings")
    return listed


class Words:
    """Runs of Unicode word characters (letters, digits, the underscore) in the lowercased text.

    Args:
        stop_words: words to omit: None, the name of a language with a list of function words (see
            ``qabench.retrieval.bm25.stop_words``), such as "english", or a custom list.
        stemmer: None, or the language of a Snowball stemmer ("english", "german", ...), applied
            after the stop words.
        version: 1, or 2 for all scripts. Version 2 normalizes the text (NFC), keeps combining marks
            in words, and takes pairs of characters (bigrams) as terms in scripts without spaces:
            Chinese, Japanese, Thai, Lao, Khmer and Burmese. Both versions give the same terms for
            normalized texts in Latin, Greek or Cyrillic letters without combining marks, except for
            the letter İ, whose lowercase has such a mark.

    Raises:
        MissingExtra: a stemmer is given and PyStemmer is not installed.
        InputError: an unknown list of stop words, stemmer or version.
    """

    def __init__(
        self,
        stop_words: str | Iterable[str] | None = None,
        stemmer: str | None = None,
        version: int = 1,
    ) -> None:
        if type(version) is not int or version not in VERSIONS:
            raise InputError(f"version is {version!r:.60}; allowed: 1, or 2 for all scripts")
        self.version = version
        self.stop_words = frozenset(self._lowered(word) for word in _listed(stop_words))
        self.stemmer = stemmer
        self._stem: Callable[[str], str] | None = None
        parts = [f"words-{version}"]
        if self.stop_words:
            digest = hashlib.sha256("\n".join(sorted(self.stop_words)).encode()).hexdigest()[:8]
            parts.append(f"stop-{digest}")
        if stemmer is not None:
            checked_string(stemmer, "stemmer")
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
        """Return the arguments that construct this tokenizer again, for saved indexes."""
        return {
            "stop_words": sorted(self.stop_words),
            "stemmer": self.stemmer,
            "version": self.version,
        }

    def __call__(self, text: str) -> list[str]:
        """Return the text's terms."""
        try:
            if text.isascii():
                # This gives the same terms as the pattern, in a third of the time.
                terms = text.encode().translate(LOWER_OR_SPACE).decode().split()
            else:
                lowered = self._lowered(text)
                terms = WORD.findall(lowered)
                if self.version > 1 and scripts.is_special(lowered):
                    terms = scripts.spaced([lowered])[0].split()
        except (AttributeError, TypeError):
            raise InputError(f"the text is {text!r:.60}; expected a string") from None
        if not self.stop_words and not self._stem:
            return terms
        return [term for term in self._finish(terms) if term is not None]

    def encode(self, texts: Sequence[str]) -> tuple[Any, Any, list[str | None]]:
        """Return the terms of many texts as numbers. Each distinct word is stemmed only once.

        Returns:
            A tuple: the numbers of the words of all texts, in one array; the index of each text's
            first word in this array, and the end of the last text; and the list of the terms by
            number, with None for a stop word. Words are numbered in first-seen order.
        """
        import pyarrow.compute

        is_letter = is_word
        if self.version > 1:
            texts = _with_special_texts_split(texts)
            is_letter = scripts.is_in_words
        # pa.array and to_numpy would import pandas, which takes a second.
        buffers = map(pyarrow.py_buffer, _lowercase_buffers(texts, is_letter))
        split = pyarrow.compute.ascii_split_whitespace(
            pyarrow.LargeStringArray.from_buffers(len(texts), *buffers)
        )
        numbered = split.values.dictionary_encode()
        terms = self._finish(numbered.dictionary.to_pylist())
        return np.from_dlpack(numbered.indices), np.from_dlpack(split.offsets), terms

    def _lowered(self, text: str) -> str:
        """Return a text in lowercase, and in version 2 also normalized (NFC)."""
        if self.version == 1 or text.isascii():
            return text.lower()
        return scripts.normalized(text)

    def _finish(self, found: Sequence[str]) -> list[str | None]:
        """Return the term of each word, or None for a stop word or an empty word."""
        # Where a text begins or ends with a space, Arrow returns an empty word.
        remaining = [word if word and word not in self.stop_words else None for word in found]
        if self._stem is None:
            return remaining
        return [word and self._stem(word) for word in remaining]


words = Words()


def tokenize(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[str]]:
    """Return the terms of each text, from the tokenizer's ``batch`` if it has one."""
    batch = getattr(tokenizer, "batch", None)
    terms_of_texts: Iterable[Any] = batch(texts) if batch else map(tokenizer, texts)
    tokens = []
    for terms in terms_of_texts:
        if not is_iterable(terms) or isinstance(terms, str):
            raise _not_terms(tokenizer, terms)
        tokens.append(list(terms))
    for terms in tokens:
        if set(map(type, terms)) - {str}:
            raise _not_terms(tokenizer, terms)
    return tokens


def _not_terms(tokenizer: Tokenizer, terms: object) -> InputError:
    return InputError(
        f"the tokenizer {name_of(tokenizer)} returned {terms!r:.60}; expected a list of strings"
    )


def encode(
    tokenizer: Tokenizer, texts: Sequence[str], number_of: Callable[[str], int | None]
) -> tuple[Array, Array]:
    """Return the numbers of the terms of several texts.

    Args:
        tokenizer: the tokenizer.
        texts: the texts.
        number_of: returns the number of a term, or None if the term is to be left out.

    Returns:
        The numbers of the terms of all texts in one array, and the index of each text's first term
        in this array, with the end of the last text.
    """
    terms: Sequence[str | None]
    if type(tokenizer) is Words:
        places, bounds, terms = tokenizer.encode(texts)
    else:
        tokens = tokenize(tokenizer, texts)
        bounds = np.cumsum([0, *map(len, tokens)])
        place_of: defaultdict[str, int] = defaultdict(count().__next__)
        numbered = map(place_of.__getitem__, chain.from_iterable(tokens))
        places = np.fromiter(numbered, dtype=np.int64, count=bounds[-1])
        terms = list(place_of)
    numbers = [None if term is None else number_of(term) for term in terms]
    # -1 marks a stop word or an unknown term, which is removed below.
    codes = [-1 if number is None else number for number in numbers]
    encoded = np.array(codes, dtype=np.int64)[places]
    absent = np.flatnonzero(encoded < 0)
    # Each bound moves back by the number of removed terms before it.
    return np.delete(encoded, absent), bounds - np.searchsorted(absent, bounds)


def name_of(tokenizer: Tokenizer) -> str:
    """Return the name that identifies a tokenizer in a saved index.

    It is the attribute ``name`` or, without one, the module and the qualified name of the function.
    """
    name = getattr(tokenizer, "name", None)
    if isinstance(name, str):
        return name
    where = tokenizer if hasattr(tokenizer, "__qualname__") else type(tokenizer)
    return f"{getattr(where, '__module__', None) or 'builtins'}.{where.__qualname__}"


def is_word(text: str) -> bool:
    """Tell whether all characters of a text can be in words."""
    return WORD.fullmatch(text) is not None


def _with_special_texts_split(texts: Sequence[str]) -> list[str]:
    """Return the texts. In those with special characters, spaces separate the terms.

    ``scripts.special_characters`` defines these characters. Texts without them are unchanged.
    """
    replaced = list(texts)
    beyond_ascii = [position for position, text in enumerate(replaced) if not text.isascii()]
    joined = "".join(replaced[position] for position in beyond_ascii)
    codes = _codes_beyond_ascii(joined.encode("utf-8", "surrogatepass"))
    characters = scripts.special_characters(np.flatnonzero(np.bincount(codes)))
    if not characters:
        return replaced
    is_special = re.compile(f"[{characters}]").search
    special = [position for position in beyond_ascii if is_special(replaced[position])]
    spaced = scripts.spaced([scripts.normalized(replaced[position]) for position in special])
    for position, text in zip(special, spaced, strict=True):
        replaced[position] = text
    return replaced


def _codes_beyond_ascii(utf8: bytes | bytearray) -> Array:
    """Return the code points of the characters beyond ASCII in a UTF-8 text, in order. uint32."""
    text = utf8.translate(None, ASCII).decode("utf-8", "surrogatepass")
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _lowercase_buffers(
    texts: Sequence[str], is_letter: Callable[[str], bool]
) -> tuple[Array, bytearray]:
    """Return texts in lowercase, with spaces in place of what is not in words, as Arrow's buffers.

    ``["The U.S.", "Zürich!"]`` gives ``[0, 8, 16]`` and the UTF-8 of ``"the u s zürich "``.

    Args:
        texts: the texts.
        is_letter: tells whether a character is in words.

    Returns:
        The arguments of ``LargeStringArray.from_buffers``, in its order: the start of each text and
        the end of the last, in bytes, and the bytes of all texts. Each byte that is not in a word
        is a space.
    """
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    data = bytearray(b"".join(encoded).translate(LOWER_OR_SPACE))
    codes = _codes_beyond_ascii(data)
    # The table has the UTF-8 bytes of each lowercase character, or spaces if it is not in words.
    table = np.zeros(codes.max(initial=0) + 1, dtype="S4")
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        lower = chr(code).lower()
        size = len(chr(code).encode("utf-8", "surrogatepass"))
        lower_size = len(lower.encode("utf-8", "surrogatepass"))
        if lower_size != size or chr(code) == "Σ":
            # In lowercase, İ has more bytes, and Σ is ς at the end of a word, so such letters cannot
            # be replaced one by one.
            return _lowercase_buffers([text.lower() for text in texts], is_letter)
        table[code] = lower.encode() if is_letter(lower) else b" " * size
    # NumPy pads shorter entries to four bytes with zeros, which are removed here.
    replaced = table.view(np.uint32)[codes].tobytes().translate(None, b"\0")
    array = np.frombuffer(data, dtype=np.uint8)
    array[array >= 128] = np.frombuffer(replaced, dtype=np.uint8)
    return np.cumsum([0, *map(len, encoded)], dtype=np.int64), data
