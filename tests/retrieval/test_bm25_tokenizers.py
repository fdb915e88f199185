"""Tokenizers: terms of one text and of many, names, and invalid results."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qabench.benchmarks.fanoutqa.retriever import FanOutQAWords
from qabench.errors import InputError
from qabench.retrieval import BM25Index, Words
from qabench.retrieval.bm25.tokenizers import ENGLISH_STOP_WORDS, encode, name_of, words
from qabench.text.lemmatizers import SimplemmaLemmatizer

# Capitals whose lowercase is longer, combining marks, digits and spaces of other scripts, control characters, ...
ODD = "İ ß ẞ Ǆ é e\u0301 ٣ ² Ⅷ 中文 ก็ \u00a0\u2003\u2028\x0b\x1c\x85 \ud800 don’t foo_bar A\x00B 🙂 ﬁ Σς"
TOKENIZERS = [Words(), Words("english"), Words(["cat"])]


def encoded(tokenizer: Words, texts: list[str]) -> list[list[str]]:
    numbers, starts, terms = tokenizer.encode(texts)
    every = [terms[number] for number in numbers]
    return [[term for term in every[a:b] if term is not None] for a, b in pairwise(starts)]


@given(st.lists(st.text(st.characters(), max_size=30), max_size=6))
@example([ODD, "", "  ", " a  b ", ODD.upper()])
def test_many_texts_have_the_terms_of_each(texts: list[str]) -> None:
    assert encoded(words, texts) == [words(text) for text in texts]


def test_every_character() -> None:
    for first in range(0, 0x20000, 256):
        texts = [f"A{chr(code)}b" for code in range(first, first + 256)]
        assert encoded(words, texts) == [words(text) for text in texts]


@pytest.mark.usefixtures("with_numba")
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(texts=st.lists(st.text(st.characters(), max_size=30) | st.text("the cat Running_İa ,", max_size=30), max_size=6))
@example(texts=[ODD, "", "  ", " a  b ", ODD.upper(), "The CAT", "x" * 300])
def test_compiled_code_finds_the_same_terms(tokenizer: Words, texts: list[str]) -> None:
    from qabench.retrieval.bm25.word_table import WordTable, joined

    terms = list(dict.fromkeys(term for text in [*texts[1:], "a cat x"] for term in tokenizer(text)))
    numbers, ends = WordTable(terms).encode(*joined(tokenizer, texts))
    expected, expected_ends = encode(tokenizer, texts, {term: number for number, term in enumerate(terms)}.get)
    assert numbers.tolist() == expected.tolist() and ends.tolist() == expected_ends.tolist()


@given(st.lists(st.text("the cat running İa ,", max_size=30), max_size=6))
def test_stop_words_and_stems_too(texts: list[str]) -> None:
    tokenizer = Words(stop_words="english", stemmer="english")
    assert encoded(tokenizer, texts) == [tokenizer(text) for text in texts]


def test_terms() -> None:
    assert words("The U.S. don't_care: Zürich, 2019") == ["the", "u", "s", "don", "t_care", "zürich", "2019"]
    assert Words(stop_words="english")("What is the cat of Zürich") == ["cat", "zürich"]
    assert Words(stop_words=["Cat"])("the CAT") == ["the"]
    assert Words(stemmer="english")("running cats ran") == ["run", "cat", "ran"]
    assert Words(stop_words="english", stemmer="german")("Häuser") == ["haus"]


def test_unknown_stop_words_and_stemmers_are_refused() -> None:
    with pytest.raises(InputError, match="unknown stop words 'klingon'"):
        Words(stop_words="klingon")
    with pytest.raises(InputError, match=r"unknown stemmer 'klingon'; allowed: .*english"):
        Words(stemmer="klingon")


def test_names_distinguish_tokenizers() -> None:
    assert len({name_of(t) for t in (words, Words("english"), Words(["cat"]), str.split, str.lower)}) == 5
    assert name_of(Words(["b", "a"])) == name_of(Words(["a", "b"]))
    assert name_of(Words(**Words(ENGLISH_STOP_WORDS).spec)) == name_of(Words("english"))


def test_fanoutqa_words_are_the_normal_form_split_at_spaces() -> None:
    tokenizer = FanOutQAWords(SimplemmaLemmatizer())
    assert tokenizer("The cats, 1,000 of them") == ["the", "cat", "1000", "of", "they"] and tokenizer("") == [""]
    texts = ["Two cats.", "", "two  dogs", "Two cats."]
    assert tokenizer.batch(texts) == [tokenizer(text) for text in texts]
    assert BM25Index(texts, tokenizer=tokenizer).search("dog", 1).positions == [2]
