"""Claims of answers: equal to the output of the authors' script, which is executed from the mirror."""

import re
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import pytest
from expertqa_scripts import Splitter, annotated_rows
from hypothesis import given
from hypothesis import strategies as st

from qabench.benchmarks.expertqa.answers import answering
from qabench.benchmarks.expertqa.claims import (
    _without_sentences,
    cite_afterward,
    cited,
    cut_sources,
    sentence_splitter,
    sentences,
    split_claims,
)
from qabench.benchmarks.expertqa.passages import SearchResult

Row = dict[str, Any]


@pytest.fixture(scope="module")
def splitter(mirror: Path) -> Splitter:
    pytest.importorskip("spacy", reason="needs the extra spacy")
    return Splitter(mirror)


@pytest.fixture(scope="module")
def answers(mirror: Path) -> list[tuple[str, Row]]:
    """(system, answer) of the 436 annotated rows."""
    return [pair for row in annotated_rows(mirror) for pair in row["answers"].items()]


def upstream(splitter: Splitter, system: str, answer: str, attribution: list[Any], file: str = "r1.jsonl") -> Any:
    example = {"answers": {system: {"answer_string": answer, "attribution": attribution, "claims": None}}}
    (found,) = splitter.answers([example], file)
    return found[system]


def plain(claims: Any) -> list[tuple[str, list[str]]]:
    return [(claim.claim_string, claim.evidence) for claim in claims]


def ours(claims: list[Row]) -> list[tuple[str, list[str]]]:
    return [(claim["claim"], claim["evidence"]) for claim in claims]


@pytest.mark.parametrize("bing", [False, True])
def test_claims_equal_the_scripts(
    splitter: Splitter, answers: list[tuple[str, Row]], bing: bool, compared: Callable[[str], None]
) -> None:
    n = 0
    for _, answer in answers:
        marks = [int(mark) for mark in re.findall(r"\[(\d+)\]", answer["answer_string"])]
        # no mark out of range
        attribution = [f"[{i}] https://e.org/{i}" for i in range(1, max(marks, default=0) + 1)]
        file = "r1_data_answers_bingchat.jsonl" if bing else "r1.jsonl"
        theirs = upstream(splitter, "gpt4", answer["answer_string"], attribution, file)
        found = split_claims(answer["answer_string"], attribution, bing=bing)
        assert found.answer == theirs["answer_string"] and ours(found.claims) == plain(theirs["claims"])
        n += len(found.claims)
    compared(f"{n} claims of {len(answers)} answers, {'Bing' if bing else 'other systems'}")


def test_read_passages(splitter: Splitter, answers: list[tuple[str, Row]], compared: Callable[[str], None]) -> None:
    passages = [(f"https://e.org/{i}", f"Passage ID {i}: text {i}. Passage Number 7 is it") for i in range(1, 4)]
    n = 0
    for _, answer in answers:
        attribution = [{"url": url, "text": text} for url, text in passages]
        theirs = upstream(splitter, "ret_read_gpt4", answer["answer_string"], attribution)
        found = split_claims(answer["answer_string"], passages)
        assert ours(found.claims) == plain(theirs["claims"]) and found.answer == theirs["answer_string"]
        assert [f"[{i}] {url}" for i, (url, _) in enumerate(passages, 1)] == theirs["attribution"]
        n += len(found.claims)
    compared(f"{n} claims of {len(answers)} answers with passages; marks out of range are skipped")


def test_cited_afterward(splitter: Splitter, answers: list[tuple[str, Row]], compared: Callable[[str], None]) -> None:
    n = 0
    for _, answer in answers:
        texts = [claim["claim_string"] for claim in answer["claims"]]
        passages = {text: (f"https://e.org/{i}", f"Text {i}") for i, text in enumerate(texts) if i % 3}
        claims = [
            {"claim_string": text, "evidence": [dict(zip(("url", "text"), passages[text], strict=True))]}
            if text in passages
            else {"claim_string": text, "evidence": []}
            for text in texts
        ]
        value = {"answer_string": answer["answer_string"], "attribution": [], "claims": claims}
        example = {"answers": {"gpt4": None, "gpt4_post_hoc_gs": deepcopy(value)}}
        ((theirs,),) = [list(one.values()) for one in splitter.answers([example], "post_hoc_gs_gpt4.jsonl")]
        found = cite_afterward(texts, passages.get)
        if not answer["answer_string"].strip():
            continue
        assert ours(found.claims) == [(claim["claim_string"], claim["evidence"]) for claim in theirs["claims"]]
        assert found.answer == theirs["answer_string"] and found.attribution == theirs["attribution"]
        n += len(found.claims)
    compared(f"{n} claims of {len(answers)} answers, post-hoc")


PIECES = [
    *("Water boils", "is here.", "So it is!", "Why?", "Hello", "Which one", "ok", "...", "(see [2])."),
    *("[1]", "[2]", "[0]", "[01]", "[3]", "[x]", "[1, 2]", "[[1]]", "[^1^]", "[^2\n^]", "[1\n]", "[^[^1^]2^]"),
    *("[^", "^]", "[", "]", " ", "\n", "\n\n", "\r", "\u2028", "\t"),
]


