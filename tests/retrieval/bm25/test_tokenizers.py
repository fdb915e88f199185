"""Tokenizers: terms of one text and of many, names, and invalid results."""

import re
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
import Stemmer
from expertqa_texts import expertqa
from hypothesis import example, given
from hypothesis import strategies as st

import qabench
from qabench.benchmarks.fanoutqa.retriever import FanOutQAWords
from qabench.errors import InputError
from qabench.retrieval import BM25Index, Words
from qabench.retrieval.bm25.scripts import is_special, normalized
from qabench.retrieval.bm25.stop_words import LANGUAGES, stop_words_of
from qabench.retrieval.bm25.tokenizers import encode, name_of, words
from qabench.text.lemmatizers import SimplemmaLemmatizer

# Capitals whose lowercase is longer, combining marks, digits and spaces of other scripts, control
# characters, ...
ODD = "İ ß ẞ Ǆ é e\u0301 ٣ ² Ⅷ 中文 ก็ \u00a0\u2003\u2028\x0b\x1c\x85 \ud800 don’t foo_bar A\x00B 🙂 ﬁ Σς"
TOKENIZERS = [Words(), Words("english"), Words(["cat"]), Words(version=2)]
PIECES = [*"aÉß_1 ٣.,", "ab ", "e\u0301", "हिन्दी", "क्\u200dष", "ไทย", "ที่", "日", "本語", "カタ", "か\u3099",
          "ខ្មែរ", "မြန်မာ", "ລາວ", "\u0301", "❤\ufe0f", "1\ufe0f\u20e3", "İ", "Σ", "葛\U000e0100", "𠮷"]  # fmt: skip
MIXED = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def encoded(tokenizer: Words, texts: list[str]) -> list[list[str]]:
    numbers, starts, terms = tokenizer.encode(texts)
    every = [terms[number] for number in numbers]
    return [[term for term in every[a:b] if term is not None] for a, b in pairwise(starts)]


@pytest.mark.parametrize("tokenizer", [words, Words(version=2)])
@given(st.lists(st.text(st.characters(), max_size=30) | MIXED, max_size=6))
@example([ODD, "", "  ", " a  b ", ODD.upper()])
def test_many_texts_have_the_terms_of_each(tokenizer: Words, texts: list[str]) -> None:
    assert encoded(tokenizer, texts) == [tokenizer(text) for text in texts]


@pytest.mark.parametrize("tokenizer", [words, Words(version=2)])
def test_every_character(tokenizer: Words) -> None:
    for first in range(0, 0x20000, 256):
        texts = [f"A{chr(code)}b" for code in range(first, first + 256)]
        assert encoded(tokenizer, texts) == [tokenizer(text) for text in texts]


@pytest.mark.usefixtures("with_numba")
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(texts=st.lists(MIXED | st.text(st.characters(), max_size=30) | st.text("the cat Running_İa ,"), max_size=6))
@example(texts=[ODD, "", "  ", " a  b ", ODD.upper(), "The CAT", "x" * 300])
def test_compiled_code_finds_the_same_terms(tokenizer: Words, texts: list[str]) -> None:
    from qabench.retrieval.bm25.word_table import WordTable, joined

    terms = list(dict.fromkeys(term for text in [*texts[1:], "a cat x"] for term in tokenizer(text)))
    numbers, ends = WordTable(terms).encode(*joined(tokenizer, texts))
    expected, expected_ends = encode(tokenizer, texts, {term: number for number, term in enumerate(terms)}.get)
    assert numbers.tolist() == expected.tolist() and ends.tolist() == expected_ends.tolist()


