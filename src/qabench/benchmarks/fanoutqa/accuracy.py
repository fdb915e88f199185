"""FanOutQA's loose and strict accuracy: which strings of the reference occur in the answer.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116). ``fanoutqa.eval.string``
and ``.scorer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qabench.answers import UNANSWERED, check_pairs, text_of
from qabench.data.rows import Json
from qabench.errors import InputError

Normalize = Callable[[Iterable[Any]], Mapping[str, str]]
"""Maps objects to the normal form of each distinct ``str(object)``, such as ``Normalizer(...).batch``."""


@dataclass(frozen=True, slots=True)
class QuestionAccuracy:
    """The score of one question.

    Attributes:
        loose: the share of the reference's strings that were found. At most 1, below 0 only for
            nested references.
        strict: whether all strings were found.
        matches, missing: the normalized strings that were found and those that were not, in the
            reference's order.
    """

    loose: float
    strict: bool
    matches: tuple[str, ...]
    missing: tuple[str, ...]


def accuracy(
    references: Sequence[Any], predictions: Sequence[Any], normalize: Normalize
) -> list[QuestionAccuracy]:
    """Return the loose and strict accuracy of each answer, aligned with its reference.

    The official score is their mean by the built-in sum in order (``mean_in_order``), with integer
    zeros, to the last digit.

    A reference's strings are its keys and values (dict), its items (list) or itself. Bools count as
    "yes" and "no". A string is found if its normal form occurs in the answer's normal form between
    word boundaries. loose is the share of strings found, strict whether all are found. Strings
    missing from nested containers all count against the outer container's own length, so a nested
    reference can score below zero, as upstream.

    Args:
        references: answers as Python objects: dict, list, str, int, float, bool.
        predictions: one answer for each reference. ``UNANSWERED`` scores 0. Anything else is
            converted by ``str`` as upstream, so a ``null`` in a file is the string "None".
        normalize: see ``Normalize``. Each distinct string is normalized once.

    Raises:
        InputError: no questions, lists of different lengths, or an empty list or dict as a
            reference (undefined).
    """
    check_pairs(references, predictions)
    answered = [prediction for prediction in predictions if prediction is not UNANSWERED]
    forms = normalize(
        [s for reference in references for s in strings_of(reference)] + list(map(str, answered))
    )
    scores = []
    for i, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
        if prediction is not UNANSWERED and _is_undefined(reference):
            raise InputError(
                f"reference {i} is or contains an empty list or dict: its accuracy is undefined"
            )
        scores.append(_question(reference, prediction, forms))
    return scores


def _is_undefined(reference: Any) -> bool:
    """Tell whether a reference is or contains an empty container, by whose length the official scorer divides."""
    return isinstance(reference, dict | list) and (
        not reference or any(map(_is_undefined, parts_of(reference)))
    )


def _question(reference: Any, prediction: Any, forms: Mapping[str, str]) -> QuestionAccuracy:
    strings = [forms[text] for text in strings_of(reference)]
    if prediction is UNANSWERED:
        return QuestionAccuracy(0, False, (), tuple(strings))
    candidate = forms[str(prediction)]
    contained = {string for string in strings if contains_word(string, candidate)}
    matches = tuple(string for string in strings if string in contained)
    missing = tuple(string for string in strings if string not in contained)
    if not isinstance(reference, dict | list):
        return QuestionAccuracy(len(matches), not missing, matches, missing)
    n = len(parts_of(reference))
    return QuestionAccuracy((n - len(missing)) / n, not missing, matches, missing)


def strings_of(answer: Any) -> Iterator[str]:
    """Yield the strings that the official scorer looks for.

    They are the keys, then the values of a dict, the items of a list, or the single value. Booleans
    are "yes" and "no".
    """
    if isinstance(answer, dict | list):
        for part in parts_of(answer):
            yield from strings_of(part)
    else:
        yield text_of(answer) if isinstance(answer, bool) else str(answer)


def parts_of(answer: Json | list[Any]) -> list[Any]:
    """Return the parts over which a container's score is averaged: a list's items, or a dict's keys, then values."""
    return [*answer.keys(), *answer.values()] if isinstance(answer, dict) else answer


def contains_word(string: str, text: str) -> bool:
    r"""Tell whether ``string`` occurs in ``text`` between word boundaries.

    Equals ``re.search(rf"\b{re.escape(string)}\b", text)``. Compiling a pattern for each of
    thousands of strings would take longer than all the searches.
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
