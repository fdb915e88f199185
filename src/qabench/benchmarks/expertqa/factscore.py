"""ExpertQA's fact scores, after FActScore: verdicts on atomic claims, and agreement of scores with the experts.

Source: Malaviya et al., ExpertQA, NAACL 2024 (https://arxiv.org/abs/2309.07852); ``factscore.py`` and
``compute_factuality_f1.py`` below ``modeling/fact_score`` of its repository; Min et al., FActScore, EMNLP 2023.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from qabench.benchmarks.expertqa.agreement import Agreement, JudgedClaim, by_system
from qabench.benchmarks.expertqa.annotations import FACT_SCORE, Answer, Claim, read_answers

FIELDS = ("claim_string", "correctness")  # the fields of a claim that the agreement uses
THRESHOLD = 0.5
CORRECT = ("Definitely correct", "Probably correct")
DENIALS = {"not", "cannot", "unknown", "information"}
# A claim that contains one of these says nothing about the question. Case-sensitive substrings, equal to the official
# list: a missing comma joins two of them there, and some contain others.
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


@dataclass(frozen=True, slots=True)
class FactScoreAgreement:
    """The claims of each row with the verdicts of the model and of the experts, in the order of the input."""

    per_question: tuple[tuple[JudgedClaim, ...], ...]

    def as_dict(self) -> dict[str, Any]:
        """accuracy, micro_f1, and precision, recall, f1 and support of both classes; by_system: the same by system."""
        return by_system(self.per_question, _scores)


def factscore_agreement(references: Sequence[Any], predictions: Sequence[Any]) -> FactScoreAgreement:
    """Agreement of claims' fact scores with the experts: at least 0.5 against Definitely or Probably correct.

    Claims are left out, and counted by reason, in this order: claims of answers that abstain, claims without
    correctness, claims without a fact score (they have no atomic claims), and void claims (see ``is_void``). Undefined
    ratios are None; scikit-learn, which the official script uses, returns 0 with a warning. micro_f1 over two classes
    equals accuracy.

    Args:
        references: rows of the dataset, with the experts' labels.
        predictions: rows with ``fact_score`` in their claims, or lists of scores; see ``read_answers``.

    Raises:
        InputError: see ``read_answers``.
    """
    rows = read_answers(references, predictions, FACT_SCORE, FIELDS)
    return FactScoreAgreement(
        tuple(tuple(_judged(answer, claim) for answer in row for claim in answer.claims) for row in rows)
    )


def fact_score(verdicts: Sequence[bool]) -> float | None:
    """The fact score of a claim: the share of its atomic claims that are true, in [0, 1]; None if it has none."""
    return sum(verdicts) / len(verdicts) if verdicts else None


def reply_is_true(reply: str) -> bool:
    """Whether a model's reply calls an atomic claim true, as the official script reads it.

    If the lowercased reply contains "true" or "false", that word decides; if it contains both, the one whose first
    occurrence comes later. Otherwise the reply is True unless, without punctuation, it contains one of the words not,
    cannot, unknown and information; so an empty reply is True.
    """
    text = reply.lower()
    true, false = text.find("true"), text.find("false")
    if true != -1 or false != -1:
        return true > false  # find() returns -1 for a missing word
    words = text.translate(str.maketrans("", "", string.punctuation)).split()
    return DENIALS.isdisjoint(words)


def is_void(claim: str) -> bool:
    """Whether a claim says nothing about the question, such as a greeting: it contains one of ``VOID_PHRASES``."""
    return any(phrase in claim for phrase in VOID_PHRASES)


def _judged(answer: Answer, claim: Claim) -> JudgedClaim:
    if skipped := _skipped(answer, claim):
        return JudgedClaim(answer.system, skipped=skipped)
    return JudgedClaim(answer.system, claim.verdict >= THRESHOLD, claim.fields["correctness"] in CORRECT)


def _skipped(answer: Answer, claim: Claim) -> str | None:
    if answer.abstains:
        return "abstaining answer"
    if claim.fields["correctness"] is None:
        return "no correctness"
    if claim.verdict is None:
        return "no fact score"
    return "void claim" if is_void(claim.fields["claim_string"]) else None


def _scores(claims: Sequence[JudgedClaim]) -> dict[str, Any]:
    counts = Agreement.of(claims)
    return {
        "accuracy": counts.accuracy,
        "micro_f1": counts.accuracy,
        "correct": counts.of_class(),
        "not_correct": counts.inverse.of_class(),
    }
