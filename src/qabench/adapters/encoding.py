"""How predictions and references pass through the Arrow files of ``evaluate``.

``evaluate`` writes both to Arrow before it scores them. An Arrow column has one type and cannot
store lone surrogates, and ``evaluate`` rejects None, but answers have six types, and an unanswered
question is None. Therefore both columns are encoded as JSON in ASCII, and decoded with the same
types and values.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from json.encoder import encode_basestring_ascii
from typing import Any

from qabench.data.answers import JSON_TEXT, UNANSWERED, dumps, loads
from qabench.errors import InputError, unknown_name

FORMATS = ("auto", "json", "python")
# Marks an encoded item of a column of JSON text, which needs no ``references_format``. JSON allows
# leading spaces, so decoding ignores the mark.
FROM_JSON_TEXT = " "


@functools.cache
def encoded_features() -> Any:
    """Return the features of the two encoded columns, which are written without a check."""
    import datasets

    class Encoded(datasets.Features):
        """Columns of strings that are already encoded."""

        def encode_batch(self, batch: Any) -> Any:
            # Checking each string would take longer than everything else.
            return batch

    text = datasets.Value("string")
    return Encoded({"predictions": text, "references": text})


def encode(name: str, items: list[Any], *, from_json_text: bool = False) -> list[str]:
    """Return a column, "predictions" or "references", as JSON text in ASCII.

    Args:
        name: the column's name, for error messages.
        items: the answers.
        from_json_text: whether the items were parsed from a column of JSON text.
    """
    if from_json_text:
        return [FROM_JSON_TEXT + text for text in encode(name, items)]
    if set(map(type, items)) == {str}:
        # This shortcut for strings takes a tenth of the time. It fails for lone surrogates, which
        # UTF-8 cannot encode. The items are then encoded one by one.
        with suppress(UnicodeEncodeError):
            "".join(items).encode()
            return list(map(encode_basestring_ascii, items))
    return [encode_item(item, f"{name}[{i}]") for i, item in enumerate(items)]


def encode_item(item: Any, where: str) -> str:
    """Return an item as JSON text in ASCII.

    Raises:
        InputError: the item has a type that JSON does not have.
    """
    try:
        # This also checks the types.
        text = dumps(item)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if text.isascii():
        return text
    # Other characters are escaped, because Arrow cannot store lone surrogates.
    return json.dumps(json.loads(text))


def _loaded(column: Iterable[str]) -> list[Any]:
    # All items are parsed in one call, because a call takes longer than parsing a short text.
    items: list[Any] = json.loads(f"[{','.join(column)}]")
    return items


def decoded(
    predictions: Iterable[str],
    references: Sequence[str],
    references_format: str = "auto",
    *,
    strings: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Return predictions and references as they were passed to ``compute``.

    Args:
        predictions: an encoded column.
        references: an encoded column.
        references_format: how to read references that do not come from a column of JSON text.
            "json": as JSON text. "python": as the answers themselves. "auto": as "python", but
            strings that could be JSON text are an error.
        strings: whether every reference is a string, so "42" is text and not the number 42.

    Returns:
        The predictions, with ``UNANSWERED`` for None, and the references.

    Raises:
        InputError: an unknown format, or references that are not in it.
    """
    if references_format not in FORMATS:
        raise unknown_name("unknown references_format", references_format, FORMATS)
    answers = _loaded(predictions)
    for i, answer in enumerate(answers):
        if answer is None:
            answers[i] = UNANSWERED
    targets = _loaded(references)
    as_passed = []
    for i, encoded in enumerate(references):
        if not encoded.startswith(FROM_JSON_TEXT):
            as_passed.append(i)
    if references_format == "json":
        for i in as_passed:
            try:
                targets[i] = loads(targets[i])
            except InputError as error:
                raise InputError(f"references[{i}]: {error}") from None
    elif references_format == "auto":
        _check_is_plain({i: targets[i] for i in as_passed}, strings)
    return answers, targets


def _check_is_plain(targets: Mapping[int, Any], strings: bool) -> None:
    """Raise InputError if all references are strings that may be meant as JSON text.

    A list does not say whether its strings are JSON text or plain text. If one of them is not JSON,
    all are plain text. If all are JSON, they could be either. This does not matter for numbers,
    because 42 and "42" score the same.
    """
    # The types of all references are checked first, which is fast.
    for target in targets.values():
        if not isinstance(target, str):
            return
    try:
        values = {i: loads(target) for i, target in targets.items()}
    except InputError:
        return
    if strings:
        # A string that is JSON by chance, such as "42", shows that the strings are plain text.
        for value in values.values():
            if not isinstance(value, str):
                return
    for i, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number:
            raise InputError(
                f"the references are strings that could be JSON text, such as references[{i}] = {targets[i]!r:.60}, "
                f"and only a column whose feature has the id {JSON_TEXT!r} says so; pass the column of the dataset "
                'itself, such as rows["answer"] without list(), or references_format="json", or "python" if they are '
                "plain text"
            )
