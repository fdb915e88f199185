"""FanOutQA's chunking: text cut at paragraphs, lines, sentences, clauses or words, whichever keeps chunks whole."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.errors import InputError

SEPARATORS = ("\n\n", "\n", ". ", ", ", " ")


def chunk_text(text: str, max_chunk_size: int = 1024, chunk_on: Sequence[str] = SEPARATORS) -> list[str]:
    """Cuts a text into chunks of at most ``max_chunk_size`` characters: exactly the official chunks, in linear time.

    The text is split at the first separator, and each piece keeps its separator; a piece that is still too long is
    split at the next one; neighbours are joined again while they fit; with no separator left, the text is cut at
    ``max_chunk_size``. Two habits of the official function show in its output and are kept. The last piece of each
    split, which had no separator in the text, is given one too; afterwards a last chunk that is only the separator is
    dropped, and the last chunk loses as many characters as the separator has, so that the chunks joined are not always
    the text. And a chunk can be empty.

    Args:
        text: any text.
        max_chunk_size: in characters, at least 1.
        chunk_on: the separators in order of preference, none of them empty; none at all cuts every ``max_chunk_size``.

    Returns:
        The chunks in order: ``[text]`` where it fits as it is, so ``[""]`` for an empty text.

    Raises:
        InputError: ``max_chunk_size`` below 1, an empty separator, or a size so small beside a separator's length that
            the official function fails too.

    Source: ``fanoutqa.retrieval.chunk_text``, https://github.com/zhudotexe/fanoutqa, which recurses once for each cut
    (about a thousand cuts are its limit) and copies the rest of the text at each.
    """
    if max_chunk_size < 1:
        raise InputError(f"max_chunk_size is {max_chunk_size}; a chunk has at least 1 character")
    if isinstance(chunk_on, str) or not all(chunk_on):
        raise InputError(f"chunk_on is {chunk_on!r}; it must be a sequence of separators, none of them empty")
    return _chunks(text, max_chunk_size, tuple(chunk_on), 0)


def _chunks(text: str, size: int, separators: tuple[str, ...], level: int) -> list[str]:
    """Recurses once a separator, never once a chunk."""
    if len(text) <= size:
        return [text]
    if level == len(separators):
        return [text[start : start + size] for start in range(0, len(text), size)]
    separator = separators[level]
    chunks = _Chunks(size)
    for piece in text.split(separator):
        if len(piece) + len(separator) > size:
            chunks.extend(_chunks(piece + separator, size, separators, level + 1))
        else:
            chunks.add(piece, separator)
    return _without_last_separator(chunks.finish(), separator, size)


def _without_last_separator(chunks: list[str], separator: str, size: int) -> list[str]:
    if chunks[-1] == separator:
        chunks.pop()
    if not chunks:
        raise InputError(f"max_chunk_size {size} is too small to split at {separator!r}: no chunk is left")
    chunks[-1] = chunks[-1][: -len(separator)]
    return chunks


class _Chunks:
    """Chunks in the making. The parts of the last one are joined once, when it is full."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.full: list[str] = []
        self.last: list[str] = []
        self.length = 0

    def add(self, *parts: str) -> None:
        """Joins a piece, given in parts, to the last chunk if it fits, and begins a new chunk with it otherwise."""
        length = sum(map(len, parts))
        if self.last and self.length + length <= self.size:
            self.last += parts
            self.length += length
        else:
            self._close()
            self.last, self.length = list(parts), length

    def extend(self, chunks: list[str]) -> None:
        """Adds chunks as they are; what comes next may still be joined to the last one."""
        self._close()
        self.full += chunks[:-1]
        self.last, self.length = [chunks[-1]], len(chunks[-1])

    def finish(self) -> list[str]:
        self._close()
        return self.full

    def _close(self) -> None:
        if self.last:
            self.full.append("".join(self.last))
            self.last = []
