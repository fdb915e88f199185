"""Answers to questions: as JSON text, as strings, and in pairs of predictions and references.

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
from qabench.io.limits import MAX_DEPTH, check_depth, json_of

Answer = dict[str, Any] | list[Any] | str | int | float | bool | None


# The ``id`` of a ``datasets`` feature whose strings are JSON text written by ``dumps``. Arrow
# files, Parquet files and cards keep it. A column without it is plain text.
JSON_TEXT = "application/json"
SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Unanswered(Enum):
    """The type of ``UNANSWERED``: an enum, so that type checkers can distinguish it."""

    UNANSWERED = "unanswered"


UNANSWERED: Literal[Unanswered.UNANSWERED] = Unanswered.UNANSWERED
"""In a list of predictions: the model gave no answer. (None is the answer ``null`` of a file.)"""


# Files, runs and metrics use these words for answers that scorers turn into text (see ``text_of``).
NOT_STRING = "answers that are not strings"


def is_text(answer: Any) -> bool:
    """Tell whether an answer is a string, or is missing."""
    return isinstance(answer, str) or answer is None or answer is UNANSWERED


def is_list_of(value: Any, kind: type) -> bool:
    """Tell whether a value is a list or a tuple, all of whose items have the type ``kind``."""
    return isinstance(value, list | tuple) and all(isinstance(item, kind) for item in value)


def dumps(answer: Answer) -> str:
    """Return the JSON text of an answer. ``loads`` returns an equal answer with the same types.

    Raises:
        InputError: the answer, or something in it, has a type that JSON does not have, is nested
            too deeply, contains itself, has two keys that are equal in JSON, such as 1 and "1", or
            is an integer of more than 4,300 digits.

    Examples:
        >>> dumps({"Jupiter": 1.14, "rings": True})
        '{"Jupiter": 1.14, "rings": true}'
        >>> loads(dumps("1998")), loads(dumps(1998))
        ('1998', 1998)
    """
    try:
        text = _encoded(answer)
        # Only objects have keys, and only keys that are not strings can become equal in JSON.
        if "{" in text and not _has_text_keys(answer):
            _KEY_CHECKER.decode(text)
        return _escaped(text, answer)
    except (TypeError, ValueError) as error:
        raise _not_json(error) from None


def dumps_read(value: Any) -> str:
    """Return the text of ``dumps`` in half the time, for a value that ``json_of`` has read.

    This skips two checks: all keys of such a value are strings, and ``json_of`` has checked its
    depth.

    Raises:
        InputError: a character is encoded as two surrogates.
    """
    try:
        return _escaped(_ENCODER_OF_READ.encode(value), value)
    except ValueError as error:
        raise _not_json(error) from None


def _escaped(text: str, answer: Answer) -> str:
    """Return the JSON text of an answer without surrogates, which UTF-8 and Arrow cannot represent."""
    if text.isascii():
        return text
    try:
        # The search below takes ten times as long.
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        pass
    if SURROGATE_PAIR.search(text):
        raise ValueError("a character is encoded as two surrogates")
    if LONE_SURROGATE.search(text):
        return json.dumps(answer, default=_number)
    return text


def _not_json(error: Exception) -> InputError:
    return InputError(
        f"the answer cannot be written as JSON: {error}; "
        "allowed: dict, list, str, int, float, bool, None"
    )


def _encoded(answer: Answer) -> str:
    """Return the JSON text of an answer. Raises ValueError if it is too deep or contains itself."""
    try:
        text = _ENCODER.encode(answer)
    except (RecursionError, ValueError):
        check_depth(answer)
        raise
    # Walking through every answer would take longer than writing it.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        check_depth(answer)
    return text


def _number(value: Any) -> Any:
    """Convert a NumPy number or array to Python numbers and lists."""
    if type(value).__module__ != "numpy" or not hasattr(value, "tolist"):
        raise TypeError(f"{value!r:.80} is a {type(value).__name__}")
    is_short = value.dtype.kind == "f" and value.dtype.itemsize < 8
    if not is_short:
        return value.tolist()
    if value.ndim:
        return [_number(item) for item in value]
    # A 32-bit float that prints as 1.1 is written as 1.1, not as 1.100000023841858.
    return float(str(value))


def _has_text_keys(answer: Answer) -> bool:
    """Tell whether all keys in an answer are strings, as in every value that was read from JSON."""
    values: list[Any] = [answer]
    # The loop also visits the values that it appends.
    for value in values:
        if type(value) is dict:
            if any(type(key) is not str for key in value):
                return False
            values += value.values()
        elif type(value) is list:
            values += value
        elif type(value) not in _WITHOUT_KEYS:
            return False
    return True


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError(f"two keys are equal in JSON, such as 1 and '1': {pairs!r:.80}")


# Values of these types contain no keys. Values of other types, such as NumPy arrays, may contain
# some.
_WITHOUT_KEYS = {str, int, float, bool, type(None)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, default=_number)
# A value that was read from JSON cannot contain itself.
_ENCODER_OF_READ = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_KEY_CHECKER = json.JSONDecoder(object_pairs_hook=_check_keys)


def loads(text: str) -> Any:
    """Parse the JSON text of an answer, or of another column such as a decomposition.

    Raises:
        InputError: the text is not JSON, or is nested too deeply.
    """
    try:
        return json_of(text)
    except (TypeError, AttributeError, ValueError) as error:
        raise InputError(f"not the JSON text of an answer: {text!r:.120} ({error})") from None


def read_written(text: Any) -> Any:
    """Parse the text of an answer that ``dumps`` wrote.

    Raises:
        InputError: the text is not exactly what ``dumps`` writes, so it may be plain text.
    """
    try:
        answer = loads(text)
        is_written = dumps(answer) == text
    except InputError:
        is_written = False
    if not is_written:
        raise InputError(
            f"{text!r:.80} is not JSON text as qabench.data.answers.dumps writes it, although its column says so; "
            "write it with dumps, or pass plain text in a list or in another column"
        )
    return answer


def text_of(answer: Any) -> str:
    """Return an answer as a single string, for metrics that compare strings.

    A list has one line per item, and a dict one line "key - value" per entry. Booleans are "yes"
    and "no". None and ``UNANSWERED`` are "". FanOutQA's official scorer calls this function
    ``str_answer``.
    """
    if isinstance(answer, list):
        return "\n".join(map(text_of, answer))
    if isinstance(answer, dict):
        return "\n".join(f"{key} - {text_of(value)}" for key, value in answer.items())
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    if answer is None or answer is UNANSWERED:
        return ""
    return str(answer)


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
    """Return references and predictions that are strings, with None for an unanswered question.

    Raises:
        InputError: no references, lists of different lengths, or an item that is not a string.
    """
    check_pairs(references, predictions)
    targets = [_text(text, f"references[{i}]") for i, text in enumerate(references)]
    answers: list[str | None] = []
    for i, text in enumerate(predictions):
        if text is None or text is UNANSWERED:
            answers.append(None)
        else:
            answers.append(_text(text, f"predictions[{i}]"))
    return targets, answers


def _text(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{where} is {text!r:.80}; allowed: a string")
    return text


def type_name(answer: Any) -> str:
    """Return the name of an answer's type in tables: dict, list, str, int, float, bool or null."""
    return "null" if answer is None else type(answer).__name__
