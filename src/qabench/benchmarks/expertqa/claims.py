"""Split answers into claims with the evidence that they cite, as ExpertQA's authors did.

A claim is a sentence. Source: Malaviya et al., ExpertQA, NAACL 2024
(https://arxiv.org/abs/2309.07852), and ``split_ans_to_claims.py`` below
``modeling/response_collection`` of its repository. Tests execute it for comparison.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from qabench.benchmarks.expertqa.factscore import is_void
from qabench.data.rows import Json
from qabench.errors import InputError
from qabench.models.entailment import Splitter
from qabench.text.tokenizer import with_linear_tokenizer

# No answer of a model is this long, but a file of predictions may have any text.
MAX_ANSWER_CHARACTERS = 200_000
# The authors search the whole answer for each sentence that they remove, which takes quadratic
# time. The annotated answers have at most 9 such sentences.
MAX_SEARCHED = 1_000
# As in the authors' script, a claim has more characters than this.
MIN_LENGTH = 5
# Python refuses to convert digit strings of thousands of digits to integers.
MAX_MARK_DIGITS = 9
# The next two patterns also match an unclosed mark, up to the end of the line. Otherwise, for each
# opening bracket, the rest of the text would be searched for a closing one.
BRACKETS = re.compile(r"\[([^\]\n]*)(\]?)")
BING_MARK = re.compile(r"\[\^.*?(\^\]|$)", re.MULTILINE)
NUMBER_MARK = re.compile(r"\[\d+\]")
PASSAGE_NUMBER = re.compile(r"Passage (?:Number|ID) \d+:?")
# Bing's follow-up questions have no period before them.
BING_QUESTION = re.compile(r"\]\n\n(?=Are|What|Which|How|Does)")
BING_EMOJI = "\N{SMILING FACE WITH SMILING EYES}"
# The end of a sentence, for machines without spaCy: a stop that is not part of an abbreviation,
# with the closing quotes and citation marks after it.
END = re.compile(
    r"(?<!\b[A-Z])(?<!\b(?:Dr|Mr|Ms|No|St|vs|cf|al))(?<!\b(?:Mrs|Fig|e\.g|i\.e))(?<!\bProf)"
    r"""[.!?]["'”’)]*+(?:\s*\[\d{1,4}\])*+(?=\s+[^\sa-z])"""
)
# spaCy encodes texts as UTF-8, which cannot encode lone surrogates.
SURROGATE = re.compile("[\ud800-\udfff]")

Source = str | tuple[str, str]
"""A source as text, or (address, text) of a passage that the answer was written from."""


@dataclass(frozen=True, slots=True)
class ClaimedAnswer:
    """An answer split into claims.

    Attributes:
        answer: the answer without the sentences that are not claims.
        claims: dicts {"claim", "evidence"}, where evidence is a list of strings.
        attribution: the sources of the whole answer.
    """

    answer: str
    claims: list[Json]
    attribution: list[str]


def split_claims(answer: str, sources: Sequence[Source], *, bing: bool = False) -> ClaimedAnswer:
    """Split an answer with citation marks such as [2] into claims.

    Sentences of 5 characters or fewer, questions, and void sentences (see ``is_void``) do not
    become claims. They are also removed from the answer, and so is every other occurrence of their
    text. If there are more than ``MAX_SEARCHED`` such sentences, other occurrences stay, because
    searching for all of them would take too long. A mark [2] refers to the second of ``sources``.
    Marks without a source are ignored.

    Args:
        answer: the answer.
        sources: the sources that marks refer to.
        bing: whether the special rules for answers by Bing Chat apply.

    Raises:
        InputError: the answer has more than ``MAX_ANSWER_CHARACTERS`` characters.
    """
    if len(answer) > MAX_ANSWER_CHARACTERS:
        raise InputError(
            f"the answer has {len(answer):,} characters; allowed: {MAX_ANSWER_CHARACTERS:,}"
        )
    text = _without_bing_marks(answer).strip()
    if bing:
        text = BING_QUESTION.sub("]. \n\n", text).replace(BING_EMOJI, "")
    if not answer.strip():
        # The authors' script does not strip an answer that consists of spaces.
        text = answer
    on_one_line = text.replace("\n", " ")
    split_sentences: list[str] = []
    if text.strip():
        _, split = sentence_splitter()
        split_sentences = list(split(on_one_line))
    claims = []
    removed = []
    end = 0
    for sentence in split_sentences:
        # The splitter may drop spaces between sentences, so each sentence is searched for.
        start = on_one_line.index(sentence, end)
        end = start + len(sentence)
        if is_void(sentence) or len(sentence) <= MIN_LENGTH or sentence.endswith("?"):
            removed.append((start, sentence))
        else:
            # A mark that contains a line break matches only here, where the break is a space.
            claim = _without_bing_marks(sentence)
            claims.append({"claim": claim, "evidence": cited(claim, sources)})
    text = _without_sentences(text, removed)
    attribution = []
    for number, source in enumerate(sources, start=1):
        attribution.append(_evidence(str(number), source))
    return ClaimedAnswer(text, claims, attribution)


