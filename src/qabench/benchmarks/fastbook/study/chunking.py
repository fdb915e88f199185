"""Splits chapters into chunks of a given number of tokens, at ends of sentences, with overlap.

The source halves each chapter and splits with llama-index's ``SentenceSplitter`` (500 tokens of OpenAI's cl100k, Punkt
sentences, 64 tokens of overlap); ``cut_as_source`` does the same. ``cut`` does not need a model or a download: a token
is a word or a punctuation mark (between 1.2% fewer and 0.2% more tokens than with cl100k on the seven chapters), a
sentence ends by the rules below or at the end of a line, and a chapter is not halved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import pairwise

from qabench.errors import InputError, MissingExtra

NAME = "sentences-1"  # the number changes when any chunk changes
LONGEST_ABBREVIATION = 16  # characters, with what must precede it
TOKEN = re.compile(r"\w+|[^\w\s]")
LINE = re.compile(r"[^\n]*\n\s*|[^\n]+")
# A full stop, closing quotes and brackets, whitespace, and a character that can begin a sentence.
STOP = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]*_`]*+\s++(?=[^\sa-z,;:)\]])")
ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Z]|[Dd]r|[Mm]rs?|[Mm]s|[Pp]rof|[Ss]t|[Ff]ig|[Ee]q|[Nn]o|vs|cf|al|etc|e\.g|i\.e)$"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of the text that is not split further: a sentence or a line, with the whitespace after it."""

    start: int
    end: int
    tokens: int


def count_tokens(text: str) -> int:
    """The number of words and punctuation marks in a text."""
    return sum(1 for _ in TOKEN.finditer(text))


def default_overlap(size: int) -> int:
    """The source's overlap for a chunk size: 64 tokens, but at most a quarter of the size."""
    return min(size // 4, 64)


def cut(text: str, size: int = 500, overlap: int | None = None) -> list[str]:
    """The chunks of a text in order, without whitespace at their ends.

    Together they contain every token. A chunk has at most ``size`` tokens and begins with as many sentences of the
    previous chunk as fit into ``overlap``; a sentence longer than ``size`` is split after ``size`` tokens.

    Args:
        text: any text; without tokens, there are no chunks.
        size: the maximum number of tokens of a chunk.
        overlap: the maximum number of tokens repeated from the previous chunk; None for ``default_overlap``.

    Raises:
        InputError: a size below 1, or an overlap that is negative or not below the size.
    """
    return [text[start:end].strip() for start, end in cut_spans(text, size, overlap)]


def cut_spans(text: str, size: int = 500, overlap: int | None = None) -> list[tuple[int, int]]:
    """(start, end) of each chunk in the text, with the whitespace at its ends; see ``cut``."""
    overlap = check_sizes(size, overlap)
    units = list(_units(text, size))
    spans, first, tokens = [], 0, 0
    for i, unit in enumerate(units):
        if tokens + unit.tokens > size:
            spans.append((units[first].start, units[i - 1].end))
            first, tokens = _overlapping(units, first, i, min(overlap, size - unit.tokens))
        tokens += unit.tokens
    if tokens:
        spans.append((units[first].start, len(text)))
    return spans


def check_sizes(size: int, overlap: int | None) -> int:
    """The overlap, after a check of both values. Raises InputError as ``cut``."""
    if size < 1:
        raise InputError(f"the chunk size is {size}; it must be at least 1 token")
    overlap = default_overlap(size) if overlap is None else overlap
    if not 0 <= overlap < size:
        raise InputError(f"the overlap is {overlap}; allowed: 0 to {size - 1}, less than the chunk size")
    return overlap


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence or line; together they are the whole text.

    A sentence ends at ``.``, ``!`` or ``?`` before whitespace, unless a lowercase letter follows, or an abbreviation
    or an initial precedes it; and at the end of a line, because headings, code and table rows have no full stop.
    """
    for line in LINE.finditer(text):
        start = line.start()
        for stop in STOP.finditer(text, line.start(), line.end()):
            if not ABBREVIATION.search(text, max(start, stop.start() - LONGEST_ABBREVIATION), stop.start()):
                yield start, stop.end()
                start = stop.end()
        if start < line.end():
            yield start, line.end()


def cut_as_source(text: str, size: int = 500, overlap: int | None = None) -> list[str]:
    """The source's chunks: each half of the text, split by llama-index's ``SentenceSplitter``.

    Raises:
        InputError: as ``cut``.
        MissingExtra: llama-index-core is not installed.
    """
    overlap = check_sizes(size, overlap)
    try:
        from llama_index.core.node_parser import SentenceSplitter
    except ImportError:
        raise MissingExtra("the source's chunks need llama-index: pip install llama-index-core") from None
    half = max(1, len(text) // 2)  # as in the source: if the length is odd, the last character is a third part
    parts = [text[i : i + half] for i in range(0, len(text), half)]
    splitter = SentenceSplitter(chunk_size=size, chunk_overlap=overlap)
    return [chunk for part in parts for chunk in splitter.split_text(part)]


def source_version() -> str:
    """The name of the source's chunker in signatures; llama-index-core must be installed."""
    return f"llama-index-core-{metadata.version('llama-index-core')}"


def _units(text: str, size: int) -> Iterator[Unit]:
    for start, end in sentences(text):
        tokens = [match.start() for match in TOKEN.finditer(text, start, end)]
        bounds = [start, *tokens[size::size], end]
        counts = [min(size, len(tokens) - at) for at in range(0, len(tokens), size)] or [0]
        for (left, right), count in zip(pairwise(bounds), counts, strict=True):
            yield Unit(left, right, count)


def _overlapping(units: list[Unit], first: int, at: int, most: int) -> tuple[int, int]:
    """The first unit of the chunk that continues with ``units[at]``, and the number of tokens that it repeats."""
    start, tokens = at, 0
    while start - 1 > first and tokens + units[start - 1].tokens <= most:
        start -= 1
        tokens += units[start].tokens
    return start, tokens
