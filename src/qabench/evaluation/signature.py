"""Signatures: one line with everything that a score depends on, as in sacreBLEU.

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

from qabench.data.answers import dumps
from qabench.errors import InputError
from qabench.io.environment import code_version, package_version
from qabench.io.redaction import redacted

VERSION, ASKED = "qabench", "asked"
"""Fields of all signatures, which are not declared: a part of the questions is a deviation of its own."""
CONFIG, SHA, SHA_DIGITS = "config", "sha", 8
# Short signatures leave these out: one is a digest, and the other is in the score's name.
IN_SHA = (ASKED, "benchmark")
# The first word of the value of a field that differs between answers.
MIXED = "mixed"
# A signature is one line, so only the most frequent values of a mixed field are listed.
MAX_MIXED_VALUES = 4
NOT_RECORDED = "not recorded"


def version() -> str:
    """Return the installed version of qabench."""
    return package_version("qabench")


def signature(score: str, **fields: object) -> str:
    """Return ``score|name:value|...|qabench:VERSION``, without the fields that are None."""
    texts = [score]
    for name, value in fields.items():
        if value is not None:
            texts.append(f"{name}:{field_value(value)}")
    texts.append(f"{VERSION}:{code_version()}")
    return "|".join(texts)


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
                f"not a signature: {line!r:.80} has the field {name!r} twice; each field must occur once"
            )
        fields[name] = value
    return score, fields


def short_digest(text: str) -> str:
    """Return the first twelve hex digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


def digest(items: Iterable[Any]) -> str:
    """Return twelve hex digits of a digest of answers, with their types, digits and order."""
    total = hashlib.sha256()
    for item in items:
        total.update(dumps(item).encode("utf-8") + b"\n")
    return total.hexdigest()[:12]


def short_signature(line: str, declaration: Declaration | None = None) -> str:
    """Return a signature without the fields that have official values, for a caption.

    It has the score's name, the config, each field with another value or without a declaration, and
    the version. ``benchmark`` and ``asked`` (the digest of the ids) are never in it. The field
    ``sha`` has the first eight digits of the digest of all fields but the version, so that other
    questions or other options have another short signature, too. The whole one can be printed
    elsewhere, such as in an appendix.

    Args:
        line: a signature.
        declaration: the official values of its fields, or that a field is irrelevant, which leaves it
            out. None: unknown, so that all fields are kept.

    Raises:
        InputError: the line is not a signature.

    Examples:
        >>> short_signature("acc|config:dev|stemmer:porter|qabench:1", {"stemmer": Field(("porter",))})
        'acc|config:dev|sha:54130365|qabench:1'
    """
    score, fields = parse(line)
    made_by = fields.pop(VERSION, NOT_RECORDED)
    shown = [score]
    for name, value in fields.items():
        field = None if declaration is None else declaration.get(name)
        is_official = field is not None and not is_mixed(value) and field.accepts(value)
        # The config is always shown: which questions were asked matters even if all configs are
        # official.
        if name == CONFIG or not (is_official or name in IN_SHA):
            shown.append(f"{name}:{value}")
    all_fields = "|".join([score, *(f"{name}:{value}" for name, value in fields.items())])
    # The version is not in the digest: another version of this package is not another score.
    digits = short_digest(all_fields)[:SHA_DIGITS]
    return "|".join([*shown, f"{SHA}:{digits}", f"{VERSION}:{made_by}"])


def with_fields(line: str, **fields: object) -> str:
    """Return a signature with further fields, or other values of fields, before its version.

    Args:
        line: the signature.
        **fields: the fields. Those that are None change nothing.

    Raises:
        InputError: the line is not a signature.
    """
    score, values = parse(line)
    # A signature keeps the version that computed the score, whoever adds fields later.
    signing_version = values.pop(VERSION, code_version())
    for name, value in fields.items():
        if value is not None:
            values[name] = field_value(value)
    # The version is the last field of every signature.
    values[VERSION] = signing_version
    texts = [f"{name}:{value}" for name, value in values.items()]
    return "|".join([score, *texts])


def merged(lines: Sequence[tuple[str, bool]]) -> str:
    """Return the signature of answers that have signatures of their own.

    A field that differs between answers gets a value that names all values with the numbers of
    their answers, which is a deviation (see ``deviations``). The version is the last answer's,
    because logs are scored again with today's code.

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
        signing_version = fields.pop(VERSION, code_version())
        scores[score] += 1
        for name, value in fields.items():
            values_by_field.setdefault(name, Counter())[value] += 1
        if is_complete:
            complete.append(fields.keys())
    if len(scores) > 1:
        values_by_field["score"] = scores
    texts = [score]
    for name, values in values_by_field.items():
        missing = sum(name not in names for names in complete)
        # An answer without a field that others have was asked in another way, or it is not known
        # how.
        if missing and values is not scores:
            values[NOT_RECORDED] = missing
        texts.append(f"{name}:{common_value(values)}")
    texts.append(f"{VERSION}:{signing_version}")
    return "|".join(texts)


def common_value(values: Counter[str]) -> str:
    """Return the value that all answers have, or a text with all values and their numbers."""
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
    """Return the field ``asked``: the number of questions, and a digest of their sorted ids."""
    # Sorted, because the order of the questions does not change a score.
    distinct = sorted(set(ids))
    return f"{len(distinct)}-{digest(distinct)}"


def asked_part(count: int, available: int | None) -> list[str]:
    """Return the deviation of asking only ``count`` of the available questions, or []."""
    if available is None or count >= available:
        return []
    return [f"{count} of {available} questions were asked"]


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
        if callable(self.official):
            return self.official(value)
        return value in self.official

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
            if not isinstance(field, dict):
                continue
            field.pop("why", None)
            if "official" in field:
                official = _official(field["official"])
            else:
                official = elsewhere[name]
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

    Args:
        line: a signature.
        declaration: the official values of the score's fields.
        cutoff: the score's cutoff, such as "5" of "mrr@5". Its signature can have several in the
            field ``k``.

    Returns:
        One sentence for each field with an unofficial value, for each field that differs between
        answers, for each required field that is missing, and for each field that is not declared,
        in the order of the signature. An official score has none.

    Raises:
        InputError: the text is not a signature.
    """
    _, fields = parse(line)
    for undeclared in (VERSION, ASKED):
        fields.pop(undeclared, None)
    if cutoff and "k" in fields and not is_mixed(fields["k"]):
        # Only the cutoff of this score matters, not the other ones that were computed with it.
        fields["k"] = cutoff
    sentences = []
    for name, value in fields.items():
        if is_mixed(value):
            values = value.removeprefix(MIXED)
            sentences.append(f"{name.replace('_', ' ')}: differs between the answers {values}")
        # A field that nobody has declared could change the score, so it is a deviation until
        # somebody decides.
        elif name not in declaration:
            sentences.append(f"{name.replace('_', ' ')}: {value} (the official value is not known)")
        elif declaration[name].unless not in fields and not declaration[name].accepts(value):
            sentences.append(declaration[name].sentence(name, value))
    for name, field in declaration.items():
        if not field.absent and name not in fields:
            sentences.append(f"{name.replace('_', ' ')}: {NOT_RECORDED}")
    return sentences
