"""FanOutQA's loose and strict accuracy: which strings of the reference occur in the answer.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116); ``fanoutqa.eval.string`` and ``.scorer``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.answers import UNANSWERED, check_pairs, parts_of, strings_of, text_of
from qabench.errors import InputError

Normalize = Callable[[Iterable[Any]], Mapping[str, str]]
"""Maps objects to the normal form of each distinct ``str(object)``, such as ``Normalizer(...).batch``."""


@dataclass(frozen=True, slots=True)
class QuestionAccuracy:
    """The score of one question.

    Attributes:
        loose: the share of the reference's strings that were found; at most 1, below 0 only for nested references.
        strict: whether all strings were found.
        missing: the normalized strings that were not found, in the reference's order.
    """

    loose: float
    strict: bool
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AccuracyScore:
    """Means over questions, as fractions, and the score of each question in the order of the input."""

    loose: float
    strict: float
    per_question: tuple[QuestionAccuracy, ...]


def accuracy(references: Sequence[Any], predictions: Sequence[Any], normalize: Normalize) -> AccuracyScore:
    """Compute loose and strict accuracy of answers, aligned with their references.

    A reference's strings are its keys and values (dict), its items (list) or itself; bools count as "yes" and "no".
    A string is found if its normal form occurs in the answer's normal form between word boundaries. loose is the
    mean share of strings found, strict the share of questions with all found. Strings missing from nested containers
    all count against the outer container's own length, so a nested reference can score below zero, as upstream.

    Args:
        references: answers as Python objects: dict, list, str, int, float, bool.
        predictions: one answer for each reference; ``UNANSWERED`` scores 0. Anything else is converted by ``str`` as
            upstream, so a ``null`` in a file is the string "None".
        normalize: see ``Normalize``; each distinct string is normalized once.

    Raises:
        InputError: no questions, lists of different lengths, or an empty list or dict as a reference (undefined).
    """
    check_pairs(references, predictions)
    answered = [prediction for prediction in predictions if prediction is not UNANSWERED]
    forms = normalize([s for reference in references for s in strings_of(reference)] + list(map(str, answered)))
    scores = []
    for i, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
        try:
            scores.append(_question(reference, prediction, forms))
        except ZeroDivisionError:
            raise InputError(f"reference {i} is or contains an empty list or dict: its accuracy is undefined") from None
    n = len(scores)
    # The built-in sum in order, with integer zeros, equals the official sum to the last digit.
    return AccuracyScore(sum(s.loose for s in scores) / n, sum(s.strict for s in scores) / n, tuple(scores))


def found_strings(reference: Any, forms: Mapping[str, str], missing: Iterable[str]) -> list[str]:
    """Return the normal forms of a reference's strings that were found, in its order: all except ``missing``."""
    remaining = Counter(missing)
    matches = []
    for text in strings_of(reference):
        if remaining[forms[text]] > 0:
            remaining[forms[text]] -= 1
        else:
            matches.append(forms[text])
    return matches


def _question(reference: Any, prediction: Any, forms: Mapping[str, str]) -> QuestionAccuracy:
    if prediction is UNANSWERED:
        return QuestionAccuracy(0, False, tuple(forms[text] for text in strings_of(reference)))
    loose, strict, missing = _searched(reference, forms[str(prediction)], forms)
    return QuestionAccuracy(loose, strict, tuple(missing))


def _searched(reference: Any, candidate: str, forms: Mapping[str, str]) -> tuple[float, bool, list[str]]:
    if not isinstance(reference, dict | list):
        form = forms[text_of(reference) if isinstance(reference, bool) else str(reference)]
        contained = contains_word(form, candidate)
        return int(contained), contained, [] if contained else [form]
    parts = parts_of(reference)
    missing = [text for part in parts for text in _searched(part, candidate, forms)[2]]
    n_found = len(parts) - len(missing)
    return n_found / len(parts), n_found == len(parts), missing


def contains_word(string: str, text: str) -> bool:
    r"""Tell whether ``string`` occurs in ``text`` between word boundaries.

    Equals ``re.search(rf"\b{re.escape(string)}\b", text)``. Compiling a pattern for each of thousands of strings
    would take longer than all the searches.
    """
    start = text.find(string)
    while start != -1:
        if _is_boundary(text, start) and _is_boundary(text, start + len(string)):
            return True
        start = text.find(string, start + 1)
    return False


def _is_boundary(text: str, position: int) -> bool:
    before = position > 0 and _is_word(text[position - 1])
    after = position < len(text) and _is_word(text[position])
    return before != after


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