def _without_sentences(text: str, sentences: Sequence[tuple[int, str]]) -> str:
    """Remove sentences from a text.

    As in the authors' script, a sentence that contains a line break is not found, because it is
    searched for with a space instead of the break. So it stays in the text.

    Args:
        text: the text.
        sentences: the start of each sentence in the text, and the sentence without line breaks, in
            the order of the text.
    """
    # As in the authors' script, every occurrence of a sentence is removed.
    if len(sentences) <= MAX_SEARCHED:
        for _, sentence in sentences:
            text = text.replace(sentence.strip(), "")
        return text
    remaining = []
    end = 0
    for start, sentence in sentences:
        stripped = sentence.strip()
        first = start + sentence.index(stripped)
        if text.startswith(stripped, first):
            remaining.append(text[end:first])
            end = first + len(stripped)
    remaining.append(text[end:])
    return "".join(remaining)


def _without_bing_marks(text: str) -> str:
    def replacement(mark: re.Match[str]) -> str:
        is_closed = bool(mark[1])
        if is_closed:
            return ""
        return mark[0]

    return BING_MARK.sub(replacement, text)


def cited(text: str, sources: Sequence[Source]) -> list[str]:
    """Return the source of each citation mark of a text, in the order of the marks.

    As in the authors' script, a source that is cited twice is returned twice, [0] refers to the
    last source, and a passage is returned with the number in its mark, such as "[2] https://...".
    """
    evidence: list[str] = []
    if not sources:
        return evidence
    for mark, closing_bracket in BRACKETS.findall(text):
        # The script's isdigit accepts [²], on which its int() fails, so isdecimal is used here.
        is_number = closing_bracket and mark.isdecimal() and len(mark) <= MAX_MARK_DIGITS
        if is_number and int(mark) <= len(sources):
            evidence.append(_evidence(mark, sources[int(mark) - 1]))
    return evidence


def _evidence(number: str, source: Source) -> str:
    if isinstance(source, str):
        return source
    url, text = source
    return f"[{number}] {url}\n\n{PASSAGE_NUMBER.sub('', text)}"


def cite_afterward(
    claims: Sequence[str], find: Callable[[str], tuple[str, str] | None]
) -> ClaimedAnswer:
    """Find evidence for each claim, and rebuild the answer from these claims.

    This is what the authors' post-hoc systems do. Claims of 5 characters or fewer are left out. All
    other claims lose their citation marks, and those for which evidence is found get a new mark
    before their last character. ``find`` is passed a claim with its old marks. It returns (address,
    text) of the best passage, or None.
    """
    cited_claims: list[Json] = []
    attribution: list[str] = []
    for claim in claims:
        text = NUMBER_MARK.sub("", claim)
        if not text.strip() or len(text) <= MIN_LENGTH:
            continue
        evidence = []
        if passage := find(claim):
            address, passage_text = passage
            mark = f"[{len(attribution) + 1}]"
            attribution.append(f"{mark} {address}")
            evidence = [f"{mark} {address}\n\n{passage_text}"]
            # The authors put the mark before the last character, which is usually the period.
            text = text[:-1] + mark + text[-1]
        cited_claims.append({"claim": text, "evidence": evidence})
    answer = " ".join(claim["claim"] for claim in cited_claims)
    return ClaimedAnswer(answer, cited_claims, attribution)


def cut_sources(reply: str) -> tuple[str, list[str]]:
    """Split a reply at the first line break before "[1]" into the answer and its source lines.

    As in the authors' script, blank lines count as sources: if a blank line follows the first
    source, [2] refers to the blank line, and a claim with the mark [2] has empty evidence. In
    contrast, ``prompts.split_answer`` numbers the sources as the reply does.
    """
    answer, first_mark, rest = reply.partition("\n[1]")
    source_lines = []
    if first_mark:
        source_lines = ("[1]" + rest).split("\n")
    return answer.strip(), source_lines


def sentence_splitter() -> tuple[str, Splitter]:
    """Return the name of the sentence splitter, for signatures, and its function.

    The authors split with spaCy's rule-based sentencizer on a blank English pipeline. Without spaCy
    (extra ``spacy``), the function is ``sentences`` and its name "qabench".
    """
    if find_spec("spacy") is None:
        return "qabench", sentences
    return f"spacy-{metadata.version('spacy')}", _by_sentencizer


def sentences(text: str) -> list[str]:
    """Split a text into sentences, without spaCy."""
    sentences = []
    start = 0
    ends = [match.end() for match in END.finditer(text)]
    for end in [*ends, len(text)]:
        sentence = text[start:end].strip()
        start = end
        if sentence:
            sentences.append(sentence)
    return sentences


def _by_sentencizer(text: str) -> list[str]:
    # spaCy cannot read lone surrogates.
    parsed = _sentencizer()(SURROGATE.sub("\ufffd", text))
    return [text[sentence.start_char : sentence.end_char] for sentence in parsed.sents]


@cache
def _sentencizer() -> Any:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    # spaCy limits texts to a million characters because its models need much memory. The rule-based
    # sentencizer does not.
    pipeline.max_length = 10**9
    return with_linear_tokenizer(pipeline)
