"""Answers of FanOutQA questions: their JSON text, their strings, and the tree of sub-questions.

An answer is a dict, a list, a string, an int, a float or a bool. Datasets keep it as JSON text made by the standard
library, because that is the one form that comes back equal by type and digit: ``datasets.Json()`` reads 1.14 as
1.1400000000000001 and the string "1998" as a number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal

from qabench.errors import InputError
from qabench.limits import MAX_DEPTH, json_of

SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

Answer = dict[str, Any] | list[Any] | str | int | float | bool | None


class Unanswered(Enum):
    """The type of ``UNANSWERED``; an enum so that type checkers can tell it apart."""

    UNANSWERED = "unanswered"


UNANSWERED: Literal[Unanswered.UNANSWERED] = Unanswered.UNANSWERED
"""In a list of predictions: the model gave no answer to this question. (None is an answer of a file: ``null``.)"""


def dumps(answer: Answer) -> str:
    """The JSON text of an answer, from which ``loads`` gives an equal one of equal types.

    Raises:
        InputError: the answer, or something in it, is of another type than the six, or has no equal in JSON: two keys
            such as 1 and "1", an integer of more than 4,300 digits, a character in the form of two surrogates; or it is
            nested too deeply or contains itself.
    """
    plain = _plain(answer, "answer")
    try:
        text = json.dumps(plain, ensure_ascii=False)
    except ValueError as error:
        raise InputError(f"the answer cannot be written as JSON: {error}") from None
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate, which neither Arrow nor a UTF-8 file can hold
            text = json.dumps(plain, ensure_ascii=True)
            if SURROGATE_PAIR.search(json.dumps(plain, ensure_ascii=False)):
                raise InputError(
                    "the answer has a character in the form of two surrogates, which JSON cannot keep apart from the "
                    "character: decode it with text.encode('utf-16', 'surrogatepass').decode('utf-16')"
                ) from None
    return text


def loads(text: str) -> Any:
    """The answer (or the decomposition) of a row's JSON text.

    Raises:
        InputError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json_of(text)
    except (TypeError, AttributeError, ValueError) as error:
        raise InputError(f"not the JSON text of an answer: {text!r:.120} ({error})") from None


def _plain(value: Any, where: str, depth: int = 0) -> Any:
    """``value`` in the types that JSON keeps apart; NumPy scalars become Python's."""
    if depth > MAX_DEPTH:
        raise InputError(f"the answer is nested deeper than {MAX_DEPTH} levels, or contains itself")
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        plain = {_key(key, where): _plain(item, f"{where}[{key!r:.40}]", depth + 1) for key, item in value.items()}
        if len(plain) < len(value):
            raise InputError(f"{where} has keys that are equal in JSON, such as 1 and '1': {list(value)!r:.80}")
        return plain
    if isinstance(value, list):
        return [_plain(item, f"{where}[{i}]", depth + 1) for i, item in enumerate(value)]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _plain(value.tolist(), where, depth + 1)
    raise InputError(
        f"{where} is a {type(value).__name__} ({value!r:.80}); allowed: dict, list, str, int, float, bool, None"
    )


def _key(key: Any, where: str) -> str:
    if isinstance(key, bool):
        return text_of(key)
    if key is None or isinstance(key, str | int | float):
        return str(key)
    raise InputError(f"{where} has a key of type {type(key).__name__} ({key!r:.80}); allowed: str, int, float, bool")


def strings_of(answer: Any) -> Iterator[str]:
    """The strings that the official scorer looks for: keys, then values; items; the one value; bools as yes or no."""
    if isinstance(answer, dict | list):
        for part in parts_of(answer):
            yield from strings_of(part)
    else:
        yield text_of(answer) if isinstance(answer, bool) else str(answer)


def parts_of(answer: dict[str, Any] | list[Any]) -> list[Any]:
    """What a container's score is counted over: a list's items; a dict's keys and then its values."""
    return [*answer.keys(), *answer.values()] if isinstance(answer, dict) else answer


def text_of(answer: Any) -> str:
    """An answer as one text, for metrics that compare texts (the official ``str_answer``).

    A list is its items, one a line; a dict lines of "key - value"; a bool yes or no; None and ``UNANSWERED`` "".
    """
    if isinstance(answer, list):
        return "\n".join(map(text_of, answer))
    if isinstance(answer, dict):
        return "\n".join(f"{key} - {text_of(value)}" for key, value in answer.items())
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return "" if answer is None or answer is UNANSWERED else str(answer)


def type_name(answer: Any) -> str:
    """The name of an answer's type as the tables print it: dict, list, str, int, float, bool or null."""
    return "null" if answer is None else type(answer).__name__


def equal(a: Any, b: Any) -> bool:
    """Whether two answers are equal by value *and* type, in order (1 is not 1.0, True is not 1)."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return bool(a == b) or (isinstance(a, float) and math.isnan(a) and math.isnan(b))


def subquestions(decomposition: list[dict[str, Any]], depth: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """(depth, sub-question) of a decomposition, depth first: a node before its children."""
    for node in decomposition:
        yield depth, node
        yield from subquestions(node["decomposition"], depth + 1)


def evidence_of(decomposition: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pages that a decomposition's sub-questions name, depth first: the question's necessary evidence."""
    return [node["evidence"] for _, node in subquestions(decomposition) if node["evidence"] is not None]
