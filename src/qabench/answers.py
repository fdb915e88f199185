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
from qabench.io.limits import check_depth, json_of

Answer = dict[str, Any] | list[Any] | str | int | float | bool | None


SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Unanswered(Enum):
    """The type of ``UNANSWERED``.

    An enum so that type checkers can distinguish it.
    """

    UNANSWERED = "unanswered"


UNANSWERED: Literal[Unanswered.UNANSWERED] = Unanswered.UNANSWERED
"""In a list of predictions: the model gave no answer to this question.

(None is the answer ``null`` of a file.)
"""


NOT_STRING = "answers that are not strings"
"""What every route calls answers that scorers turn into text. See ``text_of``."""


def is_text(answer: Any) -> bool:
    """Tell whether an answer is a string, or there is none."""
    return isinstance(answer, str) or answer is None or answer is UNANSWERED


def is_list_of(value: Any, kind: type) -> bool:
    """Tell whether a value is a list or a tuple whose items have a type."""
    return isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value)


def dumps(answer: Answer) -> str:
    """Return the JSON text of an answer. ``loads`` returns an equal answer with the same types.

    Raises:
        InputError: the answer, or something in it, has another type than these six, is nested too
            deeply, contains itself, has two keys that are equal in JSON, such as 1 and "1", or is
            an integer of more than 4,300 digits.

    Examples:
        >>> dumps({"Jupiter": 1.14, "rings": True})
        '{"Jupiter": 1.14, "rings": true}'
        >>> loads(dumps("1998")), loads(dumps(1998))
        ('1998', 1998)
    """
    try:
        check_depth(answer)
        text = _ENCODER.encode(answer)
        json.loads(text, object_pairs_hook=_check_keys)
        if SURROGATE_PAIR.search(text):
            raise ValueError("a character is encoded as two surrogates")
        # Neither Arrow nor UTF-8 can represent a lone surrogate.
        return json.dumps(answer, default=_number) if LONE_SURROGATE.search(text) else text
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the answer cannot be written as JSON: {error}; "
            "allowed: dict, list, str, int, float, bool, None"
        ) from None


def _number(value: Any) -> Any:
    """Return Python's form of a number or an array of NumPy."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        # 1.1 in 32 bits is 1.1, not 1.100000023841858
        is_short = value.dtype.kind == "f" and value.dtype.itemsize < 8
        if is_short and not value.ndim:
            return float(str(value))
        return [_number(part) for part in value] if is_short else value.tolist()
    raise TypeError(f"{value!r:.80} is a {type(value).__name__}")


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"two keys are equal in JSON, such as 1 and '1': {pairs!r:.80}")


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_number)


def loads(text: str) -> Any:
    """Return the answer (or the decomposition) of a row's JSON text.

    Raises:
        InputError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json_of(text)
    except (TypeError, AttributeError, ValueError) as error:
        raise InputError(f"not the JSON text of an answer: {text!r:.120} ({error})") from None


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
