"""FanOutQA's loose and strict accuracy: which strings of the reference occur in the answer.

Source: Zhu et al., FanOutQA, ACL 2024 (https://arxiv.org/abs/2402.14116), and
``fanoutqa.eval.string`` and ``fanoutqa.eval.scorer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from qabench.data.answers import UNANSWERED, check_pairs, loads, text_of
from qabench.data.rows import Json, Row
from qabench.errors import InputError

Normalize = Callable[[Iterable[Any]], Mapping[str, str]]
"""A function from objects to {str(object): normal form}, such as ``Normalizer(...).batch``."""


# All systems and samples of a file are scored against the same references.
_parsed = lru_cache(maxsize=1 << 14)(loads)


def reference_of(row: Row) -> Any:
    """Return the reference answer of a question. Callers must not change the object.

    Raises:
        InputError: the column "answer" is not the JSON text of an answer.
    """
    # ``loads`` uses the standard library: ``datasets.Json()`` reads 1.14 as 1.1400000000000001,
    # which would not match.
    text = row["answer"]
    if not isinstance(text, str):
        # For other types, ``loads`` raises an error.
        return loads(text)
    return _parsed(text)


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
    """Return the loose and strict accuracy of each answer, in the order of the references.

    The official score is the mean of these values. To be equal to the last digit, they must be
    added in order by the built-in ``sum`` (see ``mean_in_order``), with zeros that are the integer
    0.

    A reference's strings are its keys and values (dict), its items (list) or itself. Bools count as
    "yes" and "no". A string is found if its normal form occurs in the answer's normal form between
    word boundaries. loose is the share of strings found, and strict is whether all are found. As
    upstream, each missing string of a nested reference counts as a missing item of the outer
    container, which has fewer items than strings, so loose can be below 0.

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
    # All texts are normalized in one call, because lemmatizing many at once is much faster.
    texts: list[str] = []
    for reference in references:
        texts += strings_of(reference)
    texts += [str(prediction) for prediction in predictions if prediction is not UNANSWERED]
    forms = normalize(texts)
    scores = []
    for i, (reference, prediction) in enumerate(zip(references, predictions, strict=True)):
        # Upstream scores an unanswered question 0 before it reads the reference, so an undefined
        # reference does no harm there.
        if prediction is not UNANSWERED and is_undefined(reference):
            raise InputError(
                f"reference {i} is or contains an empty list or dict: its accuracy is undefined"
            )
        scores.append(_question(reference, prediction, forms))
    return scores


def is_undefined(reference: Any) -> bool:
    """Tell whether a reference is or contains an empty container."""
    if not isinstance(reference, dict | list):
        return False
    if not reference:
        # The official scorer would divide by the length 0.
        return True
    return any(is_undefined(item) for item in items_of(reference))


def _question(reference: Any, prediction: Any, forms: Mapping[str, str]) -> QuestionAccuracy:
    strings = [forms[text] for text in strings_of(reference)]
    if prediction is UNANSWERED:
        # As in the official scorer, this is the integer 0, because ``sum`` depends on the type.
        return QuestionAccuracy(0, False, (), tuple(strings))
    # Equal strings of a reference are found or missing together, so each is searched for once.
    candidate = forms[str(prediction)]
    contained = {string: contains_word(string, candidate) for string in set(strings)}
    matches: list[str] = []
    missing: list[str] = []
    for string in strings:
        if contained[string]:
            matches.append(string)
        else:
            missing.append(string)
    is_strict = not missing
    loose: float = len(matches)
    if isinstance(reference, dict | list):
        # Every missing string inside a nested container is counted, although the container is only
        # one of the n items. So a nested reference can score below 0, as in the official scorer.
        n = len(items_of(reference))
        loose = (n - len(missing)) / n
    return QuestionAccuracy(loose, is_strict, tuple(matches), tuple(missing))


def strings_of(answer: Any) -> Iterator[str]:
    """Yield the strings that the official scorer looks for.

    They are the keys and then the values of a dict, the items of a list, or the single value.
    Booleans are "yes" and "no".
    """
    if isinstance(answer, dict | list):
        for item in items_of(answer):
            yield from strings_of(item)
    # bool is tested before other values, because str(True) would look for the word "True".
    elif isinstance(answer, bool):
        yield text_of(answer)
    else:
        yield str(answer)


def items_of(answer: Json | list[Any]) -> list[Any]:
    """Return the items of a list, or the keys and then the values of a dict."""
    # As in the official scorer, keys and values count alike, so a dict with n pairs has 2n items.
    if isinstance(answer, dict):
        return [*answer.keys(), *answer.values()]
    return answer


def contains_word(string: str, text: str) -> bool:
    r"""Tell whether ``string`` occurs in ``text`` between word boundaries.

    Equals ``re.search(rf"\b{re.escape(string)}\b", text)``. Compiling a pattern for each of
    thousands of strings would take longer than all the searches.
    """
    # ``string`` can be empty, because the normal form of "." is. It then occurs at any boundary.
    start = text.find(string)
    while start != -1:
        if _is_boundary(text, start) and _is_boundary(text, start + len(string)):
            return True
        # Occurrences may overlap, so the search goes on one character later.
        start = text.find(string, start + 1)
    return False


def _is_boundary(text: str, position: int) -> bool:
    before = position > 0 and _is_word(text[position - 1])
    after = position < len(text) and _is_word(text[position])
    return before != after


def _is_word(character: str) -> bool:
    # This is Python's definition of \w in patterns for str.
    return character.isalnum() or character == "_"
