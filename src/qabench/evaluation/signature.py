"""Signatures, one line with everything that a score depends on, as in sacreBLEU, and what makes a score official.

A benchmark declares the official value of every field that its signatures have. Only ``deviations``
compares the two: commands, reports, published entries, logs and metrics print the sentences that it
returns.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qabench.answers import dumps
from qabench.errors import InputError
from qabench.io.environment import code_version, package_version
from qabench.io.tables import redacted

VERSION, ASKED = "qabench", "asked"
"""Fields of all signatures, which are not declared: a part of the questions is a deviation of its own."""
MIXED = "mixed"  # before the values of a field that differs between answers
MAX_MIXED_VALUES = 4
NOT_RECORDED = "not recorded"


def version() -> str:
    """Return the installed version of qabench."""
    return package_version("qabench")


def signature(score: str, **fields: object) -> str:
    """Return ``score|name:value|...|qabench:VERSION``, with the fields in order and without those that are None."""
    parts = [f"{name}:{field_value(value)}" for name, value in fields.items() if value is not None]
    return "|".join([score, *parts, f"qabench:{code_version()}"])


def parse(line: str) -> tuple[str, dict[str, str]]:
    """Return the name of the score and the fields of a signature, in order.

    Raises:
        InputError: the line is not a signature, or has a field twice.

    Examples:
        >>> parse("fanout_acc|config:dev|lemmatizer:simplemma-2.0.0|qabench:0.2.0")
        ('fanout_acc', {'config': 'dev', 'lemmatizer': 'simplemma-2.0.0', 'qabench': '0.2.0'})
    """
    score, *parts = line.split("|")
    if not score or not parts or not all(":" in part for part in parts):
        raise InputError(
            f"not a signature: {line!r:.80}; the format is score|name:value|...|qabench:VERSION"
        )
    fields: dict[str, str] = {}
    for part in parts:
        name, _, value = part.partition(":")
        if name in fields:
            raise InputError(
                f"not a signature: {line!r:.80} has the field {name!r} twice; each field is there once"
            )
        fields[name] = value
    return score, fields


def short_digest(text: str) -> str:
    """Return the first twelve hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def digest(items: Iterable[Any]) -> str:
    """Return a digest of a list of answers, twelve hex digits.

    It depends on their types, digits and order.
    """
    total = hashlib.sha256()
    for item in items:
        total.update(dumps(item).encode("utf-8") + b"\n")
    return total.hexdigest()[:12]


def with_fields(line: str, **fields: object) -> str:
    """Return a signature with further fields, or other values of fields, before its version.

    None adds nothing.

    Raises:
        InputError: the line is not a signature.
    """
    score, before = parse(line)
    made_by = before.pop(VERSION, code_version())
    merged = before | {name: field_value(value) for name, value in fields.items() if value is not None}
    return "|".join(
        [score, *(f"{name}:{value}" for name, value in merged.items()), f"{VERSION}:{made_by}"]
    )


def merged(lines: Sequence[tuple[str, bool]]) -> str:
    """Return the signature of answers that have signatures of their own.

    A field that differs between answers gets a value that names all values with the numbers of their
    answers, which is a deviation (see ``deviations``). The version is the last answer's, because
    logs are scored again with today's code.

    Args:
        lines: at least one signature, each with whether it is complete. An incomplete one, of an
            answer that failed before the model was asked, may lack fields.

    Returns:
        The signature. A line that is not a signature is returned as it is, and is a deviation too.
    """
    scores: Counter[str] = Counter()
    values_by_field: dict[str, Counter[str]] = {}
    complete = []
    for line, is_complete in lines:
        try:
            score, fields = parse(line)
        except InputError:
            return line
        made_by = fields.pop(VERSION, code_version())
        scores[score] += 1
        for name, value in fields.items():
            values_by_field.setdefault(name, Counter())[value] += 1
        if is_complete:
            complete.append(fields.keys())
    if len(scores) > 1:
        values_by_field["score"] = scores
    parts = [score]
    for name, values in values_by_field.items():
        missing = sum(name not in names for names in complete)
        if missing and values is not scores:
            values[NOT_RECORDED] = missing
        parts.append(f"{name}:{common_value(values)}")
    return "|".join([*parts, f"{VERSION}:{made_by}"])


def common_value(values: Counter[str]) -> str:
    """Return the value that all answers have, or one that names all values, the most frequent one first."""
    if len(values) == 1:
        return next(iter(values))
    shown = [f"{count} {value}" for value, count in values.most_common(MAX_MIXED_VALUES)]
    if len(values) > MAX_MIXED_VALUES:
        shown.append(f"{len(values) - MAX_MIXED_VALUES} other values")
    return f"{MIXED}({', '.join(shown)})"


