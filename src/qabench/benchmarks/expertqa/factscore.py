"""ExpertQA's fact scores, after FActScore: verdicts on atomic claims, and agreement with experts.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852), and
``factscore.py``, ``compute_factuality_f1.py`` and ``break_down_to_atomic_claims.py`` below
``modeling/fact_score`` of its repository. Min et al., FActScore, EMNLP 2023.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence

from qabench.benchmarks.expertqa.agreement import (
    Answer,
    Claim,
    JudgedClaim,
)
from qabench.errors import InputError

# The fields of a claim that the agreement depends on. The digest of references is computed from
# them.
FIELDS = ("claim_string", "correctness")
# In the official script, a claim with at least this fact score counts as correct.
THRESHOLD = 0.5
# The experts' judgments that count as correct. "Unsure" does not.
CORRECT = ("Definitely correct", "Probably correct")
# A readable verdict is "true" or "false" as a whole word, not negated. The official script also
# accepts parts of words and negated ones.
VERDICT_WORD = re.compile(r"\b(true|false)\b", re.IGNORECASE)
NEGATED_VERDICT = re.compile(
    r"\b(not|neither|nor|cannot be)\s+(\w+\s+)?(true|false)\b", re.IGNORECASE
)
# Words by which the official script recognizes a denial in a reply without "true" or "false".
DENIALS = {"not", "cannot", "unknown", "information"}
# A claim that contains one of these phrases is void: it has no content that could be judged. This
# is the official list of case-sensitive substrings, in which a missing comma joins two phrases, and
# some phrases contain others.
VOID_PHRASES = (
    "Hello",
    "Hello, this is Bing.",
    "this is Bing",
    "Thank you for your questionglad you're",
    "glad you",
    "glad to help you",
    "glad to hear",
    "Bing",
    "Hope this helps",
    "Hope this is helpful",
    "I can provide more information based on your answer",
    "are you interested in?",
    "Are you looking for",
    "what aspect are you interested",
    "I found some information that might help you",
    "I found some information",
    "happy to help you",
    "I hope this information",
    "I hope this helps",
    "I hope this answer helps you",
    "I can provide more specific information",
    "I can provide more details",
    "I searched for your question and found some results.",
    "I can help you",
    "Thank you for your question",
    "That's an interesting question",
    "not sure if I understand your question",
    "I hope this answers your question",
    "I can provide you with more specific resources",
    "I can try to answer your question",
    "I can provide more information",
    "I can search for more",
    "I can answer your question",
    "I can give you more",
    "I can try to summarise",
    "I searched for your question and found some information",
    "I can provide you",
    "I can try to find",
    "I cannot give you a definitive answer",
    "I might be able to provide",
    "please let me know",
)
# Sentences that begin like this are phrases of an assistant, not statements. The authors' script
# has a model break them down, but ignores the result.
NO_FACTS = ("This sentence does not contain any facts", "Sure", "Please", "Here are")
# NLTK may split a sentence between two such initials.
INITIALS = re.compile(r"[A-Z]\. ?[A-Z]\.")
# The authors' rules take quadratic time, so a sentence with its atomic claims is bounded.
MAX_CHARACTERS = 20_000

# Endings of incomplete claims. For example, "He was born." is part of "He was born in Ulm."
INCOMPLETE = (
    "born.",
    " appointed.",
    " characterized.",
    " described.",
    " known.",
    " member.",
    " advocate.",
    "served.",
    "elected.",
)
# The authors' exception to these endings: a claim that ends like this is complete.
COMPLETE = "founding member."
ENTITY_TYPES = {"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"}
MONTHS = {
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
}
NUMBER = re.compile(r"\b\d+\b")
ARTICLE = re.compile(r"\b(a|an|the)\b")
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)

Entities = Callable[[str], list[str]]
"""A function that returns the distinct dates and numbers of a text, in first-seen order."""
Spans = Callable[[str], Iterable[tuple[str, str]]]
"""A function that returns (text, label) of each named entity of a text."""


def judged_scores(answer: Answer) -> list[JudgedClaim]:
    """Return the verdicts that follow from fact scores, next to the experts' verdicts.

    A score of at least 0.5 is compared with Definitely or Probably correct. A claim is skipped for
    the first of these reasons: its answer abstains, it has no correctness, it has no fact score
    (because it has no atomic claims), or it is void (see ``is_void``).
    """
    return [_judged(answer, claim) for claim in answer.claims]


def fact_score(verdicts: Sequence[bool]) -> float | None:
    """Return the share of a claim's atomic claims that are true, or None if it has none."""
    if not verdicts:
        return None
    return sum(verdicts) / len(verdicts)


