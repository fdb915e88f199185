"""The sentence of a claim that the authors' script breaks down: the first one, with wrong splits repaired."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

INITIALS = re.compile(r"[A-Z]\. ?[A-Z]\.")
# Replies of an assistant rather than statements: the script asks about them and ignores what it gets.
NO_FACTS = ("This sentence does not contain any facts", "Sure", "Please", "Here are")

Splitter = Callable[[str], Sequence[str]]


def first_sentence(claim: str, split: Splitter) -> str:
    """The first sentence of a claim's first paragraph that is not blank; "" if there is none.

    The script breaks down all sentences, and keeps the atomic claims of the first one.

    Args:
        claim: the claim, without citation marks.
        split: splits a paragraph into sentences; the authors used NLTK's ``sent_tokenize``.
    """
    paragraph = next((part.strip() for part in claim.split("\n") if part.strip()), "")
    sentences = _joined_at_initials(list(split(paragraph)), INITIALS.findall(paragraph)) if paragraph else []
    return next(iter(_without_fragments(sentences)), "")


def states_facts(sentence: str) -> bool:
    """Whether the script keeps the atomic claims of a claim's first sentence."""
    return bool(sentence) and not sentence.startswith(NO_FACTS)


def _joined_at_initials(sentences: list[str], initials: Sequence[str]) -> list[str]:
    """Sentences split between two initials, such as "J. R.", are joined; for each pair of initials at most once."""
    for pair in initials:
        if any(pair in sentence for sentence in sentences):
            continue
        first, second = (part.strip() for part in pair.split(".") if part.strip())
        for i in range(len(sentences) - 1):
            if sentences[i].endswith(f"{first}.") and sentences[i + 1].startswith(f"{second}."):
                sentences[i : i + 2] = [f"{sentences[i]} {sentences[i + 1]}"]
                break
    return sentences


def _without_fragments(sentences: Sequence[str]) -> list[str]:
    """Single words, and what begins with a small letter, belong to the sentence before; a first word to the next."""
    found: list[str] = []
    awaiting = False  # the first sentence is a single word
    for sentence in sentences:
        is_word = len(sentence.split()) <= 1
        begins_small = sentence[:1].isalpha() and not sentence[:1].isupper()
        if not found:
            found.append(sentence)
            awaiting = is_word
        elif is_word or begins_small or awaiting:
            found[-1] += f" {sentence}"
            awaiting = awaiting and is_word
        else:
            found.append(sentence)
    return found
