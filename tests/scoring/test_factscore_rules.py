"""FActScore's rules for sentences and atomic claims, by hand; test_expertqa_facts.py compares them with the script."""

import re

import pytest

from qabench.benchmarks.expertqa.factscore import LONGEST, entities_of, first_sentence, post_processed, states_facts
from qabench.errors import InputError


@pytest.mark.parametrize(
    ("split", "first"),
    [
        ("One is.|Two is.", "One is."),
        ("Oh.|That is it.|Two is.", "Oh. That is it."),
        ("Oh.|No.|That is it.|Two is.", "Oh. No. That is it."),
        ("That is it.|Oh.|Two is.", "That is it. Oh."),
        ("That is it.|so it is.|Two is.", "That is it. so it is."),
        ("That is it.|2 is even.", "That is it."),
        ("By J.|R. Tolkien, a book.|Two is.", "By J. R. Tolkien, a book."),
        ("By J.|K. Rowling, a book.|See J. K. now.", "By J."),  # the initials are together elsewhere
        ("By J.|R. Tolkien, a book.", "By J. R. Tolkien, a book."),
        ("By J.|R.|Two is.", "By J. R."),
        ("By J.|R.|R.|Tolkien, a book.|And one more.", "By J. R. R."),
        ("By J.|Kay wrote.|See J.|K. now.", "By J."),
        ("", ""),
    ],
)
def test_wrong_splits_are_repaired(split: str, first: str) -> None:
    assert first_sentence(split.replace("|", " "), lambda _: split.split("|")) == first


def test_the_first_paragraph_that_is_not_blank() -> None:
    assert first_sentence(" \n\n One is. \nTwo is.", lambda paragraph: [paragraph]) == "One is."


def test_replies_of_an_assistant_state_no_facts() -> None:
    for start in ("This sentence does not contain any facts.", "Sure, it is.", "Please ask.", "Here are", ""):
        assert not states_facts(start) and states_facts(f"It is. {start}")


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+", text)


@pytest.mark.parametrize(
    ("sentence", "claims", "kept"),
    [
        ("Born in 1990.", ["He was born.", "He was born in 1990."], ["He was born in 1990."]),
        ("Born in 1990.", ["He was born.", "She sang in 1990."], ["He was born.", "She sang in 1990."]),
        (
            "A founder.",
            ["A founding member.", "A founding member of it."],
            ["A founding member.", "A founding member of it."],
        ),
        ("Born.", ["He was born."], ["He was born."]),
        ("5 rows.", ["5 rows.", "7 rows.", "5 rows."], ["5 rows."]),
        ("1234 rows, 5 columns.", ["12 rows.", "5 columns."], ["1234 rows.", "5 columns."]),
        ("5 rows, 6 columns.", ["5 rows.", "7 rows."], ["5 rows.", "7 rows."]),  # 6 is missing: all are kept
    ],
)
def test_atomic_claims_that_are_kept(sentence: str, claims: list[str], kept: list[str]) -> None:
    assert post_processed(sentence, claims, numbers) == kept


@pytest.mark.parametrize(
    ("text", "spans", "entities"),
    [
        ("On the 3rd, 4 May 2010", [("the 4 May 2010", "DATE")], ["the 4 May 2010"]),
        ("about 10-12 people", [("about 10-12", "CARDINAL")], ["10", "12"]),
        ("Channel 7 of May", [("7", "ORG"), ("May", "PERSON")], ["7"]),
        ("12 of 345", [("345", "CARDINAL")], ["345", "12"]),
        ("5 and 5", [("5", "CARDINAL"), ("5", "CARDINAL")], ["5"]),
    ],
)
def test_dates_and_numbers(text: str, spans: list[tuple[str, str]], entities: list[str]) -> None:
    assert entities_of(text, lambda _: spans) == entities


def test_the_longest_sentence() -> None:
    longest = "a" * LONGEST
    assert first_sentence(longest, lambda paragraph: [paragraph]) == longest
    assert post_processed(longest[:-1], ["b"], numbers) == ["b"]
    for call in (lambda: first_sentence(longest + "a", str.split), lambda: post_processed(longest, ["b"], numbers)):
        with pytest.raises(InputError, match="20,001 characters; allowed: 20,000"):
            call()
