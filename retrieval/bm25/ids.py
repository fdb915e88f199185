"""The ids of an index's documents, in arrays that are saved with the index and memory-mapped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qabench.errors import InputError
from qabench.retrieval.bm25.search import Array, Mask


@dataclass(frozen=True, slots=True)
class Ids:
    """The id of each document.

    Attributes:
        data: the concatenated ids as UTF-8. uint8.
        ends: where each id starts in ``data``, and the end of the last id. int64.
    """

    data: Array
    ends: Array

    @classmethod
    def of(cls, ids: Sequence[str], before: Ids | None = None) -> Ids:
        """Return the ids in ``before``, if any, followed by ``ids``.

        Raises:
            InputError: an id is repeated.
        """
        all_ids = [*before.all(), *ids] if before else list(ids)
        if len(set(all_ids)) < len(all_ids):
            raise InputError(f"the id {_repeated(all_ids)!r} is repeated")
        # Strings from JSON can contain lone surrogates, which plain UTF-8 cannot encode.
        encoded = [id.encode("utf-8", "surrogatepass") for id in all_ids]
        ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, document: int) -> str:
        """Return the id of a document, by its number in the index."""
        part = self.data[self.ends[document] : self.ends[document + 1]]
        return part.tobytes().decode("utf-8", "surrogatepass")

    def all(self) -> list[str]:
        """Return the ids of all documents."""
        data = self.data.tobytes()
        bounds = pairwise(self.ends.tolist())
        return [data[start:end].decode("utf-8", "surrogatepass") for start, end in bounds]

    def only(self, keep: Mask) -> Ids:
        """Return only the ids of the documents that ``keep`` marks."""
        return Ids.of([self[document] for document in np.flatnonzero(keep).tolist()])


def _repeated(ids: Iterable[str]) -> str:
    """Return the first id that occurs a second time."""
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            return id
        seen.add(id)
    raise ValueError("no id is repeated")
