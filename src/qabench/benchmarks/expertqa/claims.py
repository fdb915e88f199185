"""Splits answers into claims with the evidence that they cite, as ExpertQA's authors did before annotation.

A claim is a sentence. Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and
``split_ans_to_claims.py`` below ``modeling/response_collection`` of its repository; tests execute it for comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from qabench.benchmarks.expertqa.factscore import is_void
from qabench.errors import InputError
from qabench.models.entailment import punkt

LONGEST_ABBREVIATION = 16  # characters, including the required character before it
MIN_LENGTH = 5  # a claim has more characters than this
MARK = re.compile(r"\[(\d{1,4})\]")
NUMBER_MARK = re.compile(r"\[\d+\]")
PASSAGE_NUMBER = re.compile(r"Passage (?:Number|ID) \d+:?")
# Bing's follow-up questions do not have a full stop before them.
BING_QUESTION = re.compile(r"\]\n\n(?=Are|What|Which|How|Does)")
BING_EMOJI = "\N{SMILING FACE WITH SMILING EYES}"
# A sentence ends at . ! or ? with closing quotes and citations, unless a lowercase letter follows.
STOP = re.compile(r"""(?<![.!?])[.!?]++["'”’)]*+(?:\s*\[\d{1,4}\])*(?:[.!?])?(?=\s+[^\sa-z]|\s*$)""")
SURROGATE = re.compile("[\ud800-\udfff]")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|No|Fig|vs|e\.g|i\.e|cf|al|approx)|^\s*\d{1,3})$")

Splitter = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class ClaimedAnswer:
    """An answer split into claims.

    Attributes:
        answer: the answer without the sentences that are not claims.
        claims: {"claim_string", "evidence"} for each claim; evidence is a list of strings.
        attribution: the sources of the whole answer.
    """

    answer: str
    claims: list[dict[str, Any]]
    attribution: list[str]


def split_claims(
    answer: str, sources: Sequence[str], split: Splitter | None = None, *, bing: bool = False
) -> ClaimedAnswer:
    """Splits an answer with citation marks such as [2] into claims.

    Sentences of 5 characters or fewer, questions, and void sentences (see ``is_void``) are removed, from the answer,
    too.

    Args:
        answer: the answer.
        sources: the sources of the marks: [2] refers to the second one. Marks without a source are ignored.
        split: splits a text into sentences; None means ``sentence_splitter()``.
        bing: whether Bing Chat wrote the answer, which has special rules.
    """
    text, sentences = answer_sentences(answer, split, bing=bing)
    claims = []
    for sentence in sentences:
        if is_void(sentence) or len(sentence) <= MIN_LENGTH or sentence.endswith("?"):
            text = text.replace(sentence.strip(), "")
        else:
            claims.append({"claim_string": sentence, "evidence": cited(sentence, sources)})
    return ClaimedAnswer(text, claims, list(sources))


def answer_sentences(answer: str, split: Splitter | None = None, *, bing: bool = False) -> tuple[str, Sequence[str]]:
    """An answer without the marks of Bing Chat, and its sentences. Arguments as of ``split_claims``."""
    text = "".join(outside for outside, _ in _parts(answer, "[^", "^]")).strip()
    if bing:
        text = BING_QUESTION.sub("]. \n\n", text).replace(BING_EMOJI, "")
    split = split or sentence_splitter()[1]
    return text, split(text.replace("\n", " ")) if text else []


def cited(text: str, sources: Sequence[str]) -> list[str]:
    """The sources that the marks of a text refer to, in the order of the marks, with repetitions.

    [0] refers to the last source, as in the authors' script.
    """
    if not sources:
        return []
    positions = [int(mark) - 1 for _, mark in _parts(text, "[", "]") if mark.isdecimal()]
    return [sources[position] for position in positions if position < len(sources)]