@given(st.text(st.characters(max_codepoint=127), max_size=60))
@example("".join(map(chr, range(128))))
def test_words_of_ascii_are_those_of_the_pattern(text: str) -> None:
    assert Words()(text) == Words(version=2)(text) == re.findall(r"\w+", text.lower())


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


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("東京都に行く。", "東京 京都 都に に行 行く"),
        ("日 iPhone手機x", "日 iphone 手機 x"),
        ("カメラー", "カメ メラ ラー"),
        ("मुझे हिन्दी पसंद है", "मुझे हिन्दी पसंद है"),
        ("क्\u200dष", "क्ष"),
        ("ที่นี่", "ที่นี่"),
        ("ไทย ๑๒", "ไท ทย ๑๒"),
        ("ខ្មែរ", "ខ្មែ មែរ"),
        ("ພາສາ", "ພາ າສ ສາ"),
        ("မြန်မာ", "မြန် န်မာ"),
        ("Mu\u0308ller und Müller", "müller und müller"),
        ("한국어 위키", "한국어 위키"),
        ("İstanbul", "i\u0307stanbul"),
        ("\u0301a ❤\ufe0f 1\ufe0f\u20e3", "a 1"),
        ("葛\U000e0100城市", "葛城 城市"),
        ("The U.S. don't_care", "the u s don t_care"),
    ],
)
def test_words_of_all_scripts(text: str, terms: str) -> None:
    tokenizer = Words(version=2)
    assert tokenizer(text) == terms.split() == tokenizer(unicodedata.normalize("NFD", text))


@given(st.text(st.characters(max_codepoint=0x2FF) | st.characters(min_codepoint=0x370, max_codepoint=0x481)))
def test_both_versions_are_equal_for_european_letters(text: str) -> None:
    text = unicodedata.normalize("NFC", text).replace("İ", "")
    assert Words(version=2)(text) == words(text)


def test_stop_words_and_stems_of_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(LANGUAGES) <= {*Stemmer.algorithms(), "hindi"}
    assert Words("german", "german")("Die Häuser und der Garten") == ["haus", "gart"]
    tokenizer = Words("hindi", "hindi", version=2)
    assert tokenizer("मुझे हिन्दी किताबें पसंद हैं") == ["हिन्द", "किताब", "पसंद"] == Words(**tokenizer.spec)("हिन्दी किताबें पसंद")
    assert tokenizer.name.startswith("words-2+stop-") and tokenizer.name != Words("hindi", "hindi").name
    assert Words("english").name == "words-1+stop-f8f080d7"  # in saved indexes


def test_unknown_stop_words_and_stemmers_are_refused() -> None:
    with pytest.raises(InputError, match="unknown stop words 'klingon'"):
        Words(stop_words="klingon")
    with pytest.raises(InputError, match=r"unknown stemmer 'klingon'; allowed: .*english"):
        Words(stemmer="klingon")


def test_names_distinguish_tokenizers() -> None:
    assert len({name_of(t) for t in (words, Words("english"), Words(["cat"]), str.split, str.lower)}) == 5
    assert name_of(Words(["b", "a"])) == name_of(Words(["a", "b"]))
    assert name_of(Words(**Words(stop_words_of("english")).spec)) == name_of(Words("english"))


def test_fanoutqa_words_are_the_normal_form_split_at_spaces() -> None:
    tokenizer = FanOutQAWords(SimplemmaLemmatizer())
    assert tokenizer("The cats, 1,000 of them") == ["the", "cat", "1000", "of", "they"] and tokenizer("") == [""]
    texts = ["Two cats.", "", "two  dogs", "Two cats."]
    assert tokenizer.batch(texts) == [tokenizer(text) for text in texts]
    assert BM25Index(texts, tokenizer=tokenizer).search("dog", 1).positions == [2]


def test_both_versions_are_equal_on_the_passages(mirror: Path) -> None:
    """On all passages of the benchmarks but those with combining marks or Chinese characters."""
    texts, questions = expertqa(mirror)
    dataset = qabench.load_dataset("fastbook", "chunks", split="corpus")
    texts += [*questions, *dataset["text"]]
    tokenizer = Words(version=2)
    different = [text for text in texts if tokenizer(text) != words(text)]
    assert len(texts) > 6000 and len(different) < 9
    for text in different:
        assert is_special(normalized(text)) or not unicodedata.is_normalized("NFC", text)
    same = [text for text in texts if text not in different]
    numbers, ends, terms = tokenizer.encode(same)
    expected = words.encode(same)
    assert (numbers == expected[0]).all() and (ends == expected[1]).all() and terms == expected[2]