def reply_is_true(reply: str) -> bool:
    """Tell whether a model's reply calls an atomic claim true, as the official script reads it.

    If the lowercased reply contains only one of "true" and "false", this word decides. If it
    contains both, the one whose first occurrence is later decides. If it contains neither, the
    reply counts as true unless it contains (ignoring punctuation) one of the words not, cannot,
    unknown and information. So an empty reply counts as true.
    """
    text = reply.lower()
    true, false = text.find("true"), text.find("false")
    if true != -1 or false != -1:
        # ``find`` returns -1 for a missing word, so "true" alone counts as true.
        return true > false
    return DENIALS.isdisjoint(text.translate(NO_PUNCTUATION).split())


def states_verdict(reply: str) -> bool:
    """Tell whether a reply states a verdict: the word true or false, not negated."""
    return bool(VERDICT_WORD.search(reply)) and not NEGATED_VERDICT.search(reply)


def is_void(claim: str) -> bool:
    """Tell whether a claim contains one of ``VOID_PHRASES``, such as a greeting."""
    return any(phrase in claim for phrase in VOID_PHRASES)


def first_sentence(claim: str, split: Callable[[str], Sequence[str]]) -> str:
    """Return the first sentence of a claim, with wrong splits repaired.

    The authors' script breaks down all sentences, but keeps only the atomic claims of the first
    one. It splits each paragraph with NLTK's ``sent_tokenize``, and ignores blank paragraphs.

    Raises:
        InputError: the claim is longer than ``MAX_CHARACTERS``.
    """
    _check_length(len(claim))
    # Only the first sentence matters, so the paragraphs after it are not split here.
    paragraph = next(filter(None, map(str.strip, claim.split("\n"))), "")
    if not paragraph:
        return ""
    sentences = _join_initials(list(split(paragraph)), INITIALS.findall(paragraph))
    merged = _merge_fragments(sentences)
    if not merged:
        return ""
    return merged[0]


def states_facts(sentence: str) -> bool:
    """Tell whether a sentence can have atomic claims: it does not begin like ``NO_FACTS``."""
    return bool(sentence) and not sentence.startswith(NO_FACTS)


def post_processed(sentence: str, claims: Sequence[str], entities: Entities) -> list[str]:
    """Return the distinct atomic claims of a sentence that the authors' script keeps, in order.

    The script drops claims that end in one of ``INCOMPLETE`` and are part of another claim. It also
    drops claims with a date or number that is not in the sentence, unless a date or number in the
    sentence begins with it, which then replaces it. If the claims do not cover all dates and
    numbers of the sentence, all claims are kept.

    Raises:
        InputError: the sentence and its claims together are longer than ``MAX_CHARACTERS``.
    """
    _check_length(len(sentence) + sum(map(len, claims)))
    expected = entities(sentence.strip())
    covered: set[str] = set()
    # A dict as an ordered set.
    consistent: dict[str, None] = {}
    for i, claim in enumerate(claims):
        if claim.endswith(INCOMPLETE) and not claim.endswith(COMPLETE):
            other_claims = [*claims[:i], *claims[i + 1 :]]
            if any(claim[:-1] in other for other in other_claims):
                continue
        completed: str | None = claim
        for entity in entities(claim):
            # As in the authors' script, a claim covers its entities even if it is dropped later.
            if entity in expected:
                covered.add(entity)
                continue
            if completed is None:
                continue
            # If an entity in the sentence begins with this one, the model has cut it off. Otherwise,
            # the model has invented this one.
            whole = _first_that_begins_with(entity, expected)
            if whole is None:
                completed = None
            else:
                completed = completed.replace(entity, whole)
                covered.add(whole)
        if completed is not None:
            consistent[completed] = None
    # If a date or number of the sentence was lost, the rules have removed too much.
    if covered != set(expected):
        return list(claims)
    return list(consistent)


