"""spaCy's tokenizer in linear time: the same tokens as spaCy's own."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from expertqa_scripts import annotated_rows

from qabench.text.tokenizer import MAX_RUN, LinearTokenizer, with_linear_tokenizer

spacy = pytest.importorskip("spacy")
PIECES = [*"\"'([{$€#*_-–—.,;:!?%&/=+<>@…»“”’´`~^|°²½", "..", "...", "…", "''", "'s", "’S", "n't", "km", "US$", "hPa"]
PIECES += [
    "a",
    "B",
    "9",
    "1,2",
    "e.g.",
    "Dr.",
    "i.e",
    ":)",
    "http://a.b/c?d=e",
    "x@y.org",
    "。",
    "「",
    "é",
    "😀",
    "كم²",
]
PIECES += [" ", " ", "  ", "\n", "\u00a0", "\u200b"]


@pytest.fixture(scope="module")
def own() -> Any:
    return spacy.blank("en").tokenizer


@pytest.fixture(scope="module")
def linear() -> LinearTokenizer:
    tokenizer = with_linear_tokenizer(spacy.blank("en")).tokenizer
    assert isinstance(tokenizer, LinearTokenizer)
    return tokenizer


def tokens(doc: Any) -> list[tuple[str, str, int]]:
    return [(token.text, token.whitespace_, token.idx) for token in doc]


def test_random_texts_have_the_same_tokens(own: Any, linear: LinearTokenizer) -> None:
    chance = random.Random(46)
    for _ in range(5_000):
        text = "".join(chance.choices(PIECES, k=chance.randint(1, 24)))
        assert tokens(linear(text)) == tokens(own(text)), text


@pytest.mark.parametrize("unit", ['"', ".", "(", "$", "9km", "a..", "'s", "—"])
def test_long_runs_have_the_same_tokens(own: Any, linear: LinearTokenizer, unit: str) -> None:
    for text in (unit * 150, f"a {unit * 150}. b", f"{'.' * 200}{unit * 50}{'.' * 200}"):
        assert tokens(linear(text)) == tokens(own(text))


def test_a_longer_run_is_cut_and_keeps_its_text(own: Any, linear: LinearTokenizer) -> None:
    text = f"See  {'a' * MAX_RUN * 3} and {'b(' * MAX_RUN}\n{'c' * (MAX_RUN - 1)}-d end "
    doc = linear(text)
    assert doc.text == text
    words = [token.text for token in doc if token.text[0] in "acd-"]
    assert words == ["a" * MAX_RUN * 3, "and", "c" * (MAX_RUN - 1) + "-", "d"]


def test_the_work_is_linear(linear: LinearTokenizer) -> None:
    """It is counted by the characters that the tokenizer has when it looks for a suffix."""
    characters: list[int] = []

    def counting(text: str) -> None:
        characters.append(len(text))

    tokenizer = with_linear_tokenizer(spacy.blank("en")).tokenizer
    tokenizer.tokenizer.suffix_search = counting
    work = []
    for length in (4_000, 32_000):
        characters.clear()
        tokenizer("".join(random.Random(length).choices("\"'($[", k=length)))
        work.append(sum(characters))
    assert 0 < work[1] < 10 * work[0]


def test_other_tokenizers_are_left_alone() -> None:
    chinese = spacy.blank("zh")
    tokenizer = chinese.tokenizer
    assert with_linear_tokenizer(chinese).tokenizer is tokenizer


def test_other_rules_are_left_alone() -> None:
    pipeline = spacy.blank("en")
    pipeline.tokenizer.suffix_search = suffix_search = re.compile("x$").search
    assert with_linear_tokenizer(pipeline).tokenizer.suffix_search is suffix_search


def test_all_real_answers_have_the_same_tokens(mirror: Path, own: Any, linear: LinearTokenizer) -> None:
    texts = [answer["answer_string"] for row in annotated_rows(mirror) for answer in row["answers"].values()]
    for file in sorted((mirror / "zhudotexe/fanoutqa/leaderboard-submissions").glob("*-generations/*.jsonl")):
        texts += [str(json.loads(line)["answer"]) for line in file.read_text("utf-8").rstrip("\n").split("\n")]
    felm = mirror / "hkust-nlp/felm/eval/all.jsonl"
    texts += [str(json.loads(line)["response"]) for line in felm.read_text("utf-8").rstrip("\n").split("\n")]
    assert len(texts) > 3_000
    assert [text for text in texts if tokens(linear(text)) != tokens(own(text))] == []
