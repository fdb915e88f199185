"""FanOutQA's chunks and retriever against the official ones, on synthetic pages and real chapters."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import official
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qabench.benchmarks.fanoutqa.normalizer import Normalizer
from qabench.benchmarks.fanoutqa.retriever import Corpus, Fragment
from qabench.errors import InputError
from qabench.retrieval.wiki.chunk import SEPARATORS, chunk_text
from qabench.retrieval.wiki.page import PageMissing, WikiPage
from qabench.text.lemmatizers import SpacyLemmatizer

PAGES = {
    "Grey heron": "# Grey heron\n\nThe grey heron is a wading bird. It eats fishes, frogs and 1,200 insects.\n\n" * 3,
    "Mute swan": "# Mute swan\n\nSwans are waterbirds; the mute swan weighs 10.5 kg. White.\n\n| a | b |\n| 1 | 2 |",
    "Empty": "",
    "Unicode": "Zürich, 東京 👩‍🚀. " * 40,
    "Twin": "The same text. " * 20,
    "Twin 2": "The same text. " * 20,
}
QUERIES = [
    "Which birds eat fish?", "How heavy are swans?", "same text", "the the the heron", "", "zzzz", "1200 insects!",
]  # fmt: skip
Chunker = Callable[[str, int, Sequence[str]], list[str]]

PIECES = [
    "\n\n", "\n", ". ", ", ", " ", "a", "word", "Zürich", "東京", "👩‍🚀", "e\u0301", "\r", "\u2028", ".", "x" * 30,
]  # fmt: skip
TEXTS = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
SOME_SEPARATORS = st.one_of(
    st.just(SEPARATORS), st.lists(st.sampled_from(["\n", " ", "a", "aa", "ab", "----"]), max_size=4).map(tuple)
)


def compare(model: str, monkeypatch: pytest.MonkeyPatch, pages: dict[str, str], queries: list[str], size: int) -> int:
    """Compares all rankings by groups of equal scores; returns the number of compared fragments."""
    package = official.official(model)
    import fanoutqa.retrieval

    monkeypatch.setattr(fanoutqa.retrieval, "wiki_content", lambda document: pages[document.title])
    documents = [package.models.Evidence(i, i, title, "") for i, title in enumerate(pages, 1)]
    theirs = fanoutqa.retrieval.Corpus(documents, doc_len=size)
    normalizer = Normalizer(SpacyLemmatizer(model))
    ours = Corpus(documents, size, normalizer=normalizer, content=lambda document: pages[document.title])
    count = 0
    for query in queries:
        ranked = list(ours.best(query))
        scores = theirs.index.get_scores(theirs.tokenize(query))
        expected = sorted(zip(scores.tolist(), theirs.documents, strict=True), key=lambda pair: -pair[0])
        assert [fragment.score for fragment in ranked] == pytest.approx([score for score, _ in expected], rel=1e-12)
        order = [(result.title, result.content) for result in theirs.best(query)]
        assert groups(ranked, order) == groups(ranked, [(f.title, f.content) for f in ranked])
        # A stable sort of the official scores is our order: ties are in the order of the pages.
        assert [(f.title, f.content) for f in ranked] == [(result.title, result.content) for _, result in expected]
        count += len(ranked)
    return count


def groups(ranked: list[Fragment], order: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """An order of fragments, split into sorted groups of equal scores in ``ranked``."""
    left = iter(order)
    sizes = [len(list(group)) for _, group in itertools.groupby(ranked, key=lambda fragment: round(fragment.score, 9))]
    return [sorted(itertools.islice(left, size)) for size in sizes]


@pytest.mark.parametrize("size", [60, 2048])
def test_rankings_are_the_official_ones(spacy_model: str, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    assert compare(spacy_model, monkeypatch, PAGES, QUERIES, size) >= len(QUERIES) * len(PAGES)


@pytest.mark.slow
def test_rankings_of_real_chapters(spacy_model: str, mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mirror / "vishalbakshi/fastbook-benchmark/data"
    shortest = sorted(folder.glob("chapter_*.txt"), key=lambda path: path.stat().st_size)[:3]
    chapters = {path.stem: path.read_text(encoding="utf-8") for path in shortest}
    queries = ["What does fine-tuning mean?", "How is a validation set chosen?", "the", "embedding matrix of users"]
    assert compare(spacy_model, monkeypatch, chapters, queries, 1024) > 500


@settings(max_examples=15)
@given(st.lists(st.text("ab ,.\n1", max_size=60), min_size=1, max_size=4), st.text("ab ,", max_size=10))
def test_any_pages(pages: list[str], query: str) -> None:
    """All chunks without duplicates, the best first; equal scores in the order of the pages."""
    normalizer = Normalizer("simplemma")
    documents = [WikiPage(str(i)) for i in range(len(pages))]
    corpus = Corpus(documents, 20, normalizer=normalizer, content=lambda page: pages[int(page.title)])
    ranked = list(corpus.best(query))
    assert len(ranked) == len(corpus) and [f.score for f in ranked] == sorted((f.score for f in ranked), reverse=True)
    for _, group in itertools.groupby(ranked, key=lambda fragment: fragment.score):
        titles = [int(fragment.title) for fragment in group]
        assert titles == sorted(titles)


def test_missing_pages() -> None:
    def content(page: Any) -> str:
        raise PageMissing(WikiPage.of(page), "no such page")

    with pytest.raises(PageMissing, match="Nowhere"):
        Corpus([{"title": "Nowhere", "pageid": None}], normalizer=Normalizer("simplemma"), content=content)
    with pytest.raises(InputError, match="at least one page"):
        Corpus([], normalizer=Normalizer("simplemma"))


@pytest.fixture(scope="module")
def official_chunk_text() -> Chunker:
    pytest.importorskip("fanoutqa", reason="needs the extra parity")
    chunker: Chunker = pytest.importorskip("fanoutqa.retrieval", reason="needs the extra retrieval").chunk_text
    return chunker


@given(TEXTS, st.integers(1, 60), SOME_SEPARATORS)
@example("\n\n" * 40, 5, SEPARATORS)
@example("ab" * 50, 7, ())
@example("ab" * 50, 50, SEPARATORS)
@example("", 10, SEPARATORS)
def test_chunks_are_official(official_chunk_text: Chunker, text: str, size: int, separators: Sequence[str]) -> None:
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
    [({"max_chunk_size": 0}, "max_chunk_size is 0; it must be at least 1"),
     ({"chunk_on": ("\n", "")}, "none of them empty"),
     ({"chunk_on": "\n"}, "must be a sequence of separators")],
)  # fmt: skip
def test_invalid_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        chunk_text("text", **arguments)  # type: ignore[arg-type]