def _first_that_begins_with(start: str, entities: Sequence[str]) -> str | None:
    for entity in entities:
        if entity.startswith(start):
            return entity
    return None


def entities_of(text: str, spans: Spans) -> list[str]:
    """Return the dates and numbers of a text.

    These are the parts of named entities that consist of numbers and months, and all other numbers
    of the text.

    Raises:
        InputError: the text is longer than ``MAX_CHARACTERS``.
    """
    _check_length(len(text))
    # The authors' script uses sets, so its result can depend on Python's hash seed if one number is
    # part of another. Here, entities are in the order of the text.
    entities: list[str] = []
    for entity, label in spans(text):
        if label not in ENTITY_TYPES:
            continue
        dates = [entity]
        if not is_date(entity):
            dates = [word for word in entity.split() if is_date(word)]
        for date in dates:
            # "1914-1918" becomes two numbers. A date without a hyphen is not split.
            if "-" in date:
                entities += [number.strip() for number in date.split("-")]
            else:
                entities.append(date)
    joined = "\n".join(entities)
    # As in the authors' script, a number within an entity is not added: 19 counts as a part of
    # 1914.
    for number in NUMBER.findall(text):
        if number not in joined:
            entities.append(number)
            joined += f"\n{number}"
    return list(dict.fromkeys(entities))


def is_date(text: str) -> bool:
    """Tell whether a text is numbers and months, ignoring punctuation, articles and case."""
    words = ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()
    for word in words:
        if word not in MONTHS and not word.isdecimal():
            return False
    # A text that consists of punctuation and articles has no number.
    return bool(words)


def _judged(answer: Answer, claim: Claim) -> JudgedClaim:
    correctness = claim.fields["correctness"]
    skipped = None
    if answer.abstains:
        skipped = "abstaining answer"
    elif correctness is None:
        skipped = "no correctness"
    elif claim.verdict is None:
        skipped = "no fact score"
    elif is_void(claim.fields["claim_string"]):
        skipped = "void claim"
    if skipped:
        return JudgedClaim(answer.system, skipped=skipped)
    return JudgedClaim(answer.system, claim.verdict >= THRESHOLD, correctness in CORRECT)


def _check_length(characters: int) -> None:
    if characters > MAX_CHARACTERS:
        raise InputError(
            f"a sentence with its atomic claims has {characters:,} characters; allowed: {MAX_CHARACTERS:,}"
        )


def _join_initials(sentences: list[str], initials: Sequence[str]) -> list[str]:
    """Join sentences that were split between two initials, such as "J. R."."""
    for pair in initials:
        # Initials that are together in one sentence were not split.
        if any(pair in sentence for sentence in sentences):
            continue
        first, second, _ = pair.split(".")
        first, second = first.strip(), second.strip()
        for i in range(len(sentences) - 1):
            if sentences[i].endswith(f"{first}.") and sentences[i + 1].startswith(f"{second}."):
                sentences[i : i + 2] = [f"{sentences[i]} {sentences[i + 1]}"]
                # As in the authors' script, join at only one place per pair of initials.
                break
    return sentences


def _merge_fragments(sentences: Sequence[str]) -> list[str]:
    """Merge single words, and fragments that start in lowercase, into the previous sentence.

    NLTK breaks sentences at initials and abbreviations. A single word at the beginning has no
    previous sentence, and is merged with the next one.
    """
    merged: list[str] = []
    only_words_so_far = True
    for sentence in sentences:
        is_word = len(sentence.split()) <= 1
        starts_lowercase = sentence[:1].isalpha() and not sentence[:1].isupper()
        if merged and (is_word or starts_lowercase or only_words_so_far):
            merged[-1] += f" {sentence}"
        else:
            merged.append(sentence)
        only_words_so_far = only_words_so_far and is_word
    return merged
