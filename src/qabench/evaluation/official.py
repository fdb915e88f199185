"""What makes a score official: the fields of its signature against the values declared next to the score.

This is the only place that decides. A benchmark declares the official value of every field that its signatures have;
commands, reports, published entries, logs and metrics print the sentences that ``deviations`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qabench.evaluation.signature import parse, short_digest


@dataclass(frozen=True, slots=True)
class Field:
    """The official values of one field of a signature.

    Attributes:
        official: the official values, or a function that says whether a value is official. None: every value is
            official (such as any model's name).
        says: the sentence for another value, with the fields ``{value}`` and ``{official}``; or a function of the
            value.
        absent: whether the field may be absent.
        unless: another field; where a signature has it, this one is irrelevant.
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
        official = "" if self.official is None or callable(self.official) else " or ".join(self.official)
        return self.says.format(name=name.replace("_", " "), value=value, official=official)


IRRELEVANT = Field(None, absent=True)
Declaration = Mapping[str, Field]
"""Name of a field -> its official values. ``qabench`` (the version) need not be declared."""


def signature_name(line: str) -> str:
    """Return the name of the score in a signature."""
    return parse(line)[0]


def short_signature(signature: str, declarations: Mapping[str, Declaration]) -> str:
    """Return a signature in short: the score, its config, the fields that are not official, and the line's digest."""
    name, fields = parse(signature)
    declaration = declarations.get(name, {})
    fields.pop("qabench", None)
    shown = {
        field: value
        for field, value in fields.items()
        if field == "config" or field not in declaration or not declaration[field].accepts(value)
    }
    parts = [f"{field}:{value}" for field, value in shown.items()]
    return "|".join([name, *parts, f"digest:{short_digest(signature)}"])


def deviations(signature: str, declaration: Declaration, cutoff: str = "") -> list[str]:
    """Return what distinguishes a score from the official one, in sentences; empty for an official score.

    Args:
        signature: a line from ``qabench.evaluation.signature.signature``.
        declaration: the official values of the score's fields.
        cutoff: the score's cutoff, such as "5" of "mrr@5"; its signature can have several in the field ``k``.

    Returns:
        One sentence for each field with an unofficial value, for each required field that is missing, and for each
        field that is not declared, in the order of the signature.

    Raises:
        InputError: the text is not a signature.
    """
    _, fields = parse(signature)
    fields.pop("qabench", None)
    if cutoff and "k" in fields:
        fields["k"] = cutoff
    sentences = []
    for name, value in fields.items():
        if name not in declaration:
            sentences.append(f"{name.replace('_', ' ')}: {value} (the official value is not known)")
        elif declaration[name].unless not in fields and not declaration[name].accepts(value):
            sentences.append(declaration[name].sentence(name, value))
    sentences += [
        f"{name.replace('_', ' ')}: not recorded"
        for name, field in declaration.items()
        if not field.absent and name not in fields
    ]
    return sentences
