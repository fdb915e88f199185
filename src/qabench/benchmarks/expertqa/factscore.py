"""ExpertQA's fact scores, after FActScore: verdicts on atomic claims, and agreement of scores with the experts.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852). ``factscore.py``,
``compute_factuality_f1.py`` and ``break_down_to_atomic_claims.py`` below ``modeling/fact_score`` of
its repository. Min et al., FActScore, EMNLP 2023.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qabench.benchmarks.expertqa.agreement import (
    Answer,
    Claim,
    JudgedClaim,
    SystemScores,
    agreement_scores,
    read_answers,
)
from qabench.data.rows import Json
from qabench.errors import InputError

FIELDS = ("claim_string", "correctness")  # the fields of a claim that the agreement uses
THRESHOLD = 0.5
CORRECT = ("Definitely correct", "Probably correct")
VERDICT_WORD = re.compile(r"\b(true|false)\b", re.IGNORECASE)
NEGATED_VERDICT = re.compile(r"\b(not|neither|nor|cannot be)\s+(\w+\s+)?(true|false)\b", re.IGNORECASE)
DENIALS = {"not", "cannot", "unknown", "information"}
# A claim that contains one of these says nothing about the question. Case-sensitive substrings,
# equal to the official list: a missing comma joins two of them there, and some contain others.
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
# Replies of an assistant rather than statements: the script asks about them and ignores what it
# gets.
NO_FACTS = ("This sentence does not contain any facts", "Sure", "Please", "Here are")
INITIALS = re.compile(r"[A-Z]\. ?[A-Z]\.")
# characters of a sentence with its atomic claims. The authors' rules take quadratic time
LONGEST = 20_000

# "He was born." says nothing if another claim says where.
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
"""Return the distinct dates and numbers of a text, in first-seen order."""
Spans = Callable[[str], Iterable[tuple[str, str]]]
"""Return the (text, label) of the named entities of a text."""


def factscore_agreement(references: Sequence[Any], predictions: Sequence[Any]) -> SystemScores:
    """Compare claims' fact scores with the experts: at least 0.5 against Definitely or Probably correct.

    Claims are left out, and counted by reason, in this order: claims of answers that abstain,
    claims without correctness, claims without a fact score (they have no atomic claims), and void
    claims (see ``is_void``). Undefined ratios are None. scikit-learn, which the official script
    uses, returns 0 with a warning. micro_f1 over two classes equals accuracy. See ``read_answers``
    for references, predictions and errors.
    """
    rows = read_answers(references, predictions, "fact_score", FIELDS)
    judged = [[claim for answer in row for claim in judged_scores(answer)] for row in rows]
    return SystemScores(judged, _agreement)


def judged_scores(answer: Answer) -> list[JudgedClaim]:
    """Return the fact scores of an answer's claims as verdicts, next to the verdicts of the experts."""
    return [_judged(answer, claim) for claim in answer.claims]


def fact_score(verdicts: Sequence[bool]) -> float | None:
    """Return the fact score of a claim: the share of its atomic claims that are true, or None if it has none."""
    return sum(verdicts) / len(verdicts) if verdicts else None


def reply_is_true(reply: str) -> bool:
    """Tell whether a model's reply calls an atomic claim true, as the official script reads it.

    If the lowercased reply contains "true" or "false", that word decides. If it contains both, the
    one whose first occurrence comes later. Otherwise the reply is True unless, without punctuation,
    it contains one of the words not, cannot, unknown and information. So an empty reply is True.
    """
    text = reply.lower()
    true, false = text.find("true"), text.find("false")
    if true != -1 or false != -1:
        return true > false  # find() returns -1 for a missing word
    return DENIALS.isdisjoint(text.translate(NO_PUNCTUATION).split())


def states_verdict(reply: str) -> bool:
    """Tell whether a reply says true or false, and does not negate the word.

    Others, such as "No", are read by ``reply_is_true`` all the same, most of them as true.
    """
    return bool(VERDICT_WORD.search(reply)) and not NEGATED_VERDICT.search(reply)


def is_void(claim: str) -> bool:
    """Tell whether a claim says nothing about the question, such as a greeting: it contains a void phrase."""
    return any(phrase in claim for phrase in VOID_PHRASES)


def first_sentence(claim: str, split: Callable[[str], Sequence[str]]) -> str:
    """Return the first sentence of a claim's first paragraph that is not blank, with wrong splits repaired.

    The script breaks down all sentences, and keeps the atomic claims of the first one.

    The authors split with NLTK's ``sent_tokenize``. Raises InputError for a claim longer than
    ``LONGEST``.
    """
    _check_length(len(claim))
    paragraph = next((part.strip() for part in claim.split("\n") if part.strip()), "")
    sentences = _join_initials(list(split(paragraph)), INITIALS.findall(paragraph)) if paragraph else []
    return next(iter(_merge_fragments(sentences)), "")


