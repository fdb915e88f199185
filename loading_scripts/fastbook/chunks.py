"""Chunks of the chapters, and which of the chunks contain the components of a question's answer.

The author of the benchmark splits with llama-index (500 tokens, 64 of overlap). Here, splitting
needs neither a model nor a download, because a token is a word or a punctuation mark. The chapters
have between 1.2% fewer and 0.2% more of these tokens than cl100k tokens (OpenAI). A sentence ends
by the rules below or at the end of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from qabench.data.rows import Row
from qabench.text import repaired

# In tokens, as in the source.
CHUNK_SIZE, OVERLAP = 500, 64
# Signatures contain this name. If a change of the code changes any chunk, increase the number.
CHUNKER = "sentences-1"
# More than the length of the longest match of ABBREVIATION.
MAX_ABBREVIATION_CHARACTERS = 16
TOKEN = re.compile(r"\w+|[^\w\s]")
LINE = re.compile(r"[^\n]*\n\s*|[^\n]+")
# The mark that ends a sentence, closing quotes and brackets, whitespace, and (not part of the match)
# a character that can begin a sentence.
STOP = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]*_`]*+\s++(?=[^\sa-z,;:)\]])")
ABBREVIATION = re.compile(
    r"(?:^|[\s(\"'])(?:[A-Z]|[Dd]r|[Mm]rs?|[Mm]s|[Pp]rof|[Ss]t|[Ff]ig|[Ee]q|[Nn]o|vs|cf|al|etc|e\.g|i\.e)$"
)

Unit = tuple[int, int, int]
"""Start, end and number of tokens of a sentence or line with its trailing whitespace.

Chunks consist of whole units. A sentence that is too long for a chunk is several units.
"""


def cut(text: str, size: int = CHUNK_SIZE, overlap: int = OVERLAP) -> list[str]:
    """Return the chunks of a text in order, without whitespace at their ends.

    Every token is in a chunk. A chunk has at most ``size`` tokens. It begins with as many
    sentences of the previous chunk as fit into ``overlap``, which is less than ``size``, and leave
    room for the next sentence. A sentence longer than ``size`` is split after ``size`` tokens.
    """
    return [text[start:end].strip() for start, end in cut_spans(text, size, overlap)]


def cut_spans(text: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """Return (start, end) of each chunk in the text, including whitespace at its ends (see ``cut``)."""
    units = list(_units(text, size))
    spans = []
    # The first unit of the current chunk, and the number of tokens in the chunk so far.
    first, tokens = 0, 0
    for i, (_, _, count) in enumerate(units):
        if tokens + count > size:
            spans.append((units[first][0], units[i - 1][1]))
            first, tokens = _overlapping(units, first, i, min(overlap, size - count))
        tokens += count
    if tokens:
        spans.append((units[first][0], len(text)))
    return spans


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence or line. Together, they are the whole text.

    A sentence ends at ``.``, ``!`` or ``?`` before whitespace, unless a lowercase letter follows or
    the mark belongs to an abbreviation or an initial. It also ends at the end of a line, because
    headings, code and table rows have no period.
    """
    for line in LINE.finditer(text):
        start = line.start()
        for stop in STOP.finditer(text, line.start(), line.end()):
            before = max(start, stop.start() - MAX_ABBREVIATION_CHARACTERS)
            if not ABBREVIATION.search(text, before, stop.start()):
                yield start, stop.end()
                start = stop.end()
        if start < line.end():
            yield start, line.end()


def doc_id(chapter: int, position: int) -> str:
    """Return the id of a chunk: "13-c4" is the chunk at position 4 (from 0) of chapter 13."""
    return f"{chapter}-c{position}"


def judgments(question: Row, chunks: Sequence[str]) -> list[tuple[str, int]]:
    """Return the id and the relevance of each chunk of a question's chapter, in order.

    The relevance is the number of answer components that the chunk contains, after
    ``ftfy.fix_text`` on both. Chunks with relevance 0 are returned too, so that a question whose
    components are in no chunk counts in the means of other programs.
    """
    contexts_of_components = []
    for component in question["answer_context"]:
        contexts_of_components.append([repaired(context) for context in component["context"]])
    pairs = []
    for position, chunk in enumerate(map(repaired, chunks)):
        relevance = 0
        for contexts in contexts_of_components:
            relevance += any(context in chunk for context in contexts)
        pairs.append((doc_id(question["chapter"], position), relevance))
    return pairs


def _units(text: str, size: int) -> Iterator[Unit]:
    for start, end in sentences(text):
        tokens = [match.start() for match in TOKEN.finditer(text, start, end)]
        # A sentence of more than ``size`` tokens is cut before every ``size``-th of them.
        bounds = [start, *tokens[size::size], end]
        remaining = len(tokens)
        for left, right in pairwise(bounds):
            yield left, right, min(size, remaining)
            remaining -= size


def _overlapping(units: list[Unit], first: int, at: int, max_tokens: int) -> tuple[int, int]:
    """Return the first unit of the chunk that adds ``units[at]``, and the number of repeated tokens.

    The chunk begins after ``first``, the first unit of the previous chunk, and repeats at most
    ``max_tokens`` tokens of that chunk.
    """
    start, tokens = at, 0
    while start - 1 > first and tokens + units[start - 1][2] <= max_tokens:
        start -= 1
        tokens += units[start][2]
    return start, tokens