def test_claims_of_hostile_answers_equal_the_scripts(splitter: Splitter, compared: Callable[[str], None]) -> None:
    random = Random(5)
    passages: list[Any] = [(f"https://e.org/{i}", f"Passage ID {i}: text {i}.") for i in range(1, 4)]
    attributions = {
        "gpt4": [f"[{i}] a{i}" for i in range(1, 4)],
        "ret_read_gpt4": [{"url": url, "text": text} for url, text in passages],
    }
    n = 1500
    for _ in range(n):
        answer = "".join(random.choice(PIECES) + random.choice(["", " "]) for _ in range(random.randint(1, 14)))
        for system, attribution in attributions.items():
            theirs = upstream(splitter, system, answer, attribution)
            found = split_claims(answer, passages if system == "ret_read_gpt4" else attribution)
            assert (found.answer, ours(found.claims)) == (theirs["answer_string"], plain(theirs["claims"] or [])), (
                answer
            )
    compared(f"{n} hostile answers")


@pytest.mark.parametrize("most", [1_000, 2])
def test_many_sentences_are_removed_in_place(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    pytest.importorskip("spacy", reason="needs the extra spacy")
    monkeypatch.setattr("qabench.benchmarks.expertqa.claims.MAX_SEARCHED", most)
    found = split_claims("Why? Water boils. it. So\nwhy? Who? We visit.\nIce melts.", [])
    assert [claim["claim"] for claim in found.claims] == ["Water boils.", "We visit.", "Ice melts."]
    # The end of "visit." is not a sentence. The question with a line break stays, as in the
    # authors' script.
    last = {1_000: "We vis", 2: "We visit."}[most]
    assert found.answer == f" Water boils.  So\nwhy?  {last}\nIce melts."


def test_few_sentences_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(str):
        searches = 0

        def replace(self, old: str, new: str, count: Any = -1) -> str:
            Counted.searches += 1
            return Counted(super().replace(old, new, count))

    sentences = [(4 * number, f"{number}?") for number in range(10, 100)]
    text = Counted("x" * 40 + "".join(f"{sentence} " for _, sentence in sentences))
    monkeypatch.setattr("qabench.benchmarks.expertqa.claims.MAX_SEARCHED", 89)
    assert _without_sentences(text, sentences) == "x" * 40 + " " * 90 and not Counted.searches
    assert _without_sentences(text, sentences[:89]) == "x" * 40 + " " * 89 + "99? " and Counted.searches == 89


def test_marks() -> None:
    sources = ["a", "b", "c"]
    assert cited("So [2] and [1] and [2][9] and [x] and [1, 2] and [²]", sources) == ["b", "a", "b"]
    assert cited("So [0]", sources) == ["c"] and cited("[1]", []) == []
    assert cited("So [01][0]", [("url", "Passage ID 4: text")]) == ["[01] url\n\n text", "[0] url\n\n text"]
    assert cited(f"So [{'1' * 5000}]", sources) == []


@pytest.mark.parametrize(
    ("reply", "answer", "sources"),
    [
        ("So [1].\n[1] a\n[2] b\n", "So [1].", ["[1] a", "[2] b", ""]),
        (" So [1]. \n[1] a \n  [2] b", "So [1].", ["[1] a ", "  [2] b"]),
        ("[1] says so. So it is.", "[1] says so. So it is.", []),
    ],
)
def test_replies_are_cut_at_the_first_source(reply: str, answer: str, sources: list[str]) -> None:
    assert cut_sources(reply) == (answer, sources)


@pytest.mark.parametrize(
    ("protocol", "evidence"), [("official", [["[1] a"], [""]]), ("qabench", [["[1] a"], ["[2] b"]])]
)
def test_blank_lines_between_sources(protocol: str, evidence: list[list[str]]) -> None:
    how = answering(prompt="qabench", protocol=protocol)
    answer, _ = how.claimed("Water boils [1].\nIce is frozen water [2].\n\n[1] a\n\n[2] b", SearchResult(()))
    assert [claim["evidence"] for claim in answer.claims] == evidence


def test_sentences_without_spacy(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'It is so [1]. Dr. A. Lee asks "why?" [2] That is it. e.g. this. 3. is a number! No? small.'
    assert sentences(text) == ["It is so [1].", 'Dr. A. Lee asks "why?" [2]', "That is it. e.g. this.",
                               "3. is a number!", "No? small."]  # fmt: skip
    monkeypatch.setattr("qabench.benchmarks.expertqa.claims.find_spec", lambda name: None)
    assert sentence_splitter()[0] == "qabench"
    assert split_claims("It is so. No!", []).claims == [{"claim": "It is so.", "evidence": []}]


@given(st.text(max_size=40))
def test_sentences_keep_every_character(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())
