"""Answers to questions: their JSON text, their string, and pairs of predictions and references.

An answer is a dict, a list, a string, an int, a float or a bool. Datasets store it as JSON text
written by the standard library, the only format that preserves types and digits:
``datasets.Json()`` reads 1.14 as 1.1400000000000001 and the string "1998" as a number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import Enum
from typing import Any, Literal

from qabench.errors import InputError
from qabench.io.limits import MAX_DEPTH, json_of

_ENCODER = json.JSONEncoder(ensure_ascii=False)
SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")

Answer = dict[str, Any] | list[Any] | str | int | float | bool | None


class Unanswered(Enum):
    """The type of ``UNANSWERED``.

    An enum so that type checkers can distinguish it.
    """

    UNANSWERED = "unanswered"


UNANSWERED: Literal[Unanswered.UNANSWERED] = Unanswered.UNANSWERED
"""In a list of predictions: the model gave no answer to this question.

(None is the answer ``null`` of a file.)
"""


def is_list_of(value: Any, kind: type) -> bool:
    """Tell whether a value is a list or a tuple whose items have a type."""
    return isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value)


def dumps(answer: Answer) -> str:
    """Return the JSON text of an answer. ``loads`` returns an equal answer with the same types.

    Raises:
        InputError: the answer, or something in it, has another type than these six, is nested too
            deeply, contains itself, or cannot be represented in JSON: two keys such as 1 and "1",
            an integer of more than 4,300 digits, or a character encoded as two surrogates.

    Examples:
        >>> dumps({"Jupiter": 1.14, "rings": True})
        '{"Jupiter": 1.14, "rings": true}'
        >>> loads(dumps("1998")), loads(dumps(1998))
        ('1998', 1998)
    """
    return json_text(_plain(answer))


def json_text(answer: Answer) -> str:
    """Return ``dumps`` of an answer that was read from JSON, so that its types need no check."""
    try:
        text = _ENCODER.encode(answer)
    except ValueError as error:
        raise InputError(f"the answer cannot be written as JSON: {error}") from None
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:  # a lone surrogate, which neither Arrow nor UTF-8 can represent
            if SURROGATE_PAIR.search(text):
                raise InputError(
                    "the answer has a character encoded as two surrogates, which JSON cannot distinguish from the "
                    "character: decode it with text.encode('utf-16', 'surrogatepass').decode('utf-16')"
                ) from None
            text = json.dumps(answer)
    return text


def loads(text: str) -> Any:
    """Return the answer (or the decomposition) of a row's JSON text.

    Raises:
        InputError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json_of(text)
    except (TypeError, AttributeError, ValueError) as error:
        raise InputError(f"not the JSON text of an answer: {text!r:.120} ({error})") from None


_SCALARS = (str, bool, int, float, type(None))


def _plain(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """Return ``value`` with the types that JSON distinguishes.

    NumPy scalars are converted to Python's.
    """
    if isinstance(value, _SCALARS):
        return value
    if len(path) >= MAX_DEPTH:
        raise InputError(f"the answer is nested deeper than {MAX_DEPTH} levels, or contains itself")
    if isinstance(value, dict):
        plain = {
            key if type(key) is str else _key(key, path): item
            if type(item) is str
            else _plain(item, (*path, key))
            for key, item in value.items()
        }
        if len(plain) < len(value):
            raise InputError(
                f"{_place(path)} has keys that are equal in JSON, such as 1 and '1': {list(value)!r:.80}"
            )
        return plain
    if isinstance(value, list):
        return [
            item if type(item) is str else _plain(item, (*path, i)) for i, item in enumerate(value)
        ]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return _plain(value.tolist(), path)
    raise InputError(
        f"{_place(path)} is a {type(value).__name__} ({value!r:.80}); allowed: dict, list, str, int, float, bool, None"
    )


def _key(key: Any, path: tuple[Any, ...]) -> str:
    if isinstance(key, bool):
        return text_of(key)
    if isinstance(key, _SCALARS):
        return str(key)
    raise InputError(
        f"{_place(path)} has a key of type {type(key).__name__} ({key!r:.80}); allowed: str, int, float, bool"
    )


def _place(path: tuple[Any, ...]) -> str:
    return "answer" + "".join(f"[{key!r:.40}]" for key in path)


def text_of(answer: Any) -> str:
    """Return an answer as a single string, for metrics that compare strings (the official ``str_answer``).

    A list has one line per item, and a dict one line "key - value" per entry. Booleans are "yes"
    and "no". None and ``UNANSWERED`` are "".
    """
    if isinstance(answer, list):
        return "\n".join(map(text_of, answer))
    if isinstance(answer, dict):
        return "\n".join(f"{key} - {text_of(value)}" for key, value in answer.items())
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return "" if answer is None or answer is UNANSWERED else str(answer)


def check_pairs(references: Sequence[Any], predictions: Sequence[Any]) -> None:
    """Raise InputError unless there is one prediction for each reference, and at least one."""
    if len(references) != len(predictions):
        raise InputError(
            f"{len(predictions)} predictions for {len(references)} references; expected one for each"
        )
    if not references:
        raise InputError("nothing to score: no references")


def text_pairs(
    references: Sequence[Any], predictions: Sequence[Any]
) -> tuple[list[str], list[str | None]]:
    """Return references and predictions that are strings, with None for a prediction that is None or ``UNANSWERED``.

    Raises:
        InputError: no references, lists of different lengths, or an item that is not a string.
    """
    check_pairs(references, predictions)
    targets = [_text(text, f"references[{i}]") for i, text in enumerate(references)]
    answers = [
        None if text is None or text is UNANSWERED else _text(text, f"predictions[{i}]")
        for i, text in enumerate(predictions)
    ]
    return targets, answers


def _text(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{where} is {text!r:.80}; allowed: a string")
    return text


def type_name(answer: Any) -> str:
    """Return the name of an answer's type in tables: dict, list, str, int, float, bool or null."""
    return "null" if answer is None else type(answer).__name__
