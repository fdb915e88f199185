"""What makes a score official: the fields of its signature against the values declared next to the score.

This is the only place that decides. A benchmark declares the official value of every field that its signatures have;
commands, reports, published entries, logs and metrics print the sentences that ``deviations`` returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qabench.evaluation.signature import parse


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
        """Whether a value is official."""
        if self.official is None:
            return True
        return self.official(value) if callable(self.official) else value in self.official

    def sentence(self, name: str, value: str) -> str:
        """The deviation as a sentence."""
        if callable(self.says):
            return self.says(value)
        named = "" if self.official is None or callable(self.official) else " or ".join(self.official)
        return self.says.format(name=name.replace("_", " "), value=value, official=named)


IRRELEVANT = Field(None, absent=True)
Declaration = Mapping[str, Field]
"""Name of a field -> its official values. ``qabench`` (the version) need not be declared."""


def signature_name(line: str) -> str:
    """The name of the score in a signature."""
    return parse(line)[0]


def deviations(signature: str, declaration: Declaration) -> list[str]:
    """What distinguishes a score from the official one, in sentences; empty for an official score.

    Args:
        signature: a line from ``qabench.evaluation.signature.signature``.
        declaration: the official values of the score's fields.

    Returns:
        One sentence for each field with an unofficial value, for each required field that is missing, and for each
        field that is not declared, in the order of the signature.

    Raises:
        InputError: the text is not a signature.
    """
    _, fields = parse(signature)
    fields.pop("qabench", None)
    said = []
    for name, value in fields.items():
        if name not in declaration:
            said.append(f"{name.replace('_', ' ')}: {value} (the official value is not known)")
        elif declaration[name].unless not in fields and not declaration[name].accepts(value):
            said.append(declaration[name].sentence(name, value))
    said += [
        f"{name.replace('_', ' ')}: not recorded"
        for name, field in declaration.items()
        if not field.absent and name not in fields
    ]
    return said
