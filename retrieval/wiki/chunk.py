"""FanOutQA's chunking: texts are split at paragraphs, lines, sentences, clauses or words."""

from __future__ import annotations

from collections.abc import Sequence

from qabench.data.arguments import checked_k, checked_string
from qabench.errors import InputError

SEPARATORS = ("\n\n", "\n", ". ", ", ", " ")


def chunk_text(
    text: str, max_chunk_size: int = 1024, chunk_on: Sequence[str] = SEPARATORS
) -> list[str]:
    """Split a text into chunks of at most ``max_chunk_size`` characters.

    The chunks equal the official ones, but are computed in linear time. The text is split at the
    first separator, and each piece keeps its separator. A piece that is still too long is split at
    the next separator. Neighboring pieces are joined again as long as they fit. When no separator
    is left, the text is cut every ``max_chunk_size`` characters.

    Two quirks of the official function are reproduced. First, the last piece of each split gets a
    separator that is not in the text. Afterward, a last chunk that consists of the separator only
    is dropped, and as many characters as the separator has are removed from the last chunk. So the
    concatenated chunks are not always equal to the text. Second, a chunk can be empty.

    Args:
        text: any text.
        max_chunk_size: the largest number of characters of a chunk, at least 1.
        chunk_on: the separators in order of preference, none of them empty. Without separators, the
            text is cut every ``max_chunk_size`` characters.

    Returns:
        The chunks in order. ``[text]`` if the text fits into one chunk, so ``[""]`` for an empty
        text.

    Raises:
        InputError: ``max_chunk_size`` is below 1, a separator is empty, or the size is so small
            compared with a separator that the official function fails too.

    Source: ``fanoutqa.retrieval.chunk_text``, https://github.com/zhudotexe/fanoutqa. It recurses
        once per cut (so it fails after about a thousand cuts) and copies the rest of the text each
        time.

    Examples:
        >>> chunk_text("One. Two. Three.", max_chunk_size=10)
        ['One. Two. ', 'Three.']
    """
    checked_string(text, "text")
    max_chunk_size = checked_k(max_chunk_size, "max_chunk_size")
    is_list = isinstance(chunk_on, list | tuple)
    if not is_list or not all(separator and isinstance(separator, str) for separator in chunk_on):
        raise InputError(
            f"chunk_on is {chunk_on!r}; it must be a sequence of separators, none of them empty"
        )
    return _chunks(text, max_chunk_size, tuple(chunk_on), 0)


def _chunks(text: str, size: int, separators: tuple[str, ...], level: int) -> list[str]:
    """Split a text at the separators from ``level`` on. Recurse per separator, not per chunk."""
    if len(text) <= size:
        return [text]
    if level == len(separators):
        return [text[start : start + size] for start in range(0, len(text), size)]
    separator, room = separators[level], 0
    # The parts of each chunk are joined only once, at the end, which keeps the time linear.
    parts_of: list[list[str]] = []
    for piece in text.split(separator):
        length = len(piece) + len(separator)
        if length > size:
            parts_of += (
                [chunk] for chunk in _chunks(piece + separator, size, separators, level + 1)
            )
            room = size - len(parts_of[-1][0])
        elif length <= room:
            parts_of[-1] += (piece, separator)
            room -= length
        else:
            parts_of.append([piece, separator])
            room = size - length
    chunks = ["".join(parts) for parts in parts_of]
    # The last piece has a separator that is not in the text. See the quirks above.
    if chunks[-1] == separator:
        chunks.pop()
    if not chunks:
        raise InputError(
            f"max_chunk_size {size} is too small to split at {separator!r}: no chunk is left"
        )
    chunks[-1] = chunks[-1][: -len(separator)]
    return chunks
