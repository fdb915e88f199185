"""Chunking: exactly the official chunks, also for long texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qabench.errors import InputError
from qabench.retrieval.wiki.chunk import SEPARATORS, chunk_text

Chunker = Callable[[str, int, Sequence[str]], list[str]]

PIECES = [
    "\n\n",
    "\n",
    ". ",
    ", ",
    " ",
    "a",
    "word",
    "Zürich",
    "東京",
    "👩‍🚀",
    "e\u0301",
    "\r",
    "\u2028",
    ".",
    "x" * 30,
]
TEXTS = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
SOME_SEPARATORS = st.one_of(
    st.just(SEPARATORS), st.lists(st.sampled_from(["\n", " ", "a", "aa", "ab", "----"]), max_size=4).map(tuple)
)


@pytest.fixture(scope="module")
def official_chunk_text() -> Chunker:
    pytest.importorskip("fanoutqa", reason="needs the extra parity")
    retrieval = pytest.importorskip("fanoutqa.retrieval", reason="needs the extra retrieval")
    chunker: Chunker = retrieval.chunk_text
    return chunker


@given(TEXTS, st.integers(1, 60), SOME_SEPARATORS)
@example("\n\n" * 40, 5, SEPARATORS)
@example("ab" * 50, 7, ())
@example("ab" * 50, 50, SEPARATORS)
@example("", 10, SEPARATORS)
def test_equals_the_official_function(
    official_chunk_text: Chunker, text: str, size: int, separators: Sequence[str]
) -> None:
    try:
        expected = official_chunk_text(text, size, separators)
    except IndexError:
        with pytest.raises(InputError, match="too small"):
            chunk_text(text, size, separators)
    else:
        assert chunk_text(text, size, separators) == expected


def test_equals_the_official_function_on_real_chapters(official_chunk_text: Chunker, mirror: Path) -> None:
    chapters = sorted((mirror / "vishalbakshi/fastbook-benchmark/data").glob("chapter_*.txt"))
    assert len(chapters) == 7
    for path in chapters:
        text = path.read_text(encoding="utf-8")
        for size in (1, 7, 50, 200, 512, 1024, 2048, 10_000, len(text) - 1, len(text)):
            if size < 7 and len(text) > 900 * size:  # the official recursion ends there
                continue
            assert chunk_text(text, size) == official_chunk_text(text, size, SEPARATORS), (path, size)


def test_a_long_text_without_separators() -> None:
    """The official function raises a RecursionError here, and copies the rest at each cut."""
    text = "x" * 3_000_000
    chunks = chunk_text(text, 1024)
    assert len(chunks) == 2930 and max(map(len, chunks)) == 1024
    assert text.startswith("".join(chunks)) and len(text) - sum(map(len, chunks)) <= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_chunk_size": 0}, "max_chunk_size is 0; it must be at least 1"),
        ({"chunk_on": ("\n", "")}, "none of them empty"),
        ({"chunk_on": "\n"}, "must be a sequence of separators"),
    ],
)
def test_invalid_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chunk_text("text", **arguments)  # type: ignore[arg-type]