def cite_afterward(claims: Sequence[str], find: Callable[[str], tuple[str, str] | None]) -> ClaimedAnswer:
    """Claims with evidence found for each of them, and the answer that consists of them (post-hoc systems).

    Args:
        claims: the claims of an answer from memory.
        find: from a claim with its marks to the (address, text) of the best passage, or None.

    Returns:
        The claims without their marks. A claim with evidence has a new mark before its last character. Claims of 5
        characters or fewer are left out.
    """
    found: list[dict[str, Any]] = []
    attribution: list[str] = []
    for claim in claims:
        text = NUMBER_MARK.sub("", claim)
        if not text.strip() or len(text) <= MIN_LENGTH:
            continue
        evidence = []
        if passage := find(claim):
            number = f"[{len(attribution) + 1}]"
            attribution.append(f"{number} {passage[0]}")
            evidence = [f"{number} {passage[0]}\n\n{passage[1]}"]
            text = text[:-1] + number + text[-1]
        found.append({"claim_string": text, "evidence": evidence})
    return ClaimedAnswer(" ".join(claim["claim_string"] for claim in found), found, attribution)


def passage_sources(passages: Sequence[tuple[str, str]]) -> list[str]:
    """The sources of an answer's marks, from the (address, text) of the passages that it is based on."""
    return [f"[{n}] {url}\n\n{PASSAGE_NUMBER.sub('', text)}" for n, (url, text) in enumerate(passages, start=1)]


def cut_sources(reply: str) -> tuple[str, list[str]]:
    """Cut a reply at the first line that begins with "[1]" into the answer and its sources, one per line.

    As in the authors' script, blank lines count as sources: with a blank line between sources, [2] refers to it, and
    the claim has empty evidence. ``prompts.split_answer`` numbers the sources as the reply does.
    """
    answer, first, rest = reply.partition("\n[1]")
    return answer.strip(), ("[1]" + rest).split("\n") if first else []


def sentence_splitter() -> tuple[str, Splitter]:
    """The name and function of spaCy's rule-based sentencizer on a blank English pipeline, as upstream.

    Without spaCy (extra ``spacy``) the function is ``sentences`` and its name "qabench".
    """
    if find_spec("spacy") is None:
        return "qabench", sentences
    return f"spacy-{metadata.version('spacy')}", _by_sentencizer


def splitter_of(name: str) -> Splitter:
    """The sentence splitter for long evidence: "punkt" (NLTK's, as upstream) or "spacy" (``sentence_splitter``).

    Raises:
        InputError: an unknown name.
    """
    if name not in ("punkt", "spacy"):
        raise InputError(f"unknown sentences {name!r}; allowed: punkt, spacy")
    return punkt if name == "punkt" else sentence_splitter()[1]


def sentences(text: str) -> list[str]:
    """The sentences of a text, without spaCy. Marks after a full stop belong to the sentence before them."""
    found = []
    start = _skip_space(text, 0)
    for stop in STOP.finditer(text):
        if not (text[stop.start()] == "." and _ends_abbreviated(text, start, stop.start())):
            found.append(text[start : stop.end()])
            start = _skip_space(text, stop.end())
    found.append(text[start:])
    return [sentence.strip() for sentence in found if sentence.strip()]


def _ends_abbreviated(text: str, start: int, end: int) -> bool:
    """Whether ``text[start:end]`` ends with an abbreviation. Reads only its end, to avoid quadratic time."""
    window = max(start, end - LONGEST_ABBREVIATION)
    before = "x" if window > start else ""  # a bare number counts only at the beginning of a sentence
    return ABBREVIATION.search(before + text[window:end]) is not None


def _skip_space(text: str, start: int) -> int:
    while text[start : start + 1].isspace():
        start += 1
    return start


def _parts(text: str, opening: str, closing: str) -> Iterator[tuple[str, str]]:
    """(text before, text between) for each ``opening`` and the next ``closing`` on its line; ("rest", "") at the end.

    The same as the matches of a pattern such as ``\\[(.*?)\\]``, in linear time.
    """
    done = 0
    for line_start, line_end in _lines(text):
        place = line_start
        while (first := text.find(opening, place, line_end)) >= 0:
            last = text.find(closing, first + len(opening), line_end)
            if last < 0:
                break
            yield text[done:first], text[first + len(opening) : last]
            place = done = last + len(closing)
    yield text[done:], ""


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def without_marks(text: str) -> str:
    """The text without its marks such as [2]."""
    return MARK.sub("", text).strip()


def _by_sentencizer(text: str) -> list[str]:
    # spaCy cannot read lone surrogates.
    parsed = _sentencizer()(SURROGATE.sub("\ufffd", text))
    return [text[sentence.start_char : sentence.end_char] for sentence in parsed.sents]


@cache
def _sentencizer() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10**9  # of characters; the rules need little memory
    return pipeline