def is_mixed(value: str) -> bool:
    """Return whether the value of a field says that it differs between answers."""
    return value.startswith(f"{MIXED}(")


def asked_field(ids: Iterable[str]) -> str:
    """Return the field ``asked``: the number of questions that were asked, and a digest of their ids in any order."""
    distinct = sorted(set(ids))
    return f"{len(distinct)}-{digest(distinct)}"


def asked_part(count: int, available: int | None) -> list[str]:
    """Return the deviation of asking ``count`` of the available questions, or [] if all of them were asked."""
    return (
        [f"{count} of {available} questions were asked"]
        if available is not None and count < available
        else []
    )


def field_value(value: object) -> str:
    """Return a value as it is in a signature: without secrets, and without the separator of fields."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(field_value, value))
    return redacted(str(value)).replace("|", "/")


@dataclass(frozen=True, slots=True)
class Field:
    """The official values of one field of a signature.

    Attributes:
        official: the official values, or a function that says whether a value is official. None:
            every value is official (such as any model's name).
        says: the sentence for another value, with the fields ``{value}`` and ``{official}``, or a
            function of the value.
        absent: whether the field may be absent.
        unless: another field. Where a signature has it, this one is irrelevant.
    """

    official: tuple[str, ...] | Callable[[str], bool] | None
    says: str | Callable[[str], str] = "{name}: {value} instead of {official}"
    absent: bool = False
    unless: str = ""

    def accepts(self, value: str) -> bool:
        """Return whether a value is official."""
        if self.official is None:
            return True
        return self.official(value) if callable(self.official) else value in self.official

    def sentence(self, name: str, value: str) -> str:
        """Return the deviation as a sentence."""
        if callable(self.says):
            return self.says(value)
        official = ""
        if isinstance(self.official, tuple):
            official = " or ".join(self.official)
        return self.says.format(name=name.replace("_", " "), value=value, official=official)


IRRELEVANT = Field(None, absent=True)
Declaration = Mapping[str, Field]
"""Name of a field -> its official values, without the values of ``VERSION`` and ``ASKED``."""


def read_declarations(
    path: Path, elsewhere: Mapping[str, tuple[str, ...] | Callable[[str], bool]]
) -> dict[str, dict[str, Field]]:
    """Return the declarations of a JSON file, by section (such as a score).

    Each field has the arguments of ``Field`` and perhaps a note, ``why``. ``official`` can be a
    regular expression for the beginning of values. Null or a reason instead of all this says that
    the field is irrelevant.

    Args:
        path: the file.
        elsewhere: the official values that the file does not have, by field.
    """
    declarations: dict[str, dict[str, Field]] = {}
    for section, fields in json.loads(path.read_text(encoding="utf-8")).items():
        declarations[section] = dict.fromkeys(fields, IRRELEVANT)
        for name, field in fields.items():
            if isinstance(field, dict):
                field.pop("why", None)
                listed = "official" in field
                official = _official(field["official"]) if listed else elsewhere[name]
                declarations[section][name] = Field(**field | {"official": official})
    return declarations


def _official(values: list[str] | str) -> tuple[str, ...] | Callable[[str], bool]:
    if isinstance(values, list):
        return tuple(values)
    return lambda value: re.match(values, value) is not None


def signature_name(line: str) -> str:
    """Return the name of the score in a signature."""
    return parse(line)[0]


def deviations(line: str, declaration: Declaration, cutoff: str = "") -> list[str]:
    """Return what distinguishes a score from the official one, in sentences.

    Empty for an official score.

    Args:
        line: a signature.
        declaration: the official values of the score's fields.
        cutoff: the score's cutoff, such as "5" of "mrr@5". Its signature can have several in the
            field ``k``.

    Returns:
        One sentence for each field with an unofficial value, for each field that differs between
        answers, for each required field that is missing, and for each field that is not declared,
        in the order of the signature.

    Raises:
        InputError: the text is not a signature.
    """
    _, fields = parse(line)
    fields = {name: value for name, value in fields.items() if name not in (VERSION, ASKED)}
    if cutoff and "k" in fields and not is_mixed(fields["k"]):
        fields["k"] = cutoff
    sentences = []
    for name, value in fields.items():
        if is_mixed(value):
            values = value.removeprefix(MIXED)
            sentences.append(f"{name.replace('_', ' ')}: differs between the answers {values}")
        elif name not in declaration:
            sentences.append(f"{name.replace('_', ' ')}: {value} (the official value is not known)")
        elif declaration[name].unless not in fields and not declaration[name].accepts(value):
            sentences.append(declaration[name].sentence(name, value))
    sentences += [
        f"{name.replace('_', ' ')}: {NOT_RECORDED}"
        for name, field in declaration.items()
        if not field.absent and name not in fields
    ]
    return sentences
