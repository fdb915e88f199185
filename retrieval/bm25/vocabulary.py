"""The vocabulary of a saved index. Terms are looked up in the file, so that opening an index reads no terms."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.arrays import Array


class StoredVocabulary:
    """Terms in arrays: their UTF-8 in ascending order, the start of each, and the number of each.

    Terms that were looked up are cached.
    """

    def __init__(self, text: Array, starts: Array, numbers: Array) -> None:
        self._text = text.data
        self._starts = starts
        self._numbers = numbers
        self._known: dict[str, int] = {}

    @staticmethod
    def arrays(vocabulary: Iterable[tuple[str, int]]) -> tuple[Array, Array, Array]:
        """The arrays of a vocabulary's terms and numbers."""
        terms = sorted((term.encode("utf-8", "surrogatepass"), number) for term, number in vocabulary)
        lengths = np.fromiter((len(term) for term, _ in terms), dtype=np.int64, count=len(terms))
        text = np.frombuffer(b"".join(term for term, _ in terms), dtype=np.uint8)
        numbers = np.fromiter((number for _, number in terms), dtype=np.int32, count=len(terms))
        return text, np.concatenate(([0], np.cumsum(lengths))), numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, place: int) -> bytes:
        return bytes(self._text[self._starts[place] : self._starts[place + 1]])

    def get(self, term: str) -> int | None:
        """The number of a term; None if no document contains it."""
        number = self._known.get(term)
        if number is None:
            wanted = term.encode("utf-8", "surrogatepass")
            place = bisect_left(self, wanted)
            if place == len(self) or self[place] != wanted:
                return None
            number = self._known[term] = int(self._numbers[place])
        return number

    def items(self) -> list[tuple[str, int]]:
        """All terms and their numbers. Raises InputError if a term is not UTF-8, which only a damaged file has."""
        try:
            return [(self[place].decode("utf-8", "surrogatepass"), int(n)) for place, n in enumerate(self._numbers)]
        except UnicodeDecodeError as error:
            raise InputError(f"the vocabulary of the index is damaged ({error.reason}); build it again") from None
