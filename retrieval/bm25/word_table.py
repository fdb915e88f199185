"""Find the terms of queries with compiled functions, which run in several threads at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from qabench.retrieval.bm25.compiled import compiled
from qabench.retrieval.bm25.search import Array
from qabench.retrieval.bm25.tokenizers import LOWER_OR_SPACE, SPACE, Words

# The constants of the FNV-1a hash, as signed integers.
FIRST_CODE = 0xCBF29CE484222325 - 2**64
FACTOR = 0x100000001B3
# The lowercase of each byte, or a space if it is not in words. 256 entries.
LOWER = np.frombuffer(LOWER_OR_SPACE, dtype=np.uint8)


@compiled
def _slot(table: Array, words: Array, bounds: Array, code: int, text: Array) -> int:
    """Return the slot of a word in a hash table, or an empty slot if the word is not there.

    Args:
        table: the number of a word in each slot. Below 0 in empty slots.
        words: the bytes of all words.
        bounds: where each word starts in ``words``, and the end of the last word.
        code: the hash code of the word.
        text: the bytes of the word.
    """
    slot = code & (len(table) - 1)
    while table[slot] >= 0:
        start = bounds[table[slot]]
        if bounds[table[slot] + 1] - start == len(text):
            place = 0
            while place < len(text) and words[start + place] == text[place]:
                place += 1
            if place == len(text):
                break
        slot = (slot + 1) & (len(table) - 1)
    return slot


@compiled
def _fill(table: Array, words: Array, bounds: Array) -> None:
    """Insert all words into an empty table."""
    for number in range(len(bounds) - 1):
        text = words[bounds[number] : bounds[number + 1]]
        code = FIRST_CODE
        for byte in text:
            # In compiled code, a product wraps around at 64 bits, as in the definition of the hash.
            code = (code ^ byte) * FACTOR
        table[_slot(table, words, bounds, code, text)] = number


@compiled
def _encode(
    table: Array,
    words: Array,
    word_bounds: Array,
    lower: Array,
    texts: Array,
    text_bounds: Array,
    terms: Array,
    term_bounds: Array,
) -> None:
    """Find the numbers of known words in texts.

    Args:
        table: the hash table of the words.
        words: the bytes of all words.
        word_bounds: where each word starts in ``words``, and the end of the last word.
        lower: the lowercase of each byte, or a space if it is not in words.
        texts: the bytes of all texts. This function changes the bytes of words to lowercase.
        text_bounds: where each text starts, and the end of the last text.
        terms: output: the numbers of the known words.
        term_bounds: output: where the terms of each text start, and the end of the last text's.
    """
    count = 0
    for i in range(len(text_bounds) - 1):
        place = text_bounds[i]
        end = text_bounds[i + 1]
        while place < end:
            start = place
            code = FIRST_CODE
            while place < end and lower[texts[place]] != SPACE:
                texts[place] = lower[texts[place]]
                code = (code ^ texts[place]) * FACTOR
                place += 1
            if place > start:
                number = table[_slot(table, words, word_bounds, code, texts[start:place])]
                if number >= 0:
                    terms[count] = number
                    count += 1
            place += 1
        term_bounds[i + 1] = count


class WordTable:
    """The vocabulary of an index in a hash table. The tokenizer must be ``Words``.

    Attributes:
        words: the bytes of all words.
        bounds: where each word starts in ``words``, and the end of the last word.
        table: the number of a word in each slot. Below 0 in empty slots.
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self.words, self.bounds = _joined(list(vocabulary))
        # A power of two, so that & gives a slot. More than half of the slots are empty, so that a
        # search for a word is short.
        self.table = np.full(1 << (2 * len(self.bounds)).bit_length(), -1, dtype=np.int32)
        _fill(self.table, self.words, self.bounds)

    def encode(self, texts: Array, bounds: Array) -> tuple[Array, Array]:
        """Return the numbers of known terms.

        The bytes of words in ``texts`` become lowercase in place.

        Args:
            texts: the bytes of all texts.
            bounds: where each text to encode starts in ``texts``, and the end of the last one.

        Returns:
            The numbers of the terms of all texts in one array, and where each text's terms start in
            it, with the end of the last text's terms.
        """
        # At least one byte separates two words, which bounds the number of terms.
        terms = np.empty((bounds[-1] - bounds[0] + len(bounds)) // 2, dtype=np.int64)
        term_bounds = np.zeros(len(bounds), dtype=np.int64)
        _encode(self.table, self.words, self.bounds, LOWER, texts, bounds, terms, term_bounds)
        return terms[: term_bounds[-1]], term_bounds


def joined(tokenizer: Words, texts: Sequence[str]) -> tuple[Array, Array]:
    """Return the bytes of texts, and where each text starts, with the end of the last text.

    Texts are first split into terms if they are not ASCII, or if the tokenizer has a stemmer.
    """
    if tokenizer.stemmer or not "".join(texts).isascii():
        split_texts = []
        for text in texts:
            if tokenizer.stemmer or not text.isascii():
                text = " ".join(tokenizer(text))
            split_texts.append(text)
        texts = split_texts
    return _joined(texts)


def _joined(texts: Sequence[str]) -> tuple[Array, Array]:
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    bounds = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return np.frombuffer(bytearray(b"".join(encoded)), dtype=np.uint8), bounds