def states_facts(sentence: str) -> bool:
    """Tell whether the script keeps the atomic claims of a claim's first sentence."""
    return bool(sentence) and not sentence.startswith(NO_FACTS)


def post_processed(sentence: str, claims: Sequence[str], entities: Entities) -> list[str]:
    """Return the distinct atomic claims of a sentence that the authors' script keeps, in order.

    It leaves out claims that end in one of ``INCOMPLETE`` and are part of another one, and claims
    with a date or number that the sentence does not have. A number that begins one of the sentence
    is completed. If the remaining claims do not have all dates and numbers of the sentence, nothing
    is left out.

    Raises InputError for a sentence that is longer than ``LONGEST`` with its claims.
    """
    _check_length(len(sentence) + sum(map(len, claims)))
    expected = entities(sentence.strip())
    covered: set[str] = set()
    consistent: dict[str, None] = {}
    for i, claim in enumerate(claims):
        if (
            claim.endswith(INCOMPLETE)
            and not claim.endswith(COMPLETE)
            and any(claim[:-1] in other for j, other in enumerate(claims) if j != i)
        ):
            continue
        own = entities(claim)
        covered.update(entity for entity in own if entity in expected)
        # An entity that begins one of the sentence was cut off.
        for entity in own:
            if entity not in expected:
                whole = next((whole for whole in expected if whole.startswith(entity)), None)
                if whole is None:
                    break
                claim = claim.replace(entity, whole)
                covered.add(whole)
        else:
            consistent[claim] = None
    return list(consistent) if covered == set(expected) else list(claims)


def entities_of(text: str, spans: Spans) -> list[str]:
    """Return parts of named entities that are numbers or months, and numbers that are in none of these.

    The authors' script keeps them in sets, so that its result can depend on Python's hash seed, if
    one number is part of another. Here, they have the order of the text. Raises InputError for a
    text longer than ``LONGEST``.
    """
    _check_length(len(text))
    entities: list[str] = []
    for entity, label in spans(text):
        if label in ENTITY_TYPES:
            for part in [entity] if is_date(entity) else filter(is_date, entity.split()):
                entities += [piece.strip() for piece in part.split("-")] if "-" in part else [part]
    joined = "\n".join(entities)
    for number in NUMBER.findall(text):
        if number not in joined:
            entities.append(number)
            joined += f"\n{number}"
    return list(dict.fromkeys(entities))


def is_date(text: str) -> bool:
    """Tell whether all words of a text are numbers or months, without punctuation, articles and case."""
    words = ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()
    return bool(words) and all(word in MONTHS or word.isdecimal() for word in words)


def _judged(answer: Answer, claim: Claim) -> JudgedClaim:
    correctness, skipped = claim.fields["correctness"], None
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


def _agreement(claims: Sequence[JudgedClaim]) -> Json:
    scores = agreement_scores(claims, "correct")
    return scores | {"micro_f1": scores["accuracy"]}


def _check_length(characters: int) -> None:
    if characters > LONGEST:
        raise InputError(
            f"a sentence with its atomic claims has {characters:,} characters; allowed: {LONGEST:,}"
        )


def _join_initials(sentences: list[str], initials: Sequence[str]) -> list[str]:
    """Join sentences that were split between two initials, such as "J.

    R.". Once for each pair of initials.
    """
    for pair in initials:
        if any(pair in sentence for sentence in sentences):
            continue
        first, second = (part.strip() for part in pair.split(".") if part.strip())
        for i in range(len(sentences) - 1):
            if sentences[i].endswith(f"{first}.") and sentences[i + 1].startswith(f"{second}."):
                sentences[i : i + 2] = [f"{sentences[i]} {sentences[i + 1]}"]
                break
    return sentences


def _merge_fragments(sentences: Sequence[str]) -> list[str]:
    """Merge single words and fragments in lowercase into the previous sentence, a first word into the next."""
    merged: list[str] = []
    is_open = False  # the first sentence is a single word
    for sentence in sentences:
        is_word = len(sentence.split()) <= 1
        starts_lowercase = sentence[:1].isalpha() and not sentence[:1].isupper()
        if not merged:
            merged.append(sentence)
            is_open = is_word
        elif is_word or starts_lowercase or is_open:
            merged[-1] += f" {sentence}"
            is_open = is_open and is_word
        else:
            merged.append(sentence)
    return merged
